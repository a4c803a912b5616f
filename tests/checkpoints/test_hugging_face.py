"""Hugging Face checkpoints of every form give transformers' own outputs."""

import json

import numpy as np
import pytest
import torch
import transformers
from peer_weights import run_transformers, to_numpy
from safetensors.numpy import load_file, save_file

from keras_bert_suite import SegmentPacker, TextClassifier
from keras_bert_suite.checkpoints import load_weights, open_checkpoint
from keras_bert_suite.models import BertBackbone


def load_backbone(path):
    checkpoint = open_checkpoint(path)
    backbone = BertBackbone(**checkpoint.backbone_config)
    load_weights(backbone, checkpoint)
    return backbone


def check_same_outputs(backbone, peer, inputs, tolerance=1e-5):
    outputs = backbone(inputs)
    with torch.no_grad():
        expected = run_transformers(peer, inputs)
    got = to_numpy(outputs["sequence_output"])
    np.testing.assert_allclose(got, expected.last_hidden_state.numpy(), atol=tolerance)
    if expected.pooler_output is not None:
        got = to_numpy(outputs["pooled_output"])
        np.testing.assert_allclose(got, expected.pooler_output.numpy(), atol=tolerance)


@pytest.mark.parametrize(
    "activation",
    ["gelu", "gelu_python", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "relu", "silu", "tanh"],
)
def test_every_activation(save_peer, inputs, activation):
    peer, path = save_peer(config={"hidden_act": activation})
    check_same_outputs(load_backbone(path), peer, inputs)


def test_an_argument_goes_before_that_of_the_checkpoint(save_peer, inputs):
    """Also one that config.json has."""
    peer, path = save_peer(config={"hidden_act": "gelu", "hidden_dropout_prob": 0.1})
    backbone = BertBackbone.from_preset(path, activation="relu", dropout=0.5)
    assert backbone.dropout == 0.5
    other, _ = save_peer(config={"hidden_act": "relu"}, directory="other")
    other.load_state_dict(peer.state_dict())
    check_same_outputs(backbone, other, inputs)


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("said", [True, False])
def test_a_case_goes_before_that_of_the_checkpoint(save_peer, said, lowercase):
    _, path = save_peer()
    (path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": said}))
    assert SegmentPacker.from_preset(path, lowercase=lowercase).tokenizer.lowercase is lowercase
    task = TextClassifier.from_preset(path, num_classes=2, lowercase=lowercase)
    assert task.preprocessor.tokenizer.lowercase is lowercase


def test_shards(save_peer, inputs):
    peer, path = save_peer(max_shard_size="2KB")
    assert len(list(path.glob("model-*.safetensors"))) > 2
    check_same_outputs(load_backbone(path), peer, inputs)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("form", ["safetensors", "bin"])
def test_other_dtypes(save_peer, inputs, dtype, form):
    peer, path = save_peer(dtype=dtype)
    if form == "bin":
        (path / "model.safetensors").unlink()
        torch.save(peer.to(dtype).state_dict(), path / "pytorch_model.bin")
        peer.float()
    check_same_outputs(load_backbone(path), peer, inputs)


@pytest.mark.parametrize("zip_format", [True, False])
def test_pytorch_files(save_peer, inputs, zip_format):
    peer, path = save_peer()
    (path / "model.safetensors").unlink()
    file = path / "pytorch_model.bin"
    torch.save(peer.state_dict(), file, _use_new_zipfile_serialization=zip_format)
    check_same_outputs(load_backbone(path), peer, inputs)


def test_names_of_2018(save_peer, inputs):
    peer, path = save_peer("BertForPreTraining")
    tensors = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): tensor
        for name, tensor in load_file(path / "model.safetensors").items()
    }
    tensors["bert.embeddings.position_ids"] = np.arange(12)[None]
    save_file(tensors, path / "model.safetensors")
    check_same_outputs(load_backbone(path), peer.bert, inputs)


@pytest.mark.parametrize(
    "model_name",
    [
        "BertForPreTraining",
        "BertForSequenceClassification",
        "BertForTokenClassification",
        "BertForMultipleChoice",
        "BertForNextSentencePrediction",
    ],
)
def test_backbone_of_a_model_with_a_head(save_peer, inputs, model_name):
    peer, path = save_peer(model_name)
    if model_name == "BertForTokenClassification":  # It has no pooler.
        with pytest.warns(UserWarning, match="pooler/kernel, pooler/bias"):
            backbone = load_backbone(path)
    else:
        backbone = load_backbone(path)
    check_same_outputs(backbone, peer.bert, inputs)


