import itertools

import keras
import numpy as np
import pytest
from checkers import check_layer
from peer_weights import randomize, to_numpy
from tables import everywhere_for

import keras_bert_suite.layers.attention.self_attention as self_attention
from keras_bert_suite.layers import SelfAttention

B, L, H, HEADS = 3, 5, 12, 3
BACKEND = keras.config.backend()


def random_hidden(batch=B, length=L, seed=0):
    return np.random.default_rng(seed).standard_normal((batch, length, H)).astype("float32")


def random_mask(*shape):
    mask = np.random.default_rng(1).random(shape) < 0.5
    mask[..., 0] = True  # every query sees something
    return mask


def numpy_self_attention(layer, hidden, allowed):
    """The formula, one head of one row at a time, with `allowed` of shape (B, heads, L, L)."""
    w = {v.path.split("/", 1)[1]: to_numpy(v).astype("float64") for v in layer.weights}
    head_dim = H // HEADS
    output = np.empty(hidden.shape)
    for b, row in enumerate(hidden.astype("float64")):
        query, key, value = (
            row @ w[f"{name}/kernel"] + w[f"{name}/bias"] for name in ("query", "key", "value")
        )
        context = np.empty_like(row)
        for h in range(HEADS):
            part = slice(h * head_dim, (h + 1) * head_dim)
            scores = query[:, part] @ key[:, part].T / head_dim**0.5
            weights = np.where(allowed[b, h], np.exp(scores), 0.0)
            context[:, part] = weights / weights.sum(1, keepdims=True) @ value[:, part]
        output[b] = context @ w["output_projection/kernel"] + w["output_projection/bias"]
    return output


def test_basics():
    # The softmax does not feel a shift of all its scores: the key's bias has no gradient.
    check_layer(
        SelfAttention,
        dict(num_heads=HEADS, dropout=0.2, initializer_range=0.1),
        {"hidden": random_hidden(), "attention_mask": random_mask(B, L).astype("int32")},
        (B, L, H),
        may_stay=["key/bias"],
    )


#: The shapes of masks, from one number for each key to one for each head, query and key.
MASKS = [
    (B, L),
    (B, L, L),
    (1, L, L),
    (B, 1, L),
    (B, HEADS, L, L),
    (B, 1, L, L),
    (B, 1, 1, L),
    (1, 1, L, L),
    (1, HEADS, L, L),
]


@pytest.mark.parametrize(
    ("path", "shape"),
    everywhere_for(
        itertools.product(["chosen", "plain"], MASKS),
        *(("chosen", shape) for shape in [(B, L), (B, L, L), (B, 1, 1, L), (B, HEADS, L, L)]),
        ("plain", (B, 1, L)),
    ),
    ids=str,
)
def test_masks_of_every_rank_follow_the_formula(shape, path, monkeypatch):
    if path == "plain":
        monkeypatch.setattr(self_attention, "fused_attention", lambda *_: None)
    layer = SelfAttention(HEADS)
    hidden, mask = random_hidden(), random_mask(*shape)
    layer(hidden)
    randomize(layer)
    inner_axes = {2: (1, 2), 3: (1,), 4: ()}[len(shape)]  # the axes that the mask leaves out
    allowed = np.broadcast_to(np.expand_dims(mask, inner_axes), (B, HEADS, L, L))
    expected = numpy_self_attention(layer, hidden, allowed)
    for dtype in ("bool", "int32", "float32"):
        got = to_numpy(layer(hidden, attention_mask=mask.astype(dtype)))
        np.testing.assert_allclose(got, expected, atol=1e-5)


def test_no_mask_lets_everything_see_everything():
    layer = SelfAttention(HEADS)
    hidden = random_hidden()
    layer(hidden)
    randomize(layer)
    expected = numpy_self_attention(layer, hidden, np.ones((B, HEADS, L, L), "bool"))
    np.testing.assert_allclose(to_numpy(layer(hidden)), expected, atol=1e-5)


def test_a_row_that_sees_nothing_stays_finite_and_to_itself():
    layer = SelfAttention(HEADS)
    hidden, mask = random_hidden(), np.ones((B, L), "int32")
    mask[1] = 0
    got, full = to_numpy(layer(hidden, attention_mask=mask)), to_numpy(layer(hidden))
    assert np.isfinite(got).all()
    np.testing.assert_allclose(got[[0, 2]], full[[0, 2]], atol=1e-6)


@pytest.mark.parametrize("shape", [(L,), (B, 1, HEADS, L, L)])
def test_a_mask_of_another_rank_is_an_error(shape):
    with pytest.raises(ValueError, match=r"rank 2 \(B, L\), 3 .* got shape"):
        SelfAttention(HEADS)(random_hidden(), attention_mask=np.ones(shape, "bool"))


