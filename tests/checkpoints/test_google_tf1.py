"""The original TensorFlow 1 checkpoints."""

import json
import re
import shutil

import numpy as np
import pytest
import torch
import transformers
from peer_weights import run_transformers, to_numpy, transformers_peer

from keras_bert_suite.checkpoints import load_weights, open_checkpoint
from keras_bert_suite.models import BertBackbone


@pytest.fixture
def toy_copy(toy, tmp_path):
    return shutil.copytree(toy, tmp_path / "toy")


def toy_peer(checkpoint):
    """transformers' BertModel with the toy's tensors, by transformers' own naming rules."""
    config = checkpoint.backbone_config
    peer = transformers_peer(
        transformers.BertModel,
        transformers.BertConfig(
            vocab_size=15,
            hidden_size=4,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=16,
            max_position_embeddings=16,
            hidden_act="gelu_new",
            layer_norm_eps=config["layer_norm_epsilon"],
        ),
    )
    state = {}
    for name in checkpoint.tensor_shapes():
        if re.match(r"bert/.*(?<!adam_[mv])$", name):
            value = np.array(checkpoint.tensor(name))
            theirs = name.removeprefix("bert/").replace("layer_", "layer.").replace("/", ".")
            theirs = re.sub(r"(?<=_embeddings)$|gamma$|kernel$", "weight", theirs)
            theirs = re.sub(r"embeddingsweight$", "embeddings.weight", theirs)
            theirs = re.sub(r"beta$", "bias", theirs)
            state[theirs] = torch.tensor(value.T if name.endswith("kernel") else value)
    peer.load_state_dict(state)
    return peer


def test_toy_checkpoint_gives_the_outputs_of_transformers(toy, inputs):
    checkpoint = open_checkpoint(toy)
    backbone = BertBackbone(**checkpoint.backbone_config)
    load_weights(backbone, checkpoint)
    outputs = backbone(inputs)
    with torch.no_grad():
        expected = run_transformers(toy_peer(checkpoint), inputs)
    for got, wanted in (
        (outputs["sequence_output"], expected.last_hidden_state),
        (outputs["pooled_output"], expected.pooler_output),
    ):
        np.testing.assert_allclose(to_numpy(got), wanted.numpy(), atol=1e-5)


def test_configuration(toy):
    checkpoint = open_checkpoint(toy)
    assert checkpoint.backbone_config == {
        "vocabulary_size": 15,
        "num_layers": 2,
        "num_heads": 4,
        "hidden_dim": 4,
        "intermediate_dim": 16,
        "activation": "gelu_tanh",
        "dropout": 0.1,
        "attention_dropout": 0.1,
        "max_sequence_length": 16,
        "num_segments": 2,
        "layer_norm_epsilon": 1e-12,
        "initializer_range": 0.02,
    }
    assert checkpoint.tokenizer_config == {"vocabulary": str(toy / "vocab.txt"), "lowercase": True}
    assert checkpoint.label_names is None
    assert checkpoint.sequence_length is None
    assert len(checkpoint.tensor_shapes()) == 139


def test_prefix_of_the_checkpoint_is_enough(toy):
    checkpoint = open_checkpoint(toy / "bert_model.ckpt")
    assert checkpoint.backbone_config == open_checkpoint(toy).backbone_config


def test_classifier_of_run_classifier(toy, tmp_path, make_classifier, inputs):
    """As `run_classifier.py` saves it: with a head at the root and no cls/."""
    tf = pytest.importorskip("tensorflow")
    source = open_checkpoint(toy)
    values = {
        name: np.array(source.tensor(name))
        for name in source.tensor_shapes()
        if name.startswith("bert/")
    }
    rng = np.random.default_rng(0)
    values["output_weights"] = rng.normal(size=(3, 4)).astype("float32")
    values["output_bias"] = rng.normal(size=3).astype("float32")
    values["output_weights/adam_m"] = np.zeros((3, 4), "float32")
    values["global_step"] = np.array(7, "int64")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variables = {name: tf.Variable(value, name=name) for name, value in values.items()}
        session.run(tf.compat.v1.global_variables_initializer())
        saver = tf.compat.v1.train.Saver(variables)
        saver.save(session, str(tmp_path / "model.ckpt"), global_step=7, write_meta_graph=False)
    for name in ("bert_config.json", "vocab.txt"):
        shutil.copy(toy / name, tmp_path)

    checkpoint = open_checkpoint(tmp_path)
    model = make_classifier(checkpoint.backbone_config, 3)
    load_weights(model, checkpoint)
    with torch.no_grad():
        pooled = run_transformers(toy_peer(source), inputs).pooler_output.numpy()
    expected = pooled @ values["output_weights"].T + values["output_bias"]
    np.testing.assert_allclose(to_numpy(model(inputs)), expected, atol=1e-5)


