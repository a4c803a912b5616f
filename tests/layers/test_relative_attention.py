import numpy as np
import pytest
from checkers import check_layer
from peer_weights import randomize, to_numpy

from keras_bert_suite.layers import RelativeAttention

B, L, H, HEADS, LIMIT = 2, 9, 12, 3, 2
POSITIONS = np.array([[0, 1, 2, 3, 0, 1, 2, 0, 0], [0, 1, 2, 3, 4, 5, 6, 7, 8]], "int32")


def random_hidden():
    return np.random.default_rng(0).standard_normal((B, L, H)).astype("float32")


def random_mask():
    mask = np.random.default_rng(1).random((B, L, L)) < 0.6
    mask[..., 0] = True  # every query sees something
    return mask


def encode_distances(positions, dim):
    """The paper's equations 3 and 4, (L, L, dim): a vector for each query and each key."""
    table = np.zeros((2 * LIMIT + 1, dim))
    for distance in range(2 * LIMIT + 1):
        for k in range(dim // 2):
            table[distance, 2 * k] = np.sin(distance / 10000 ** (2 * k / dim))
            table[distance, 2 * k + 1] = np.cos(distance / 10000 ** (2 * k / dim))
    distances = positions[None, :] - positions[:, None]
    return table[np.clip(distances, -LIMIT, LIMIT) + LIMIT]


def numpy_relative_attention(layer, hidden, mask, positions):
    """(output, probabilities) by the paper's equations 1 and 2, one head of one row at a time."""
    w = {v.path.split("/", 1)[1]: to_numpy(v).astype("float64") for v in layer.weights}
    dim = H // HEADS
    output, probabilities = np.empty(hidden.shape), np.empty((B, HEADS, L, L))
    for b, row in enumerate(hidden.astype("float64")):
        query, key, value = (
            row @ w[f"{name}/kernel"] + w[f"{name}/bias"] for name in ("query", "key", "value")
        )
        relative = encode_distances(positions[b], dim)
        context = np.empty_like(row)
        for h in range(HEADS):
            part = slice(h * dim, (h + 1) * dim)
            scores = np.einsum("id,ijd->ij", query[:, part], key[None, :, part] + relative)
            weights = np.where(mask[b], np.exp(scores / dim**0.5), 0.0)
            weights /= weights.sum(1, keepdims=True)
            probabilities[b, h] = weights
            context[:, part] = np.einsum("ij,ijd->id", weights, value[None, :, part] + relative)
        output[b] = context @ w["output_projection/kernel"] + w["output_projection/bias"]
    return output, probabilities


def test_basics():
    arguments = {"num_heads": HEADS, "max_relative_position": LIMIT, "dropout": 0.2}
    inputs = {
        "hidden": random_hidden(),
        "attention_mask": random_mask().astype("int32"),
        "positions": POSITIONS,
    }
    check_layer(RelativeAttention, arguments, inputs, (B, L, H), may_stay=["key/bias"])


@pytest.mark.every_backend
@pytest.mark.parametrize("rows", ["packed", "not packed"])
def test_equals_the_formula(rows):
    layer = RelativeAttention(HEADS, max_relative_position=LIMIT)
    hidden, mask = random_hidden(), random_mask()
    layer(hidden)
    randomize(layer)
    positions = POSITIONS if rows == "packed" else np.tile(np.arange(L), (B, 1))
    output, probabilities = numpy_relative_attention(layer, hidden, mask, positions)
    arguments = {"positions": positions} if rows == "packed" else {}
    got = layer(hidden, attention_mask=mask, **arguments)
    np.testing.assert_allclose(to_numpy(got), output, rtol=0, atol=1e-5)
    if rows == "not packed":
        got = layer.compute_probabilities(hidden, mask)
        np.testing.assert_allclose(to_numpy(got), probabilities, rtol=0, atol=1e-5)