def test_heads_that_do_not_divide_are_an_error():
    with pytest.raises(ValueError, match="num_heads=5 and hidden size 12"):
        SelfAttention(5)(random_hidden())


@pytest.fixture
def kernel_calls(monkeypatch):
    """Counts the calls that came back from the fused kernel, and those of the plain formula."""
    calls = {"fused": 0, "plain": 0}

    def count(owner, name, key):
        original = getattr(owner, name)

        def spy(*args, **kwargs):
            result = original(*args, **kwargs)
            calls[key] += 1
            return result

        monkeypatch.setattr(owner, name, spy)

    if BACKEND == "torch":
        import torch

        count(torch.nn.functional, "scaled_dot_product_attention", "fused")
    elif BACKEND == "jax":
        import jax

        # What `keras.ops.dot_product_attention` ends in; Keras swallows its errors.
        count(jax.nn, "dot_product_attention", "fused")
    else:
        count(keras.ops, "dot_product_attention", "fused")
    count(self_attention, "plain_attention", "plain")
    return calls


MASKS = {"none": None, "padding": (B, L), "per query": (B, L, L), "per head": (B, HEADS, L, L)}


@pytest.mark.parametrize("mask_shape", MASKS.values(), ids=MASKS.keys())
def test_inference_is_fused_whatever_the_configured_dropout(kernel_calls, mask_shape):
    layer = SelfAttention(HEADS, dropout=0.1)
    hidden = random_hidden()
    mask = None if mask_shape is None else random_mask(*mask_shape)
    layer(hidden)
    for training in (None, False):
        kernel_calls.update(fused=0, plain=0)
        layer(hidden, attention_mask=mask, training=training)
        expected = (0, 1) if BACKEND == "tensorflow" else (1, 0)
        assert (kernel_calls["fused"], kernel_calls["plain"]) == expected


@pytest.mark.every_backend
def test_predict_is_fused_when_compiled(kernel_calls):
    symbols = keras.Input((None, H)), keras.Input((None,), dtype="int32")
    layer = SelfAttention(HEADS, dropout=0.1)
    model = keras.Model(symbols, layer(symbols[0], attention_mask=symbols[1]))
    kernel_calls.update(fused=0, plain=0)
    model.predict([random_hidden(), random_mask(B, L).astype("int32")], verbose=0)
    used, unused = ("plain", "fused") if BACKEND == "tensorflow" else ("fused", "plain")
    assert kernel_calls[used] >= 1
    assert kernel_calls[unused] == 0


def test_training_without_dropout_is_fused(kernel_calls):
    layer = SelfAttention(HEADS, dropout=0.0)
    layer(random_hidden())
    kernel_calls.update(fused=0, plain=0)
    layer(random_hidden(), attention_mask=random_mask(B, L), training=True)
    assert (kernel_calls["fused"] == 1) == (BACKEND != "tensorflow")


@pytest.mark.every_backend
def test_training_with_dropout_falls_back_where_no_kernel_drops(kernel_calls):
    layer = SelfAttention(HEADS, dropout=0.1)
    layer(random_hidden())
    kernel_calls.update(fused=0, plain=0)
    layer(random_hidden(), attention_mask=random_mask(B, L), training=True)
    on_cuda = BACKEND == "torch" and layer.query.kernel.value.is_cuda
    assert (kernel_calls["fused"], kernel_calls["plain"]) == ((1, 0) if on_cuda else (0, 1))


@pytest.mark.every_backend
def test_dropout_drops_its_rate_of_the_probabilities():
    """All scores 0 and all values 1: an output is the sum of the L probabilities left."""
    rate = 0.1
    layer = SelfAttention(HEADS, dropout=rate)
    hidden = random_hidden()
    layer(hidden)
    for variable in layer.weights:
        variable.assign(np.zeros(variable.shape))
    layer.value.bias.assign(np.ones(H))
    layer.output_projection.kernel.assign(np.eye(H))
    np.testing.assert_allclose(to_numpy(layer(hidden)), 1.0, atol=1e-5)
    trained = np.stack([to_numpy(layer(hidden, training=True)) for _ in range(40)])
    kept = trained * L * (1 - rate)
    np.testing.assert_allclose(kept, kept.round(), atol=1e-3)
    assert abs(1 - kept.mean() / L - rate) < 0.015
    # One draw for each head, query and key: the features of a head share it.
    per_head = kept.reshape(40, B, L, HEADS, H // HEADS)
    assert np.ptp(per_head, axis=-1).max() < 1e-3
    for axis in range(4):
        assert np.ptp(per_head[..., 0], axis=axis).max() > 0.5