def test_damaged_data_leaves_the_model_as_it_was(toy_copy, values_of):
    backbone = BertBackbone(**open_checkpoint(toy_copy).backbone_config)
    before = values_of(backbone)
    # One bit of the last tensor to be read: all the others are fine.
    file = toy_copy / "bert_model.ckpt.data-00000-of-00001"
    data = bytearray(file.read_bytes())
    kernel = open_checkpoint(toy_copy).tensor("bert/pooler/dense/kernel").tobytes()
    data[data.index(kernel)] ^= 1
    file.write_bytes(data)
    with pytest.raises(ValueError, match="00001 cannot be read: the checksum of bert/pooler"):
        load_weights(backbone, open_checkpoint(toy_copy))
    for path, value in values_of(backbone).items():
        np.testing.assert_array_equal(value, before[path])


@pytest.mark.parametrize("name", ["bert_model.ckpt.index", "bert_model.ckpt.data-00000-of-00001"])
@pytest.mark.parametrize("cut", [0, 10, 1000, -1])
def test_truncated_files(toy_copy, name, cut):
    file = toy_copy / name
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(ValueError, match=f"{name} cannot be read.*download it again"):
        open_checkpoint(toy_copy)


@pytest.mark.parametrize(
    "name, wanted",
    [
        ("bert_model.ckpt.data-00000-of-00001", "data-00000-of-00001"),
        ("bert_config.json", "no bert_config.json"),
    ],
)
def test_missing_file_is_named(toy_copy, name, wanted):
    (toy_copy / name).unlink()
    with pytest.raises(FileNotFoundError, match=wanted):
        open_checkpoint(toy_copy)


def test_configuration_under_another_name(toy_copy):
    """As in RBT3 and other Chinese releases: bert_config_rbt3.json."""
    expected = open_checkpoint(toy_copy).backbone_config
    (toy_copy / "bert_config.json").rename(toy_copy / "bert_config_rbt3.json")
    assert open_checkpoint(toy_copy).backbone_config == expected
    shutil.copy(toy_copy / "bert_config_rbt3.json", toy_copy / "bert_config_rbt4.json")
    with pytest.raises(ValueError, match="rbt3.json, bert_config_rbt4.json. Rename the file"):
        open_checkpoint(toy_copy)
    # The usual name goes before the others, which may be older.
    (toy_copy / "bert_config_rbt3.json").rename(toy_copy / "bert_config.json")
    (toy_copy / "bert_config_rbt4.json").write_text("{}")
    assert open_checkpoint(toy_copy).backbone_config == expected


def test_missing_vocabulary_matters_to_the_tokenizer_only(toy_copy):
    (toy_copy / "vocab.txt").unlink()
    checkpoint = open_checkpoint(toy_copy)
    with pytest.raises(FileNotFoundError, match="no vocab.txt"):
        _ = checkpoint.tokenizer_config


def test_several_checkpoints_are_named(toy_copy):
    for suffix in ("index", "data-00000-of-00001"):
        source = toy_copy / f"bert_model.ckpt.{suffix}"
        shutil.copy(source, toy_copy / f"model.ckpt-1000.{suffix}")
        shutil.copy(source, toy_copy / f"model.ckpt-2000.{suffix}")
    assert open_checkpoint(toy_copy).path.name == "bert_model.ckpt"
    (toy_copy / "bert_model.ckpt.index").unlink()
    with pytest.raises(ValueError, match=r"model.ckpt-1000, model.ckpt-2000.*Pass the one"):
        open_checkpoint(toy_copy)
    assert open_checkpoint(toy_copy / "model.ckpt-1000").path.name == "model.ckpt-1000"


@pytest.mark.parametrize(
    "field, value, message",
    [
        ("hidden_size", -4, "positive integer"),
        ("hidden_act", "linear", "one of gelu, gelu_tanh, gelu_new, gelu_erf, relu"),
        ("num_hidden_layers", None, "'num_hidden_layers' in .* must be a positive"),
    ],
)
def test_wrong_configuration_is_named(toy_copy, field, value, message):
    path = toy_copy / "bert_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    with pytest.raises(ValueError, match=message) as error:
        open_checkpoint(toy_copy)
    assert "model_type" not in str(error.value), "a field that the file does not have"
