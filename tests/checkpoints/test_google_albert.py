"""Checkpoints of google-research/albert, by the names that transformers read them with."""

import json

import numpy as np
import pytest
from checkpoints.test_save_google_tf1 import read_with_tensorflow
from family import LENGTH, MEMBERS, PIECES
from peer_weights import to_numpy
from small_sentence_pieces import make_albert

from keras_bert_suite import (
    AlbertBackbone,
    AlbertTokenizer,
    ElectraBackbone,
    Pretrainer,
    TextClassifier,
    WordPieceTokenizer,
)
from keras_bert_suite.checkpoints import open_checkpoint, save_google_tf1

MEMBER = MEMBERS["albert"]


#: The replacements of `load_tf_weights_in_albert` of transformers 4, in their order. They make the
#: names of PyTorch from those of Google.
REPLACEMENTS = (
    ("ffn_1", "ffn"),
    ("bert/", "albert/"),
    ("attention_1", "attention"),
    ("transform/", ""),
    ("LayerNorm_1", "full_layer_layer_norm"),
    ("LayerNorm", "attention/LayerNorm"),
    ("transformer/", ""),
    ("intermediate/dense/", ""),
    ("ffn/intermediate/output/dense/", "ffn_output/"),
    ("/output/", "/"),
    ("/self/", "/"),
    ("pooler/dense", "pooler"),
    ("cls/predictions", "predictions"),
    ("predictions/attention", "predictions"),
    ("embeddings/attention", "embeddings"),
    ("inner_group_", "albert_layers/"),
    ("group_", "albert_layer_groups/"),
    ("cls/seq_relationship/output_weights", "sop_classifier/classifier/weight"),
    ("seq_relationship/output_", "sop_classifier/classifier/"),
    ("cls/", ""),
    ("output_bias", "bias"),
    ("kernel", "weight"),
    ("gamma", "weight"),
    ("beta", "bias"),
    ("_embeddings", "_embeddings/weight"),
    ("/", "."),
)


def save_peer(path):
    """transformers' model with Google's GELU and epsilon."""
    return MEMBER.save_peer(path, "ForPreTraining", hidden_act="gelu_new", layer_norm_eps=1e-12)


def test_names_and_values_are_those_that_transformers_reads(tmp_path):
    """Also of several groups, and of several layers in a group."""
    peer = save_peer(tmp_path / "peer")
    pretrainer = Pretrainer.from_preset(tmp_path / "peer")
    save_google_tf1(pretrainer, tmp_path / "saved")
    tensors = read_with_tensorflow(tmp_path / "saved", "model.ckpt-best")
    parameters = {name: p.detach().numpy() for name, p in peer.named_parameters()}
    for name, tensor in tensors.items():
        theirs = name
        for old, new in REPLACEMENTS:
            theirs = theirs.replace(old, new)
        tensor = tensor.T if name.endswith("kernel") else tensor
        np.testing.assert_array_equal(tensor, parameters.pop(theirs), err_msg=name)
    assert not parameters

    again = Pretrainer.from_preset(tmp_path / "saved")
    positions = np.tile(np.arange(LENGTH, dtype="int32"), (3, 1))
    inputs = {**MEMBER.make_inputs(), "mask_positions": positions}
    for name, wanted in pretrainer(inputs).items():
        np.testing.assert_allclose(to_numpy(again(inputs)[name]), to_numpy(wanted), atol=1e-6)
    assert isinstance(again.preprocessor.tokenizer, WordPieceTokenizer)


def test_files_that_google_has_made(tmp_path):
    """Their configurations have fields that no other model has."""
    save_peer(tmp_path / "peer")
    backbone = AlbertBackbone.from_preset(tmp_path / "peer")
    save_google_tf1(backbone, tmp_path / "saved")
    path = tmp_path / "saved" / "albert_config.json"
    config = json.loads(path.read_text())
    assert (config["num_hidden_groups"], config["inner_group_num"]) == (2, 2)
    fields = {"net_structure_type": 0, "gap_size": 0, "num_memory_blocks": 0}
    path.write_text(json.dumps({**config, **fields, "down_scale_factor": 1}))
    (tmp_path / "saved" / "vocab_chinese.txt").write_text("\n".join(PIECES) + "\n")
    task = TextClassifier.from_preset(tmp_path / "saved", num_classes=2)
    assert task.preprocessor.tokenizer.get_vocabulary() == PIECES
    inputs = MEMBER.make_inputs()
    got, wanted = (model(inputs)["sequence_output"] for model in (task.backbone, backbone))
    np.testing.assert_allclose(to_numpy(got), to_numpy(wanted), atol=1e-6)
    path.write_text(json.dumps({**config, "net_structure_type": 1}))
    with pytest.raises(ValueError, match="'net_structure_type' in .* only 0 can be read"):
        open_checkpoint(tmp_path / "saved")


def test_a_sentence_piece_tokenizer_comes_along(tmp_path):
    tokenizer = AlbertTokenizer(make_albert())
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 16}
    backbone = AlbertBackbone(tokenizer.vocabulary_size(), **sizes, embedding_dim=4)
    save_google_tf1(backbone, tmp_path / "saved", tokenizer)
    (tmp_path / "saved" / "spiece.model").rename(tmp_path / "saved" / "30k-clean.model")
    task = TextClassifier.from_preset(tmp_path / "saved", num_classes=2)
    text = "A Text, 2009."
    assert task.preprocessor.tokenizer.tokenize(text) == tokenizer.tokenize(text)
    (tmp_path / "saved" / "10k.model").write_bytes(b"")
    with pytest.raises(ValueError, match="has 10k.model, 30k-clean.model. Leave only the one"):
        TextClassifier.from_preset(tmp_path / "saved", num_classes=2)
    other = AlbertTokenizer(make_albert(), strip_accents=False)
    with pytest.raises(ValueError, match="cannot hold strip_accents=False of the tokenizer"):
        save_google_tf1(backbone, tmp_path / "other", other)
    with pytest.raises(ValueError, match="hold a BertBackbone or AlbertBackbone, got an Electra"):
        save_google_tf1(ElectraBackbone(9, **sizes), tmp_path / "other")
    assert not (tmp_path / "other").exists()
