"""No file can make a message long, or full of what it holds."""

import json
import os
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_bert_suite.checkpoints import load_weights, open_checkpoint
from keras_bert_suite.checkpoints.google_tf1.string_table import make_table
from keras_bert_suite.checkpoints.google_tf1.tensor_bundle import TensorBundle, write_bundle
from keras_bert_suite.models import BertBackbone

LONGEST = 20_000


def test_many_long_names_in_an_index(toy, tmp_path):
    source = open_checkpoint(toy)
    tensors = {name: source.tensor(name) for name in source.tensor_shapes()}
    for prefix, message in (
        ("bert/", "the model has no such weight"),
        ("head", "They are left out"),
    ):
        path = tmp_path / prefix.strip("/")
        path.mkdir()
        shutil.copy(toy / "bert_config.json", path)
        extra = {f"{prefix}{i}{'x' * 3000}": np.zeros(1, "float32") for i in range(1000)}
        write_bundle(path / "bert_model.ckpt", {**tensors, **extra}.items())
        assert os.path.getsize(path / "bert_model.ckpt.index") > 3_000_000
        checkpoint = open_checkpoint(path)
        backbone = BertBackbone(**checkpoint.backbone_config)
        if prefix == "head":
            with pytest.warns(UserWarning, match=message) as warned:
                load_weights(backbone, checkpoint)
            text = str(warned[0].message)
        else:
            with pytest.raises(ValueError, match=message) as error:
                load_weights(backbone, checkpoint)
            text = str(error.value)
        assert len(text) < LONGEST
        assert "and 980 more" in text


@pytest.mark.parametrize("key, value", [(b"x" * 4000, b"\x07"), (b"x", b"\x08" + b"\xff" * 1000)])
def test_crafted_index(tmp_path, key, value):
    prefix = tmp_path / "model.ckpt"
    prefix.with_name("model.ckpt.index").write_bytes(make_table([(b"", b"\x08\x01"), (key, value)]))
    with pytest.raises(ValueError, match="Error parsing message .* It is damaged") as error:
        TensorBundle(prefix)
    assert len(str(error.value)) < LONGEST


def test_index_of_many_data_files(tmp_path):
    prefix = tmp_path / "model.ckpt"
    header = b"\x08\x9f\x8d\x06"  # 99,999 data files
    prefix.with_name("model.ckpt.index").write_bytes(make_table([(b"", header), (b"x", b"")]))
    with pytest.raises(FileNotFoundError, match="and 99,979 more. Download them too") as error:
        TensorBundle(prefix)
    assert len(str(error.value)) < LONGEST


@pytest.mark.parametrize(
    "field, value",
    [
        ("hidden_act", "x" * 10**6),
        ("model_type", "x" * 10**6),
        ("vocab_size", [0] * 10**6),
        ("pruned_heads", {str(i): [1] for i in range(10**5)}),
        ("position_embedding_type", "x" * 10**6),
        ("id2label", {str(i): "x" for i in range(1, 10**5)}),
    ],
)
def test_long_values_in_a_configuration(save_peer, field, value):
    _, path = save_peer("BertForSequenceClassification")
    file = path / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), field: value}))
    with pytest.raises(ValueError, match=field) as error:
        open_checkpoint(path)
    assert len(str(error.value)) < 2000


def test_long_names_in_safetensors(save_peer):
    _, path = save_peer()
    tensors = load_file(path / "model.safetensors")
    strangers = {f"encoder.{i}.{'x' * 1000}": np.zeros(1, "float32") for i in range(500)}
    save_file({**tensors, **strangers}, path / "model.safetensors")
    with pytest.raises(ValueError, match="and 480 more") as error:
        BertBackbone.from_preset(path)
    assert len(str(error.value)) < LONGEST
