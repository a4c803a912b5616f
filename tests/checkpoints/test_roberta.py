"""Checkpoints of RoBERTa, both ways: transformers' and KerasHub's own outputs, to 1e-5."""

import json

import keras_hub
import numpy as np
import pytest
import torch
import transformers
from checkpoints.wild_files import edit_config
from peer_weights import randomize, to_numpy, transformers_peer
from safetensors.numpy import load_file
from small_byte_pairs import MERGES, make_vocabulary

from keras_bert_suite import (
    BertBackbone,
    BytePairTokenizer,
    Pretrainer,
    RobertaBackbone,
    RoFormerBackbone,
    SegmentPacker,
    TextClassifier,
    TokenClassifier,
    WordPieceTokenizer,
)
from keras_bert_suite.checkpoints import open_checkpoint, save_google_tf1, save_hugging_face

VOCABULARY = make_vocabulary()
TINY = {
    "vocab_size": len(VOCABULARY),
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 14,
    "type_vocab_size": 1,
    "layer_norm_eps": 1e-3,
    "num_labels": 3,
}
TEXTS = ["the good film", " lower café"], ["low <mask>", "bad"]


@pytest.fixture
def save_peer(tmp_path):
    """Function: randomises a RoBERTa of transformers, saves it, returns (model, directory)."""

    def save(model_name, config_class="RobertaConfig", **config):
        config = getattr(transformers, config_class)(**{**TINY, **config})
        model = transformers_peer(getattr(transformers, model_name), config)
        path = tmp_path / model_name
        model.save_pretrained(path)
        BytePairTokenizer(VOCABULARY, MERGES).save_assets(path)
        return model, path

    return save


@pytest.fixture
def inputs():
    """Token ids and a mask with padding, each int32 (3, 12)."""
    rng = np.random.default_rng(0)
    mask = np.ones((3, 12), "int32")
    mask[0, 6:] = mask[2, 11:] = 0
    token_ids = np.where(mask, rng.integers(4, 40, (3, 12)), 1).astype("int32")
    return {"token_ids": token_ids, "padding_mask": mask}


def run_peer(peer, inputs):
    ids, mask = (torch.from_numpy(inputs[n]).long() for n in ("token_ids", "padding_mask"))
    with torch.no_grad():
        return peer(input_ids=ids, attention_mask=mask)


def check_close(got, expected):
    np.testing.assert_allclose(to_numpy(got), expected.numpy(), atol=1e-5)


def check_same_files(path, other):
    """All tensors are written back, under the same names."""
    ours, theirs = (load_file(folder / "model.safetensors") for folder in (path, other))
    assert ours.keys() == theirs.keys()
    for name in theirs:
        np.testing.assert_array_equal(ours[name], theirs[name])


@pytest.mark.parametrize("segments", [1, 2])
def test_encoder(save_peer, inputs, tmp_path, segments):
    peer, path = save_peer("RobertaModel", type_vocab_size=segments)
    backbone = RobertaBackbone.from_preset(path)
    assert (backbone.max_sequence_length, backbone.num_segments) == (12, segments)
    expected = run_peer(peer, inputs)
    outputs = backbone(inputs)
    # Of padding too: it has the position that transformers gives it.
    check_close(outputs["sequence_output"], expected.last_hidden_state)
    check_close(outputs["pooled_output"], expected.pooler_output)
    save_hugging_face(backbone, tmp_path / "again")
    again = transformers.RobertaModel.from_pretrained(tmp_path / "again")
    check_close(outputs["sequence_output"], run_peer(again, inputs).last_hidden_state)
    saved, original = (
        json.loads((p / "config.json").read_text()) for p in (tmp_path / "again", path)
    )
    assert {name: original[name] for name in saved if name in original} == saved


