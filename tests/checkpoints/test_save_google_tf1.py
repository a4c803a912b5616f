"""What is written, TensorFlow reads; what was read is written back byte for byte."""

import json
import os

import keras
import numpy as np
import pytest
from checkpoints.small_model import PIECES, SIZES
from peer_weights import randomize, to_numpy

from keras_bert_suite.checkpoints import load_weights, open_checkpoint, save_google_tf1
from keras_bert_suite.heads import Pretrainer, TextClassifier
from keras_bert_suite.models import BertBackbone
from keras_bert_suite.tokenizers import WordPieceTokenizer

FILES = ["bert_config.json", "bert_model.ckpt.data-00000-of-00001", "bert_model.ckpt.index"]


def read_with_tensorflow(path, name="bert_model.ckpt"):
    """{name: array} of a checkpoint in a directory."""
    tf = pytest.importorskip("tensorflow")
    prefix = str(path / name)
    reader = tf.train.load_checkpoint(prefix)
    return {name: reader.get_tensor(name) for name, _ in tf.train.list_variables(prefix)}


def test_round_trip_is_byte_equal(tmp_path, toy):
    """Heads too; of Google's own only the optimizer's state is gone."""
    pretrainer = Pretrainer.from_preset(toy)
    save_google_tf1(pretrainer, tmp_path / "again")
    original, again = read_with_tensorflow(toy), read_with_tensorflow(tmp_path / "again")
    weights = {name for name in original if not name.endswith(("/adam_m", "/adam_v"))}
    assert set(again) == weights - {"global_step"}
    for name, value in again.items():
        assert value.dtype == original[name].dtype
        assert value.tobytes() == original[name].tobytes(), name

    assert sorted(os.listdir(tmp_path / "again")) == [*FILES, "vocab.txt"]
    config, written = (
        json.loads((path / "bert_config.json").read_text()) for path in (toy, tmp_path / "again")
    )
    pooler = {name for name in config if name.startswith("pooler_")}  # which modeling.py ignores
    assert set(config) - set(written) == {"directionality", *pooler}
    assert written == {name: config[name] for name in written}
    vocabulary, again = (
        path.joinpath("vocab.txt").read_text() for path in (toy, tmp_path / "again")
    )
    assert again.split() == vocabulary.split()


@pytest.mark.parametrize("activation", ["gelu_tanh", "relu", "tanh"])
def test_backbone_reads_it_again(tmp_path, inputs, activation):
    backbone = randomize(BertBackbone(**SIZES, activation=activation))
    save_google_tf1(backbone, tmp_path / "saved")
    assert sorted(os.listdir(tmp_path / "saved")) == FILES
    again = BertBackbone.from_preset(tmp_path / "saved")
    expected = backbone(inputs)
    for name, value in again(inputs).items():
        np.testing.assert_array_equal(to_numpy(value), to_numpy(expected[name]))
    assert open_checkpoint(tmp_path / "saved").backbone_config == {
        **SIZES,
        "activation": activation,
        "layer_norm_epsilon": 1e-12,
        "initializer_range": 0.02,
    }


@pytest.mark.parametrize("next_sentence", [True, False])
def test_pretrainer_reads_it_again(tmp_path, inputs, next_sentence):
    pretrainer = randomize(Pretrainer(BertBackbone(**SIZES), next_sentence=next_sentence))
    tokenizer = WordPieceTokenizer(PIECES)
    save_google_tf1(pretrainer, tmp_path / "saved", tokenizer)
    again = Pretrainer.from_preset(tmp_path / "saved", next_sentence=next_sentence)
    x = {**inputs, "mask_positions": np.int32([[1, 3], [2, 5], [4, 0]])}
    expected = pretrainer(x)
    outputs = again(x)
    assert set(outputs) == ({"mlm", "nsp"} if next_sentence else {"mlm"})
    for name, value in outputs.items():
        np.testing.assert_array_equal(to_numpy(value), to_numpy(expected[name]))
    assert again.preprocessor.tokenizer.get_vocabulary() == PIECES


def test_head_of_run_classifier(tmp_path, inputs):
    """`logits = matmul(pooled, output_weights, transpose_b=True) + output_bias`."""
    model = randomize(TextClassifier(BertBackbone(**SIZES), num_classes=3))
    save_google_tf1(model, tmp_path / "saved")
    tensors = read_with_tensorflow(tmp_path / "saved")
    assert tensors["output_weights"].shape == (3, 8)
    pooled = to_numpy(model.backbone(inputs)["pooled_output"])
    expected = pooled @ tensors["output_weights"].T + tensors["output_bias"]
    np.testing.assert_allclose(to_numpy(model(inputs)), expected, atol=1e-5)

    again = TextClassifier(BertBackbone(**SIZES), num_classes=3)
    load_weights(again, open_checkpoint(tmp_path / "saved"))
    np.testing.assert_array_equal(to_numpy(again(inputs)), to_numpy(model(inputs)))


def test_lower_precision_is_written_as_float32(tmp_path):
    backbone = BertBackbone(**SIZES, dtype="bfloat16")
    save_google_tf1(backbone, tmp_path / "saved")
    tensors = read_with_tensorflow(tmp_path / "saved")
    assert {str(value.dtype) for value in tensors.values()} == {"float32"}
    kernel = tensors["bert/pooler/dense/kernel"]
    np.testing.assert_array_equal(kernel, to_numpy(backbone.pooler.kernel))


def test_what_the_format_cannot_hold_is_refused(tmp_path):
    path = tmp_path / "saved"
    for argument, value, message in (
        ("activation", "silu", "Google's BERT has no activation 'silu'; wanted one of gelu_tanh"),
        ("layer_norm_epsilon", 1e-3, "layer_norm_epsilon=1e-12, got 0.001"),
    ):
        with pytest.raises(ValueError, match=message):
            save_google_tf1(BertBackbone(**{**SIZES, argument: value}), path)
    backbone = BertBackbone(**SIZES)
    outputs = keras.layers.Dense(2, name="tagger")(backbone.output["sequence_output"])
    tagger = keras.Model(backbone.input, outputs)
    tagger.backbone = backbone
    with pytest.raises(ValueError, match="Google's.*tagger/kernel, tagger/bias. Save its"):
        save_google_tf1(tagger, path)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "pieces, settings, message",
    [
        ([*PIECES, "##a"], {}, "25 tokens.*for 24"),
        (PIECES, {"strip_accents": False}, "cannot hold strip_accents=False .*=True. Use"),
        (PIECES, {"pad_token": "a", "mask_token": "b"}, "hold pad_token='a', mask_token='b' of"),
        (PIECES, {"strip_accents": True}, None),
        (PIECES, {"lowercase": False, "strip_accents": False}, None),
    ],
)
def test_tokenizer_is_googles(tmp_path, pieces, settings, message):
    tokenizer = WordPieceTokenizer(pieces, **settings)
    if message is None:
        save_google_tf1(BertBackbone(**SIZES), tmp_path / "saved", tokenizer)
        assert WordPieceTokenizer(tmp_path / "saved" / "vocab.txt").get_vocabulary() == PIECES
    else:
        with pytest.raises(ValueError, match=message):
            save_google_tf1(BertBackbone(**SIZES), tmp_path / "saved", tokenizer)
        assert os.listdir(tmp_path) == []
