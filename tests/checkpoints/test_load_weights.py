"""All weights or none: what does not fit is named, and the model stays as it was."""

import re

import numpy as np
import pytest
from peer_weights import to_numpy
from safetensors.numpy import load_file, save_file

from keras_bert_suite.checkpoints import load_weights, open_checkpoint
from keras_bert_suite.models import BertBackbone


@pytest.fixture
def edit(save_peer):
    """Function: saves a model, lets a function edit its tensors, opens the result."""

    def save_and_edit(change, model_name="BertModel"):
        _, path = save_peer(model_name)
        tensors = load_file(path / "model.safetensors")
        change(tensors)
        save_file(tensors, path / "model.safetensors")
        return open_checkpoint(path)

    return save_and_edit


def check_refused(model, checkpoint, values_of, *messages, skip=()):
    before = values_of(model)
    with pytest.raises(ValueError) as error:
        load_weights(model, checkpoint, skip=skip)
    for message in messages:
        assert message in str(error.value)
    for path, value in values_of(model).items():
        np.testing.assert_array_equal(value, before[path], err_msg=path)
    return str(error.value)


def test_every_problem_is_named_at_once(edit, values_of):
    def change(tensors):
        del tensors["encoder.layer.0.output.dense.bias"]
        del tensors["embeddings.LayerNorm.weight"]
        tensors["encoder.layer.1.attention.self.query.bias"] = np.zeros(9, "float32")
        tensors["encoder.layer.1.crossattention.self.query.bias"] = np.zeros(8, "float32")

    checkpoint = edit(change)
    message = check_refused(
        BertBackbone(**checkpoint.backbone_config),
        checkpoint,
        values_of,
        "bert.encoder.layer.0.output.dense.bias: missing, wanted for "
        "transformer_layer_0/feedforward_output/bias",
        "bert.embeddings.LayerNorm.weight: missing, wanted for embeddings/layer_norm/gamma",
        "encoder.layer.1.attention.self.query.bias: has shape (9,), wanted (8,) for "
        "transformer_layer_1/self_attention/query/bias",
        "encoder.layer.1.crossattention.self.query.bias: shape (8,), the model has no such weight",
        str(checkpoint.path),
    )
    assert len(re.findall(r"\n  ", message)) == 4


def test_shapes_are_told_as_the_file_has_them(edit, values_of):
    checkpoint = edit(lambda tensors: None)
    backbone = BertBackbone(**{**checkpoint.backbone_config, "intermediate_dim": 20})
    check_refused(
        backbone,
        checkpoint,
        values_of,
        "encoder.layer.0.intermediate.dense.weight: has shape (16, 8), wanted (20, 8)",
        "encoder.layer.1.output.dense.weight: has shape (8, 16), wanted (8, 20)",
    )


@pytest.mark.parametrize("num_layers", [1, 3])
def test_other_number_of_layers(edit, values_of, num_layers):
    checkpoint = edit(lambda tensors: None)
    backbone = BertBackbone(**{**checkpoint.backbone_config, "num_layers": num_layers})
    name = f"encoder.layer.{num_layers // 2 + 1}.output.dense.weight"
    check_refused(backbone, checkpoint, values_of, name)


def test_wrong_vocabulary_names_both_sizes(edit, values_of):
    checkpoint = edit(lambda tensors: None)
    backbone = BertBackbone(**{**checkpoint.backbone_config, "vocabulary_size": 30})
    check_refused(backbone, checkpoint, values_of, "has shape (24, 8), wanted (30, 8)")


def test_half_a_pooler_is_an_error(edit, values_of):
    checkpoint = edit(lambda tensors: tensors.pop("pooler.dense.bias"))
    backbone = BertBackbone(**checkpoint.backbone_config)
    check_refused(backbone, checkpoint, values_of, "bert.pooler.dense.bias: missing")


def test_weight_without_a_row_is_an_error(edit, values_of):
    checkpoint = edit(lambda tensors: None)
    backbone = BertBackbone(**checkpoint.backbone_config, embedding_dim=4)
    check_refused(backbone, checkpoint, values_of, "embeddings/projection/kernel: no tensor")