def test_classifier(save_peer, inputs, tmp_path):
    labels = {0: "bad", 1: "fair", 2: "good"}
    peer, path = save_peer("RobertaForSequenceClassification", id2label=labels)
    classifier = TextClassifier.from_preset(path)
    assert classifier.label_names == ["bad", "fair", "good"]
    check_close(classifier(inputs), run_peer(peer, inputs).logits)
    save_hugging_face(classifier, tmp_path / "again")
    check_same_files(tmp_path / "again", path)
    again = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "again")
    assert type(again) is transformers.RobertaForSequenceClassification
    check_close(classifier(inputs), run_peer(again, inputs).logits)
    # The packer's arrays are what transformers makes of the files.
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "again")
    theirs = tokenizer(*TEXTS, padding=True, split_special_tokens=True, return_tensors="np")
    classifier.preprocessor.padding_lengths = None
    classifier.preprocessor.sequence_length = 64
    packed = classifier.preprocessor.pack(*TEXTS)
    assert sorted(packed) == ["padding_mask", "token_ids"]
    np.testing.assert_array_equal(packed["token_ids"], theirs["input_ids"])
    np.testing.assert_array_equal(packed["padding_mask"], theirs["attention_mask"])


def test_token_classifier(save_peer, inputs, tmp_path):
    labels = {0: "O", 1: "B-PER", 2: "I-PER"}
    peer, path = save_peer("RobertaForTokenClassification", id2label=labels)
    tagger = TokenClassifier.from_preset(path)
    assert type(tagger.backbone) is RobertaBackbone
    assert tagger.label_names == ["O", "B-PER", "I-PER"]
    check_close(tagger(inputs), run_peer(peer, inputs).logits)
    save_hugging_face(tagger, tmp_path / "again")
    again = transformers.AutoModelForTokenClassification.from_pretrained(tmp_path / "again")
    assert type(again) is transformers.RobertaForTokenClassification
    assert again.config.id2label == labels
    check_close(tagger(inputs), run_peer(again, inputs).logits)


def test_pretrainer(save_peer, inputs, tmp_path):
    peer, path = save_peer("RobertaForMaskedLM", hidden_act="relu")  # of the encoder alone
    with pytest.warns(UserWarning, match="no weights for pooler/kernel, pooler/bias"):
        pretrainer = Pretrainer.from_preset(path)
    assert not pretrainer.next_sentence
    positions = np.tile(np.arange(12, dtype="int32"), (3, 1))
    outputs = pretrainer({**inputs, "mask_positions": positions})
    check_close(outputs["mlm"], run_peer(peer, inputs).logits)
    save_hugging_face(pretrainer, tmp_path / "again")
    again = transformers.RobertaForMaskedLM.from_pretrained(tmp_path / "again")
    check_close(outputs["mlm"], run_peer(again, inputs).logits)


def test_pretrainer_of_an_encoder_has_no_pairs(save_peer):
    _, path = save_peer("RobertaModel")
    with pytest.warns(UserWarning, match="no weights for masked_lm"):
        assert not Pretrainer.from_preset(path).next_sentence


def test_new_head(save_peer):
    _, path = save_peer("RobertaForMaskedLM")
    with pytest.warns(UserWarning, match="no weights for pooler/kernel, pooler/bias"):
        classifier = TextClassifier.from_preset(path, num_classes=2)
    assert type(classifier.backbone) is RobertaBackbone


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model_type": "camembert"}, "model_type 'camembert', wanted 'bert', 'roberta', 'xlm-"),
        (
            {"pad_token_id": 0},
            "'pad_token_id' in .* is 0; only 1 can be read",
        ),
        ({"position_embedding_type": "relative_key"}, "only 'absolute' can be read"),
    ],
)
def test_others_are_refused_by_name(save_peer, fields, message):
    _, path = save_peer("RobertaModel")
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, **fields}))
    with pytest.raises(ValueError, match=message):
        open_checkpoint(path)


