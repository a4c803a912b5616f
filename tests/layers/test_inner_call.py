"""Layers within a layer give the same under PyTorch without the whole call of Keras.

The oracle is `Layer.__call__` of Keras, for every kind of block.
"""

import keras
import numpy as np
import pytest
from peer_weights import randomize, to_numpy

from keras_bert_suite import BertBackbone, ModernBertBackbone, RoFormerBackbone
from keras_bert_suite.layers import inner_call

pytestmark = pytest.mark.backend("torch")

SIZES = {
    "vocabulary_size": 40,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 16,
    "intermediate_dim": 24,
}


@pytest.fixture
def counts(monkeypatch):
    """How many inner layers were called with and without the whole call."""
    counts = {True: 0, False: 0}
    is_plain = inner_call._is_plain

    def count(layer, x):
        plain = is_plain(layer, x)
        counts[plain] += 1
        return plain

    monkeypatch.setattr(inner_call, "_is_plain", count)
    return counts


def quantize(backbone):
    backbone.quantize("int8")


def add_lora(backbone):
    rng = np.random.default_rng(1)
    for block in backbone.transformer_layers:
        for dense in (block.self_attention.output_projection, block.feedforward_output):
            dense.enable_lora(2)
            dense.lora_kernel_b.assign(rng.normal(size=tuple(dense.lora_kernel_b.shape)))


def widen_norms(backbone):
    for block in backbone.transformer_layers:
        block.feedforward_norm.dtype_policy = "float32"


CASES = {
    "float32": ("float32", None),
    "mixed": ("mixed_bfloat16", None),
    "bfloat16": ("bfloat16", None),
    "int8": ("float32", quantize),
    "int8 of mixed": ("mixed_bfloat16", quantize),
    "LoRA": ("float32", add_lora),
    "norms in float32": ("mixed_bfloat16", widen_norms),
}
KINDS = {"bert": BertBackbone, "rotary": RoFormerBackbone, "modern": ModernBertBackbone}


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_setting_has_its_effect(kind, case, training, counts, monkeypatch):
    dtype, change = CASES[case]
    backbone = KINDS[kind](**SIZES, dtype=dtype)
    randomize(backbone)
    if change is not None:
        change(backbone)
    arrays = {
        name: np.ones((2, 7), "int32") if name == "padding_mask" else np.arange(14).reshape(2, 7)
        for name in backbone.input
    }
    if "segment_ids" in arrays:
        arrays["segment_ids"] = arrays["segment_ids"] % 2
    counts.update({True: 0, False: 0})
    keras.utils.set_random_seed(0)
    found = to_numpy(backbone(arrays, training=training)["sequence_output"])
    assert counts[True] > 4, "the short way is not taken"
    monkeypatch.setattr(inner_call, "_is_plain", lambda layer, x: False)
    keras.utils.set_random_seed(0)
    expected = to_numpy(backbone(arrays, training=training)["sequence_output"])
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype


def test_hooks_of_pytorch_are_called():
    backbone = BertBackbone(**SIZES)
    called = []
    backbone.transformer_layers[0].intermediate.register_forward_hook(
        lambda *arguments: called.append("after")
    )
    backbone.transformer_layers[1].self_attention.query.register_forward_pre_hook(
        lambda *arguments: called.append("before")
    )
    backbone({name: np.ones((1, 3), "int32") for name in backbone.input})
    assert called == ["after", "before"]


def test_a_regularizer_of_outputs_is_added():
    backbone = BertBackbone(**SIZES)
    backbone.transformer_layers[0].intermediate.activity_regularizer = keras.regularizers.L2(0.5)
    backbone({name: np.ones((1, 3), "int32") for name in backbone.input})
    assert len(backbone.losses) == 1 and float(backbone.losses[0]) > 0