def test_integers_are_refused(edit, values_of):
    def change(tensors):
        name = "encoder.layer.1.output.dense.weight"
        tensors[name] = tensors[name].astype("int8")

    checkpoint = edit(change)
    backbone = BertBackbone(**checkpoint.backbone_config)
    check_refused(backbone, checkpoint, values_of, "layer.1.output.dense.weight", "dtype int8")


def test_missing_classifier_is_an_error(edit, values_of, make_classifier):
    checkpoint = edit(lambda tensors: None)
    model = make_classifier(checkpoint.backbone_config, 2)
    check_refused(
        model,
        checkpoint,
        values_of,
        "classifier.weight: missing, wanted for classifier/kernel",
        'skip=["classifier/.*"]',
    )


@pytest.mark.parametrize("model_name", ["BertModel", "BertForSequenceClassification"])
def test_new_classifier_is_skipped(edit, values_of, make_classifier, model_name):
    checkpoint = edit(lambda tensors: None, model_name)
    model = make_classifier(checkpoint.backbone_config, 5)
    before = values_of(model)
    load_weights(model, checkpoint, skip=["classifier/.*"])
    after = values_of(model)
    changed = {path for path in after if not np.array_equal(after[path], before[path])}
    assert changed == {path for path in after if not path.startswith("classifier/")}


def test_skipped_weights_keep_their_values(edit, values_of):
    checkpoint = edit(lambda tensors: tensors.pop("encoder.layer.1.output.dense.bias"))
    backbone = BertBackbone(**checkpoint.backbone_config)
    before = values_of(backbone)
    load_weights(backbone, checkpoint, skip="transformer_layer_1/.*")
    after = values_of(backbone)
    for path in after:
        skipped = path.startswith("transformer_layer_1/")
        assert np.array_equal(after[path], before[path]) == skipped, path


def test_loaded_weights_do_not_depend_on_the_file(edit, values_of):
    checkpoint = edit(lambda tensors: None)
    backbone = BertBackbone(**checkpoint.backbone_config)
    load_weights(backbone, checkpoint)
    before = values_of(backbone)
    file = checkpoint.path / "model.safetensors"
    with open(file, "r+b") as opened:
        opened.write(b"\0" * file.stat().st_size)
    for path, value in values_of(backbone).items():
        np.testing.assert_array_equal(value, before[path], err_msg=path)


@pytest.mark.backend("torch")  # JAX has no float64 unless it is told so.
def test_weights_are_cast_as_numpy_casts(edit):
    """A file of float64 keeps its precision in a model of float64."""
    name = "embeddings.word_embeddings.weight"

    def change(tensors):
        tensors[name] = np.random.default_rng(0).normal(size=tensors[name].shape)

    checkpoint = edit(change)
    values = load_file(checkpoint.path / "model.safetensors")[name]
    for dtype in ("float64", "float32", "float16"):
        model = BertBackbone(**checkpoint.backbone_config, dtype=dtype)
        load_weights(model, checkpoint)
        got = to_numpy(model.token_embedding.embeddings)
        np.testing.assert_array_equal(got, values.astype(dtype))


def test_a_tensor_that_is_there_twice(edit):
    def change(tensors):
        name = "embeddings.LayerNorm.weight"
        tensors["bert.embeddings.LayerNorm.gamma"] = tensors[name].copy()

    checkpoint = edit(change)
    message = "the same tensor twice, as '.*LayerNorm.*' and as '.*LayerNorm.*'. Remove one of them"
    with pytest.raises(ValueError, match=message):
        load_weights(BertBackbone(**checkpoint.backbone_config), checkpoint)


def test_two_weights_with_one_path(edit):
    checkpoint = edit(lambda tensors: None)
    backbone = BertBackbone(**checkpoint.backbone_config)
    path = backbone.pooler.bias.path
    backbone.pooler.kernel._path = path
    message = (
        f"Two weights of the model '{backbone.name}' have the path '{path}', .* different name"
    )
    with pytest.raises(ValueError, match=message):
        load_weights(backbone, checkpoint)
