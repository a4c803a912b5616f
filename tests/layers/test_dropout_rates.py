"""Dropout of single layers, which a whole model would hide behind another dropout."""

import importlib
import inspect
import pkgutil

import keras
import numpy as np
import pytest
import torch
from peer_weights import randomize, to_numpy

import keras_bert_suite.layers as layers
from keras_bert_suite.argument_checks import list_arguments
from keras_bert_suite.layers.adapters.low_rank import LowRank
from keras_bert_suite.layers.attention import attention_kernels, self_attention
from keras_bert_suite.layers.heads.entity_states import EntityAverages
from keras_bert_suite.layers.heads.pair_score import PairScore

B, L, H = 2, 7, 8
HIDDEN = np.random.default_rng(0).standard_normal((B, L, H)).astype("float32")
MASK = (np.arange(L) < np.array([[7], [4]])).astype("int32")
POSITIONS = np.tile(np.arange(L, dtype="int32"), (B, 1))
TOKENS = MASK == 1
HEADS = {"num_heads": 2}
SIZES = {"num_heads": 2, "intermediate_dim": 6}
HASHING = layers.TokenHashing(chunk_length=2, num_buckets=4)


def in_windows(layer, **mode):
    ids = np.full((B, L), 9, "int32")
    return layer(HIDDEN, attention_mask=layers.GlobalTokens()(ids, MASK), **mode)


def with_positions(layer, **mode):
    return layer(HIDDEN, MASK, positions=POSITIONS, **mode)


def in_pairs(layer, **mode):
    sinusoids = layers.RelativeSinusoids(0.0)(HIDDEN)
    differs = (MASK[:, :, None] + np.arange(L)) % 2 == 1
    return layer(HIDDEN, MASK, sinusoids=sinusoids, differs=differs, **mode)


def of_states(layer, **mode):
    return layer(HIDDEN, **mode)


def of_ids(layer, **mode):
    return layer(np.arange(B * L, dtype="int32").reshape(B, L), **mode)


def pooled(layer, **mode):
    return layer(HIDDEN, MASK, **mode)


def across(layer, **mode):
    """Only the attention to an encoder drops."""
    vars(layer.self_attention)["dropout"] = 0.0  # An argument, which is fixed.
    encoded = {"encoder_sequence": HIDDEN[:, ::-1], "encoder_padding_mask": MASK}
    return layer(HIDDEN, MASK, **encoded, **mode)


def of_entities(layer, **mode):
    """Its three vectors as rows."""
    markers = np.tile(np.array([0, 2, 3, 6], "int32"), (B, 1))
    return keras.ops.reshape(layer(HIDDEN, HIDDEN[:, 0], markers, **mode), (3 * B, H))


def of_vectors(layer, **mode):
    """The scores of vectors and those before them."""
    return layer(HIDDEN, HIDDEN[:, ::-1], **mode)


#: (class, arguments, rate, how it is called).
CASES = [
    *(
        (cls, HEADS, "dropout", with_positions)
        for cls in (layers.SelfAttention, layers.RotaryAttention, layers.RelativeAttention)
    ),
    (layers.LongformerAttention, {**HEADS, "reach": 1}, "dropout", in_windows),
    (layers.LshAttention, {**HEADS, "hashing": HASHING}, "dropout", pooled),
    *(
        (layers.LshBlock, {**SIZES, "hashing": HASHING, "remat": remat}, rate, pooled)
        for rate in ("dropout", "attention_dropout")
        for remat in (False, True)
    ),
    (layers.ModernBertAttention, HEADS, "dropout", with_positions),
    (layers.ModernBertAttention, {**HEADS, "reach": 1}, "dropout", with_positions),
    *(
        (cls, {**SIZES, "remat": remat}, rate, call)
        for cls, call in (
            (layers.TransformerBlock, with_positions),
            (layers.RotaryBlock, with_positions),
            (layers.RelativeBlock, with_positions),
            (layers.LongformerBlock, in_windows),
            (layers.XLNetBlock, in_pairs),
        )
        for rate in ("dropout", "attention_dropout")
        for remat in (False, True)
    ),
    *(
        (layers.ModernBertBlock, {**SIZES, "remat": remat}, rate, with_positions)
        for rate in ("mlp_dropout", "attention_dropout")
        for remat in (False, True)
    ),
    *(
        (cls, {"vocabulary_size": 20, "hidden_dim": H}, "dropout", of_ids)
        for cls in (
            layers.BertEmbeddings,
            layers.ProjectedEmbeddings,
            layers.UnplacedEmbeddings,
            layers.TokenEmbeddings,
            layers.XLNetEmbeddings,
        )
    ),
    (layers.XLNetAttention, HEADS, "dropout", in_pairs),
    (layers.RelativeSinusoids, {}, "dropout", of_states),
    *(
        (layers.BartBlock, {**SIZES, "pre_norm": pre_norm}, rate, with_positions)
        for rate in ("dropout", "attention_dropout", "activation_dropout")
        for pre_norm in (False, True)
    ),
    (
        layers.BartEmbeddings,
        {"token_embedding": keras.layers.ReversibleEmbedding(20, H), "max_sequence_length": 30},
        "dropout",
        of_ids,
    ),
    (layers.WindowTransformer, {"num_heads": 2}, "dropout", pooled),
    *(
        (
            layers.TransformerBlock,
            {**SIZES, "has_cross_attention": True, "remat": remat},
            "attention_dropout",
            across,
        )
        for remat in (False, True)
    ),
    (EntityAverages, {}, "dropout", of_entities),
    (PairScore, {"hidden_dim": 6}, "dropout", of_vectors),
    (LowRank, {"units": H, "rank": H, "scale": 1.0}, "dropout", of_states),
]