@pytest.mark.parametrize("model_name", ["BertForMaskedLM", "BertForQuestionAnswering"])
def test_model_without_pooler_keeps_the_initial_one(save_peer, inputs, model_name, values_of):
    peer, path = save_peer(model_name)
    checkpoint = open_checkpoint(path)
    backbone = BertBackbone(**checkpoint.backbone_config)
    before = values_of(backbone)
    with pytest.warns(UserWarning, match="pooler/kernel, pooler/bias") as warnings:
        load_weights(backbone, checkpoint)
    assert len(warnings) == 1
    check_same_outputs(backbone, peer.bert, inputs)
    np.testing.assert_array_equal(values_of(backbone)["pooler/kernel"], before["pooler/kernel"])


@pytest.mark.parametrize("labels", [None, ["no", "maybe", "yes"]])
def test_text_classifier(save_peer, inputs, make_classifier, labels):
    id2label = {"id2label": dict(enumerate(labels))} if labels else {}
    peer, path = save_peer("BertForSequenceClassification", config=id2label)
    checkpoint = open_checkpoint(path)
    assert checkpoint.label_names == (labels or ["LABEL_0", "LABEL_1"])
    model = make_classifier(checkpoint.backbone_config, len(checkpoint.label_names))
    load_weights(model, checkpoint)
    with torch.no_grad():
        expected = run_transformers(peer, inputs).logits.numpy()
    np.testing.assert_allclose(to_numpy(model(inputs)), expected, atol=1e-5)


def test_lower_precision_model(save_peer):
    peer, path = save_peer()
    checkpoint = open_checkpoint(path)
    backbone = BertBackbone(**checkpoint.backbone_config, dtype="bfloat16")
    load_weights(backbone, checkpoint)
    kernel = backbone.pooler.kernel
    assert kernel.dtype == "bfloat16"
    expected = peer.pooler.dense.weight.detach().bfloat16().float().numpy().T
    np.testing.assert_array_equal(to_numpy(kernel), expected)


def test_configuration(save_peer):
    _, path = save_peer(config={"hidden_act": "gelu", "initializer_range": 0.5})
    (path / "sentence_bert_config.json").write_text('{"max_seq_length": 10}')
    checkpoint = open_checkpoint(str(path))
    assert checkpoint.backbone_config == {
        "vocabulary_size": 24,
        "num_layers": 2,
        "num_heads": 2,
        "hidden_dim": 8,
        "intermediate_dim": 16,
        "activation": "gelu_erf",
        "dropout": 0.2,
        "attention_dropout": 0.3,
        "max_sequence_length": 12,
        "num_segments": 3,
        "layer_norm_epsilon": 1e-3,
        "initializer_range": 0.5,
    }
    assert checkpoint.label_names is None
    assert checkpoint.sequence_length == 10
    assert checkpoint.tensor_shapes()["embeddings.word_embeddings.weight"] == (24, 8)
    assert checkpoint.tensor("pooler.dense.bias").dtype == "float32"


MISSING = object()


@pytest.mark.parametrize(
    "field, value, message",
    [
        ("vocab_size", 0, "positive integer"),
        ("vocab_size", 24.0, "positive integer"),
        ("vocab_size", True, "positive integer"),
        ("vocab_size", 10**30, "positive integer"),
        ("hidden_size", "8", "positive integer"),
        ("num_attention_heads", None, "'num_attention_heads' in .* must be a pos"),
        ("intermediate_size", MISSING, "'intermediate_size' in .* must be a pos"),
        ("hidden_dropout_prob", 1.0, r"in \[0, 1\)"),
        ("hidden_dropout_prob", float("nan"), r"in \[0, 1\)"),
        ("layer_norm_eps", 0, "greater than 0"),
        ("layer_norm_eps", float("inf"), "greater than 0"),
        ("hidden_act", "gelu_10", "one of gelu_new, .* gelu, gelu_python"),
        ("hidden_act", ["gelu"], "one of gelu_new, .* gelu, gelu_python"),
        ("model_type", "camembert", "model_type 'camembert', wanted 'bert'"),
        ("position_embedding_type", "relative_key", "relative_key"),
        ("is_decoder", "yes", "'is_decoder' in .* must be true or false"),
    ],
)
def test_wrong_configuration_is_named(save_peer, field, value, message):
    _, path = save_peer()
    config = json.loads((path / "config.json").read_text())
    config[field] = value
    if value is MISSING:
        del config[field]
    (path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=message) as error:
        open_checkpoint(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("labels", [{}, {"0": "a", "2": "b"}, {"x": "a"}, ["a", "b"]])
def test_wrong_labels_are_named(save_peer, labels):
    _, path = save_peer("BertForSequenceClassification")
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, "id2label": labels}))
    with pytest.raises(ValueError, match="id2label"):
        open_checkpoint(path)


