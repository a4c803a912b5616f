"""A model that is frozen, wholly or in part, is so after it was saved and loaded."""

import keras
import keras_hub
import numpy as np
import pytest
from keras import ops
from small_texts import TINY
from tables import left_out

from keras_bert_suite import (
    BertBackbone,
    BitFit,
    LoRA,
    PrefixTuning,
    Pretrainer,
    TextClassifier,
)


def freeze_all(backbone):
    backbone.trainable = False


def freeze_a_block(backbone):
    backbone.transformer_layers[0].trainable = False


def freeze_embeddings(backbone):
    backbone.embeddings.trainable = False


def freeze_parts_of_parts(backbone):
    backbone.embeddings.token_embedding.trainable = False
    backbone.transformer_layers[1].self_attention.query.trainable = False


def freeze_all_but_the_last_block(backbone):
    backbone.trainable = False
    backbone.transformer_layers[-1].trainable = True


FREEZES = [
    freeze_all,
    freeze_a_block,
    freeze_embeddings,
    freeze_parts_of_parts,
    freeze_all_but_the_last_block,
]


def states_of(backbone):
    """What each weight and each layer that has weights says of itself."""
    layers = {
        "embeddings": backbone.embeddings,
        "first": backbone.transformer_layers[0],
        "query": backbone.transformer_layers[1].self_attention.query,
        "all": backbone,
    }
    states = {name: layer.trainable for name, layer in layers.items()}
    return {**states, **{weight.path: weight.trainable for weight in backbone.weights}}


@pytest.mark.parametrize("freeze", FREEZES)
def test_saved_and_loaded(tmp_path, freeze):
    backbone = BertBackbone(**TINY)
    freeze(backbone)
    wanted = states_of(backbone)
    assert len(set(wanted.values())) == (1 if freeze is freeze_all else 2)
    backbone.save(tmp_path / "backbone.keras")
    assert states_of(keras.saving.load_model(tmp_path / "backbone.keras")) == wanted
    backbone.save_to_preset(str(tmp_path / "preset"))
    loaded = BertBackbone.from_preset(str(tmp_path / "preset"))
    assert states_of(loaded) == wanted
    if freeze is not freeze_all_but_the_last_block:
        return  # A step follows what the weights say of themselves.
    assert moved_by_a_step(loaded) == {
        weight.path for weight in backbone.weights if weight.trainable
    } | {"head/kernel", "head/bias"}


def moved_by_a_step(backbone):
    """The paths of the weights that one step of a model around the backbone changes."""
    pooled = backbone(backbone.input)["pooled_output"]
    model = keras.Model(backbone.input, keras.layers.Dense(1, name="head")(pooled))
    x = {
        "token_ids": np.arange(8, dtype="int32").reshape(2, 4),
        "segment_ids": np.array([[0, 0, 1, 1]] * 2, "int32"),
        "padding_mask": np.ones((2, 4), "int32"),
    }
    before = [ops.convert_to_numpy(weight).copy() for weight in model.weights]
    # The decay moves what has a gradient of 0 as well; jit_compile would take most of the time.
    model.compile(keras.optimizers.AdamW(0.1, weight_decay=0.1), "mse", jit_compile=False)
    model.fit(x, np.ones((2, 1), "float32"), verbose=0)
    return {
        weight.path
        for weight, array in zip(model.weights, before, strict=True)
        if (ops.convert_to_numpy(weight) != array).any()
    }


def test_built_frozen():
    """Under PyTorch the layers of a KerasHub backbone do not know."""
    backbone = BertBackbone(**TINY, trainable=False)
    assert not any(states_of(backbone).values())
    assert "trainability" not in backbone.get_config()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("adaptation", [LoRA(2), BitFit(), PrefixTuning(2, 3)], ids=repr)
def test_an_adapter_is_frozen_with_an_encoder_after_it(adaptation, when):
    """An encoder that was frozen before trains the adapter, as any encoder."""
    backbone = BertBackbone(**TINY)
    if when == "before":
        backbone.trainable = False
    backbone.add_adapter(adaptation)
    if when == "after":
        backbone.trainable = False
    own = backbone.weights_of_adapter("default").values() if when == "before" else ()
    for each in (backbone, BertBackbone.from_config(backbone.get_config())):
        trained = [weight.path for weight in each.weights if weight.trainable]
        assert trained == [weight.path for weight in own]


def test_thawed_when_loaded(tmp_path):
    backbone = BertBackbone(**TINY, trainable=False)
    backbone.save_to_preset(str(tmp_path))
    assert all(states_of(BertBackbone.from_preset(str(tmp_path), trainable=True)).values())


@pytest.mark.parametrize("layer", [None, 0])
def test_a_task_on_a_backbone_of_kerashub(tmp_path, layer):
    """KerasHub saves no layer's `trainable`, and under PyTorch does not restore its own."""
    arguments = dict(vocabulary_size=20, num_layers=2, num_heads=2, hidden_dim=8)
    backbone = keras_hub.models.BertBackbone(**arguments, intermediate_dim=8)
    (backbone if layer is None else backbone.transformer_layers[layer]).trainable = False
    task = TextClassifier(backbone, num_classes=2, compile=False)
    wanted = [weight.path for weight in task.trainable_weights]
    assert 2 <= len(wanted) < len(task.weights)
    task.save(tmp_path / "task.keras")
    loaded = keras.saving.load_model(tmp_path / "task.keras")
    assert [weight.path for weight in loaded.trainable_weights] == wanted
    assert loaded.backbone.trainable == backbone.trainable
    task.save_to_preset(str(tmp_path / "preset"))
    loaded = TextClassifier.from_preset(tmp_path / "preset", preprocessor=None)
    assert [weight.path for weight in loaded.trainable_weights] == wanted


def freeze_classifier(task):
    task.classifier.trainable = False


def freeze_part_of_a_head(task):
    task.masked_lm.transform.trainable = False


def freeze_task(task):
    task.trainable = False


def freeze_all_but_the_backbone(task):
    task.trainable = False
    task.backbone.trainable = True


def freeze_all_but_the_head(task):
    task.trainable = False
    task.classifier.trainable = True
    task.backbone.transformer_layers[1].trainable = True


@pytest.mark.parametrize(
    "freeze",
    [
        pytest.param(freeze_classifier, marks=left_out("combinations")),
        pytest.param(freeze_part_of_a_head, marks=pytest.mark.every_backend),
        pytest.param(freeze_task, marks=left_out("combinations")),
        freeze_all_but_the_backbone,
        freeze_all_but_the_head,
    ],
)
def test_heads(tmp_path, freeze):
    if freeze is freeze_part_of_a_head:
        task = Pretrainer(BertBackbone(**TINY), compile=False)
    else:
        task = TextClassifier(BertBackbone(**TINY), num_classes=2, compile=False)
    freeze(task)
    wanted = {weight.path: weight.trainable for weight in task.weights}
    assert not all(wanted.values())
    task.save(tmp_path / "task.keras")
    loaded = keras.saving.load_model(tmp_path / "task.keras")
    assert {weight.path: weight.trainable for weight in loaded.weights} == wanted
    assert loaded.trainable == task.trainable
    task.save_to_preset(str(tmp_path / "preset"))
    loaded = type(task).from_preset(tmp_path / "preset", preprocessor=None)
    assert {weight.path: weight.trainable for weight in loaded.weights} == wanted
    if isinstance(task, TextClassifier):
        with pytest.warns(UserWarning, match="holds a classification layer"):
            loaded = type(task).from_preset(tmp_path / "preset", num_classes=2, preprocessor=None)
        assert all(weight.trainable for weight in loaded.classifier.weights)
