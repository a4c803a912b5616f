"""What is written, transformers loads; what was read is written back byte for byte."""

import json
import os

import keras
import numpy as np
import pytest
import safetensors.numpy
import torch
import transformers
from checkpoints import small_model
from checkpoints.small_model import PIECES
from heads.cases import FIRST, LENGTH
from peer_weights import randomize, run_transformers, to_numpy
from small_tasks import assert_close, make_task, predict

from keras_bert_suite.checkpoints import load_weights, open_checkpoint, save_hugging_face
from keras_bert_suite.heads import TextClassifier
from keras_bert_suite.models import BertBackbone
from keras_bert_suite.tokenizers import WordPieceTokenizer

SIZES = {**small_model.SIZES, "layer_norm_epsilon": 1e-3}


def load_with_transformers(model_class, path):
    model, info = model_class.from_pretrained(path, output_loading_info=True)
    assert not any(info.values()), info
    return model.eval()


@pytest.mark.parametrize("activation", ["gelu_erf", "gelu_tanh", "relu", "silu", "tanh"])
def test_transformers_loads_the_backbone(tmp_path, inputs, activation):
    backbone = randomize(BertBackbone(**SIZES, activation=activation))
    save_hugging_face(backbone, tmp_path / "saved")
    peer = load_with_transformers(transformers.BertModel, tmp_path / "saved")
    with torch.no_grad():
        expected = run_transformers(peer, inputs)
    outputs = backbone(inputs)
    for ours, theirs in (
        ("sequence_output", expected.last_hidden_state),
        ("pooled_output", expected.pooler_output),
    ):
        np.testing.assert_allclose(to_numpy(outputs[ours]), theirs.numpy(), atol=1e-5)
    assert open_checkpoint(tmp_path / "saved").backbone_config == {
        **SIZES,
        "activation": activation,
        "initializer_range": 0.02,
    }


def test_transformers_loads_the_classifier(tmp_path, inputs, make_classifier):
    model = randomize(make_classifier(SIZES, 3))
    tokenizer = WordPieceTokenizer(PIECES, lowercase=False)
    path = tmp_path / "saved"
    model.label_names = ["bad", "só só", "good"]
    save_hugging_face(model, path, tokenizer=tokenizer)

    peer = load_with_transformers(transformers.BertForSequenceClassification, path)
    assert peer.config.id2label == {0: "bad", 1: "só só", 2: "good"}
    assert peer.config.label2id == {"bad": 0, "só só": 1, "good": 2}
    with torch.no_grad():
        expected = run_transformers(peer, inputs).logits.numpy()
    np.testing.assert_allclose(to_numpy(model(inputs)), expected, atol=1e-5)

    theirs = transformers.AutoTokenizer.from_pretrained(path)
    assert theirs.model_max_length == 12
    assert theirs("a B c")["input_ids"] == [2, *tokenizer.tokenize("a B c"), 3]

    checkpoint = open_checkpoint(path)
    assert checkpoint.label_names == ["bad", "só só", "good"]
    assert checkpoint.tokenizer_config == {
        "vocabulary": str(path / "vocab.txt"),
        "lowercase": False,
        "max_word_length": 200,
    }
    assert WordPieceTokenizer(path / "vocab.txt").get_vocabulary() == PIECES


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_the_dropout_of_a_head_is_written(tmp_path, dropout):
    model = TextClassifier(BertBackbone(**{**SIZES, "dropout": 0.1}), 3, dropout=dropout)
    save_hugging_face(model, tmp_path / "saved")
    peer = load_with_transformers(transformers.BertForSequenceClassification, tmp_path / "saved")
    assert (peer.dropout.p, peer.config.hidden_dropout_prob) == (dropout, 0.1)
    again = TextClassifier.from_preset(tmp_path / "saved", preprocessor=None)
    assert again.dropout == dropout


@pytest.mark.parametrize("model_name", ["BertModel", "BertForSequenceClassification"])
@pytest.mark.parametrize("activation", ["gelu", "gelu_new"])
def test_round_trip_is_byte_equal(tmp_path, save_peer, make_classifier, model_name, activation):
    _, path = save_peer(model_name, config={"hidden_act": activation})
    checkpoint = open_checkpoint(path)
    if checkpoint.label_names:
        model = make_classifier(checkpoint.backbone_config, len(checkpoint.label_names))
    else:
        model = BertBackbone(**checkpoint.backbone_config)
    load_weights(model, checkpoint)
    save_hugging_face(model, tmp_path / "again")

    original = safetensors.numpy.load_file(path / "model.safetensors")
    again = safetensors.numpy.load_file(tmp_path / "again" / "model.safetensors")
    prefix = "bert." if model_name == "BertModel" else ""
    assert {prefix + name: value.tobytes() for name, value in original.items()} == {
        name: value.tobytes() for name, value in again.items()
    }
    config = json.loads((path / "config.json").read_text())
    written = json.loads((tmp_path / "again" / "config.json").read_text())
    assert {name: config[name] for name in written if name in config} == {
        name: value for name, value in written.items() if name in config
    }
    assert written["hidden_act"] == activation