@pytest.mark.parametrize("cut", [0, 5, 200, -8, -1])
def test_truncated_safetensors(save_peer, cut):
    _, path = save_peer()
    file = path / "model.safetensors"
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(ValueError, match=r"model.safetensors cannot be read.*download it again"):
        open_checkpoint(path)


@pytest.mark.parametrize("zip_format", [True, False])
@pytest.mark.parametrize("cut", [0, 5, 200, -1])
def test_truncated_pytorch_file(save_peer, cut, zip_format):
    peer, path = save_peer()
    (path / "model.safetensors").unlink()
    file = path / "pytorch_model.bin"
    torch.save(peer.state_dict(), file, _use_new_zipfile_serialization=zip_format)
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(ValueError, match=r"(?s)pytorch_model.bin cannot be read.*download it"):
        open_checkpoint(path)


class Bomb:
    def __reduce__(self):
        return exec, ("raise SystemExit('a pickle was run')",)


@pytest.mark.parametrize("zip_format", [True, False])
def test_pickled_code_is_not_run(save_peer, zip_format):
    _, path = save_peer()
    (path / "model.safetensors").unlink()
    file = path / "pytorch_model.bin"
    torch.save({"a": Bomb()}, file, _use_new_zipfile_serialization=zip_format)
    with pytest.raises(ValueError, match="never run here"):
        open_checkpoint(path)


@pytest.mark.parametrize(
    ("content", "remedy"),
    [
        ([torch.zeros(1)], "`save_pretrained`"),
        ({"a": 1}, "`save_pretrained`"),
        (
            {"epoch": 1, "optimizer": {"lr": 1.0}, "model": {"a": torch.zeros(1)}},
            r"torch.load\('pytorch_model.bin'\)\['model'\], 'new/",
        ),
    ],
)
def test_pytorch_file_of_another_form(save_peer, content, remedy):
    _, path = save_peer()
    (path / "model.safetensors").unlink()
    torch.save(content, path / "pytorch_model.bin")
    with pytest.raises(ValueError, match=f"dictionary of tensors.*{remedy}"):
        open_checkpoint(path)


def test_missing_shard_is_named(save_peer):
    _, path = save_peer(max_shard_size="2KB")
    shard = sorted(path.glob("model-*"))[1]
    shard.unlink()
    with pytest.raises(FileNotFoundError, match=shard.name):
        open_checkpoint(path)


def test_incomplete_shard_is_named(save_peer):
    _, path = save_peer(max_shard_size="2KB")
    shard = sorted(path.glob("model-*"))[1]
    save_file({"other": np.zeros(1)}, shard)
    with pytest.raises(ValueError, match=f"{shard.name}.*lacks"):
        open_checkpoint(path)


@pytest.mark.parametrize("index", ["{", "[]", '{"weight_map": {"a": 1}}', "{}"])
def test_broken_index(save_peer, index):
    _, path = save_peer(max_shard_size="2KB")
    (path / "model.safetensors.index.json").write_text(index)
    with pytest.raises(ValueError, match="index.json cannot be read"):
        open_checkpoint(path)


def test_index_must_not_leave_its_directory(save_peer):
    _, path = save_peer(max_shard_size="2KB")
    index = {"weight_map": {"a": "../secret.safetensors"}}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ValueError, match="outside"):
        open_checkpoint(path)


@pytest.mark.long("combinations")
def test_minilm(minilm_directory):
    peer = transformers.BertModel.from_pretrained(minilm_directory).eval()
    rng = np.random.default_rng(0)
    inputs = {
        "token_ids": rng.integers(0, 30522, (2, 16)).astype("int32"),
        "segment_ids": np.zeros((2, 16), "int32"),
        "padding_mask": np.ones((2, 16), "int32"),
    }
    checkpoint = open_checkpoint(minilm_directory)
    assert checkpoint.sequence_length == 256
    check_same_outputs(load_backbone(minilm_directory), peer, inputs, tolerance=2e-5)
