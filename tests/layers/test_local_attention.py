"""Attention within a window, block by block, beside the whole formula with a mask."""

import numpy as np
import pytest
from checkers import check_layer
from gradients import input_gradients
from keras import ops
from peer_weights import to_numpy
from tables import everywhere_for

import keras_bert_suite.layers.attention.local_attention as local_attention
from keras_bert_suite.layers import ModernBertAttention, ModernBertBlock
from keras_bert_suite.layers.attention.attention_kernels import plain_attention
from keras_bert_suite.layers.attention.local_attention import attend_locally

HEADS, WIDTH = 2, 4


@pytest.fixture(autouse=True)
def blocks(monkeypatch):
    """Also short rows are computed block by block."""
    monkeypatch.setattr(local_attention, "_FEW_BLOCKS", 0)


def make_rows(length, packed):
    """Queries, keys, values, numbers of sequences and positions, with padding or packed."""
    rng = np.random.default_rng(length)
    arrays = rng.standard_normal((3, 2, HEADS, length, WIDTH)).astype("float32")
    sequences = np.ones((2, length), "int32")
    positions = np.arange(length, dtype="int32")[None]
    sequences[1, length - length // 3 :] = 0
    if packed:
        sequences[0] = np.arange(length) // 4
        sequences[1, -1:] = -1
        positions = np.stack([np.arange(length) % 4, np.arange(length) * 2]).astype("int32")
    return arrays, sequences, positions


def mask_by_hand(sequences, positions, reach):
    positions = np.broadcast_to(positions, sequences.shape)
    rows = range(sequences.shape[1])
    return np.array(
        [
            [[s[i] == s[j] and abs(int(p[i]) - int(p[j])) <= reach for j in rows] for i in rows]
            for s, p in zip(sequences, positions, strict=True)
        ]
    )


@pytest.mark.parametrize(
    ("length", "reach", "rows"),
    everywhere_for(
        [
            (*sizes, rows)
            for sizes in ((1, 2), (6, 2), (7, 3), (13, 4), (5, 8))
            for rows in ("padded", "packed")
        ],
        *((13, 4, "padded"), (7, 3, "packed")),
    ),
)
def test_blocks_equal_the_formula(length, reach, rows):
    arrays, sequences, positions = make_rows(length, rows == "packed")
    mask = mask_by_hand(sequences, positions, reach)[:, None]
    got = attend_locally(
        *map(ops.convert_to_tensor, arrays), sequences, positions, reach, plain_attention
    )
    expected = plain_attention(*map(ops.convert_to_tensor, arrays), mask)
    np.testing.assert_allclose(to_numpy(got), to_numpy(expected), rtol=0, atol=1e-6)


@pytest.mark.every_backend
def test_gradients_equal_those_of_the_formula():
    arrays, sequences, positions = make_rows(11, packed=True)
    mask = mask_by_hand(sequences, positions, 3)[:, None]
    got = input_gradients(
        lambda *x: attend_locally(*x, sequences, positions, 3, plain_attention), arrays
    )
    expected = input_gradients(lambda *x: plain_attention(*x, mask), arrays)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(to_numpy(a), to_numpy(b), rtol=0, atol=1e-5)


def test_scores_are_linear_in_the_length():
    """The largest array of scores is that of three blocks for each block."""
    sizes = []

    def attend(query, key, value, mask):
        sizes.append(tuple(mask.shape))
        return plain_attention(query, key, value, mask)

    length, reach = 40, 4
    x = ops.zeros((2, HEADS, length, WIDTH))
    positions = np.arange(length, dtype="int32")[None]
    attend_locally(x, x, x, np.ones((2, length), "int32"), positions, reach, attend)
    assert sizes == [(2 * length // reach, 1, reach, 3 * reach)]


@pytest.mark.parametrize(
    ("layer_cls", "arguments"),
    [
        (ModernBertAttention, {"reach": 2, "use_bias": True}),
        (ModernBertBlock, {"reach": 2, "intermediate_dim": 6, "mlp_bias": True}),
        (ModernBertBlock, {"intermediate_dim": 6, "has_attention_norm": False}),
    ],
    ids=["attention", "local block", "global block"],
)
def test_basics(layer_cls, arguments):
    hidden = np.random.default_rng(0).standard_normal((3, 7, 8)).astype("float32")
    mask = np.ones((3, 7), "int32")
    mask[1, 4:] = 0
    positions = np.tile(np.arange(7, dtype="int32"), (3, 1))
    inputs = {"hidden": hidden, "attention_mask": mask, "positions": positions}
    check_layer(layer_cls, {"num_heads": 2, **arguments}, inputs, (3, 7, 8))


def test_heads_of_odd_width_are_an_error():
    with pytest.raises(ValueError, match="even width, got num_heads=4 and hidden size 12"):
        ModernBertAttention(4).build((None, None, 12))