def test_classes_of_another_model_are_refused(save_peer, tmp_path):
    _, path = save_peer("RobertaModel")
    with pytest.raises(
        ValueError, match="holds weights of RoBERTa, .*Use RobertaBackbone.from_preset"
    ):
        BertBackbone.from_preset(path)
    with pytest.raises(ValueError, match="has a BytePairTokenizer, .*Use BytePairTokenizer"):
        WordPieceTokenizer.from_preset(path)
    with pytest.raises(ValueError, match="keeps upper and lower case"):
        SegmentPacker.from_preset(path, lowercase=True)
    backbone = RobertaBackbone.from_preset(path)
    with pytest.raises(ValueError, match="hold a BertBackbone or AlbertBackbone, got a Rob"):
        save_google_tf1(backbone, tmp_path / "google")
    pieces = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *map(str, range(277))])
    padded_first = BytePairTokenizer(
        make_vocabulary(special=["<pad>", "<s>", "</s>", "<unk>", "<mask>"]), MERGES
    )
    for tokenizer, message in (
        (pieces, "written with its BytePairTokenizer, got a WordPieceTokenizer"),
        (padded_first, "padding of id 1, got a tokenizer whose pad_token_id is 0"),
    ):
        with pytest.raises(ValueError, match=message):
            save_hugging_face(backbone, tmp_path / "again", tokenizer)
    edit_config(path, model_type="roformer")
    with pytest.raises(ValueError, match="was read as RoFormer. If this is wrong, correct its"):
        RoFormerBackbone.from_preset(path)


def test_tokenizer_of_a_tokenizer_json(save_peer, tmp_path):
    _, path = save_peer("RobertaModel")
    ours = BytePairTokenizer.from_preset(path)
    theirs = transformers.RobertaTokenizer(
        vocab=VOCABULARY, merges=[tuple(m.split()) for m in MERGES], add_prefix_space=True
    )
    for name in ("vocab.json", "merges.txt"):
        (path / name).unlink()
    with pytest.raises(FileNotFoundError, match="no vocab.json with merges.txt or tokenizer.json"):
        BytePairTokenizer.from_preset(path)
    theirs.save_pretrained(path)
    assert (path / "tokenizer.json").is_file() and not (path / "vocab.json").is_file()
    fast = BytePairTokenizer.from_preset(path)
    assert fast.add_prefix_space and fast.asset_contents() == ours.asset_contents()
    assert fast.tokenize("the") == ours.tokenize(" the")
    file = path / "tokenizer.json"
    content = json.loads(file.read_text())
    for field, value, message in (
        ("normalizer", {"type": "NFC"}, "normalizer in tokenizer.json is"),
        ("pre_tokenizer", {"type": "Whitespace"}, "pre_tokenizer in tokenizer.json is"),
    ):
        file.write_text(json.dumps({**content, field: value}))
        with pytest.raises(ValueError, match=f"is not RoBERTa's.*{message}"):
            BytePairTokenizer.from_preset(path)


def test_preset_of_keras_hub(tmp_path, inputs):
    tokenizer = keras_hub.models.RobertaTokenizer(VOCABULARY, MERGES)
    peer = keras_hub.models.RobertaTextClassifier(
        keras_hub.models.RobertaBackbone(
            vocabulary_size=len(VOCABULARY),
            num_layers=2,
            num_heads=2,
            hidden_dim=8,
            intermediate_dim=16,
            max_sequence_length=12,
        ),
        num_classes=3,
        preprocessor=keras_hub.models.RobertaTextClassifierPreprocessor(
            tokenizer, sequence_length=10
        ),
    )
    randomize(peer)
    peer.save_to_preset(str(tmp_path))
    classifier = TextClassifier.from_preset(tmp_path)
    assert type(classifier.backbone) is RobertaBackbone
    np.testing.assert_allclose(to_numpy(classifier(inputs)), to_numpy(peer(inputs)), atol=1e-5)
    packer = classifier.preprocessor
    assert packer.sequence_length == 10
    texts = ["the good film", "low bad"], ["lower", "a"]
    expected = peer.preprocessor(tuple(map(list, texts)), y=None)["token_ids"]
    ids = packer.pack(*texts)["token_ids"]  # Padded to the longest row, or to the ladder.
    np.testing.assert_array_equal(ids, to_numpy(expected)[:, : ids.shape[1]])