def test_every_layer_with_a_rate_is_here():
    found = set()
    for module in pkgutil.walk_packages(layers.__path__, f"{layers.__name__}."):
        for cls in vars(importlib.import_module(module.name)).values():
            if not inspect.isclass(cls) or not issubclass(cls, keras.layers.Layer):
                continue
            if cls.__module__ == module.name and cls.__name__[0] != "_":
                found |= {(cls, name) for name in list_arguments(cls) if "dropout" in name}
    assert found == {(cls, rate) for cls, _, rate, _ in CASES}


@pytest.mark.parametrize(
    ("cls", "arguments", "rate", "call"),
    [pytest.param(*case, id=f"{case[0].__name__}-{case[2]}-{i}") for i, case in enumerate(CASES)],
)
def test_a_rate_alone(cls, arguments, rate, call):
    rates = dict.fromkeys((name for name in list_arguments(cls) if "dropout" in name), 0.0)
    layer = cls(**arguments, **{**rates, rate: 0.5})
    call(layer)
    randomize(layer)
    without = cls(**arguments, **{**rates, rate: 0.0})
    call(without)
    without.set_weights(layer.get_weights())
    wanted = to_numpy(call(without, training=True))
    for mode in ({}, {"training": False}):
        np.testing.assert_allclose(to_numpy(call(layer, **mode)), wanted, atol=1e-5)
    # One pair of draws may be alike.
    draws = np.stack([to_numpy(call(layer, training=True)) for _ in range(4)])
    spread = np.ptp(draws, axis=0)
    # Of every row; of windows also of the global token, which attends by itself.
    rows = spread if spread.ndim == 2 else spread[:, 0]
    assert (rows.max(axis=-1) > 1e-3).all()
    assert spread[:, -4:].max() > 1e-3
    assert np.abs(draws - wanted).max() > 1e-3


@pytest.mark.backend("torch")
def test_a_fused_kernel_gets_the_rate(monkeypatch):
    """As on a GPU, where PyTorch's kernels drop."""
    taken = []

    def fused(query, dropout):
        taken.append(dropout)
        query = query.detach()
        query.__class__ = type("OnGpu", (torch.Tensor,), {"is_cuda": True})
        return attention_kernels.fused_attention(query, dropout)

    monkeypatch.setattr(self_attention, "fused_attention", fused)
    monkeypatch.setattr(self_attention, "plain_attention", None)
    layer = layers.SelfAttention(2, dropout=0.5)
    layer(HIDDEN)
    randomize(layer)
    kept = [to_numpy(layer(HIDDEN, MASK)) for _ in range(2)]
    np.testing.assert_array_equal(*kept)
    first, second = (to_numpy(layer(HIDDEN, MASK, training=True)) for _ in range(2))
    assert np.abs(first - second).max() > 1e-3 and np.abs(first - kept[0]).max() > 1e-3
    assert taken == [0.0, 0.0, 0.0, 0.5, 0.5]