def test_padding_may_be_any_piece(tmp_path):
    tokenizer = WordPieceTokenizer(PIECES[::-1])
    save_hugging_face(BertBackbone(**SIZES), tmp_path / "saved", tokenizer)
    config = json.loads((tmp_path / "saved" / "config.json").read_text())
    assert config["pad_token_id"] == tokenizer.pad_token_id != 0


def test_google_checkpoint_becomes_a_hugging_face_one(toy, tmp_path, values_of):
    backbone = BertBackbone.from_preset(str(toy))
    save_hugging_face(backbone, tmp_path / "converted", WordPieceTokenizer(toy / "vocab.txt"))
    again = BertBackbone.from_preset(str(tmp_path / "converted"))
    expected = values_of(backbone)
    for path, value in values_of(again).items():
        np.testing.assert_array_equal(value, expected[path])
    assert again.activation is backbone.activation


def test_lower_precision_is_written_as_float32(tmp_path):
    backbone = BertBackbone(**SIZES, dtype="bfloat16")
    save_hugging_face(backbone, tmp_path / "saved")
    tensors = safetensors.numpy.load_file(tmp_path / "saved" / "model.safetensors")
    kernel = tensors["bert.pooler.dense.weight"]
    assert kernel.dtype == "float32"
    np.testing.assert_array_equal(kernel.T, to_numpy(backbone.pooler.kernel))


def squared_relu(x):
    return keras.ops.square(keras.ops.relu(x))


def test_what_the_format_cannot_hold_is_refused(tmp_path):
    path = tmp_path / "saved"
    with pytest.raises(ValueError, match="embedding_dim=8, got 4"):
        save_hugging_face(BertBackbone(**SIZES, embedding_dim=4), path)
    with pytest.raises(ValueError, match="no activation 'squared_relu'; wanted one of gelu"):
        save_hugging_face(BertBackbone(**SIZES, activation=squared_relu), path)
    backbone = BertBackbone(**SIZES)
    outputs = keras.layers.Dense(2, name="tagger")(backbone.output["sequence_output"])
    tagger = keras.Model(backbone.input, outputs)
    tagger.backbone = backbone
    with pytest.raises(ValueError, match="tagger/kernel, tagger/bias. Save its `backbone` alone"):
        save_hugging_face(tagger, path)
    with pytest.raises(ValueError, match="25 tokens.*for 24"):
        save_hugging_face(backbone, path, tokenizer=WordPieceTokenizer([*PIECES, "##a"]))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("kind", ["texts", "words", "questions"])
def test_long_texts_are_cut_as_the_task_cuts_them(kind, tmp_path):
    """The packer's sequence_length is less than the number of positions, which was written."""
    task, (x, _) = make_task(kind, "SegmentPacker")
    randomize(task)
    text = [" ".join(row.split() * 9) for row in FIRST[:3]]
    x = {"texts": text, "words": [row.split() for row in text], "questions": (FIRST[:3], text)}[
        kind
    ]
    wanted = predict(task, x=x)
    save_hugging_face(task, tmp_path / "saved")
    # What the format cannot hold.
    more = {"query_length": 4, "no_answer_threshold": 0.0} if kind == "questions" else {}
    again = type(task).from_preset(tmp_path / "saved", **more)
    assert again.preprocessor.sequence_length == task.preprocessor.sequence_length == LENGTH
    assert_close(predict(again, x=x), wanted)

    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "saved")
    assert theirs.model_max_length == LENGTH < task.backbone.max_sequence_length
    if kind == "texts":
        inputs = theirs(text, truncation=True, padding=True, return_tensors="pt")
        peer = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "saved")
        np.testing.assert_allclose(peer(**inputs).logits.detach().numpy(), wanted, atol=1e-5)


def test_another_length_is_written(tmp_path):
    task, _ = make_task("texts", "SegmentPacker")
    save_hugging_face(task.backbone, tmp_path / "encoder", task.preprocessor.tokenizer)
    assert open_checkpoint(tmp_path / "encoder").sequence_length == 64
    save_hugging_face(task, tmp_path / "other", sequence_length=20)
    assert open_checkpoint(tmp_path / "other").sequence_length == 20
    for length in (3, 65):
        with pytest.raises(ValueError, match=f"from 4 to 64, the number of .* got {length}"):
            save_hugging_face(task, tmp_path / "none", sequence_length=length)
