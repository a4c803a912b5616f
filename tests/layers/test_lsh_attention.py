import keras
import numpy as np
import pytest
import torch
from checkers import check_layer
from keras import ops
from peer_weights import randomize, to_numpy
from transformers import ReformerConfig
from transformers.models.reformer import modeling_reformer

from keras_bert_suite.layers import LshAttention, TokenHashing

B, L, H, HEADS, CHUNK = 2, 24, 8, 2, 4
HASHING = TokenHashing(chunk_length=CHUNK, num_rounds=2, num_buckets=6)


def random_hidden(length=L):
    # Some tokens are alike, so that buckets have ties.
    drawn = np.random.default_rng(0).standard_normal((B, length, H)).astype("float32")
    drawn[:, 5:9] = drawn[:, 4:5]
    return drawn


def random_mask(length=L):
    mask = np.ones((B, length), "int32")
    mask[0, length - 9 :] = 0
    mask[1, 3] = 0
    return mask


def make_peer(hashing, is_causal, monkeypatch, rotations):
    """transformers' layer, whose rotations are given ones."""
    config = ReformerConfig(
        hidden_size=H,
        num_attention_heads=HEADS,
        attention_head_size=H // HEADS,
        attn_layers=["lsh"],
        lsh_attn_chunk_length=hashing.chunk_length,
        num_hashes=hashing.num_rounds,
        num_buckets=list(hashing.factors) if len(hashing.factors) > 1 else hashing.factors[0],
        lsh_attention_probs_dropout_prob=0.0,
        is_decoder=is_causal,
    )
    peer = modeling_reformer.LSHSelfAttention(config)

    def inject(shape, **kwargs):
        assert tuple(shape) == rotations.shape
        return torch.from_numpy(rotations)

    monkeypatch.setattr(modeling_reformer.torch, "randn", inject)
    return peer


def run_peer(layer, hidden, mask, monkeypatch, seen):
    """(the output, its gradients by name) of transformers' layer with the weights of ours.

    The gradients are those of the sum of the squares of the outputs of the tokens that are `seen`.
    """
    weights = {w.path.split("/")[-2]: to_numpy(w) for w in layer.trainable_weights}
    peer = make_peer(layer.hashing, layer.is_causal, monkeypatch, to_numpy(layer.rotations))
    with torch.no_grad():
        peer.query_key.weight.copy_(torch.from_numpy(weights["query_key"].T))
        peer.value.weight.copy_(torch.from_numpy(weights["value"].T))
    states = torch.tensor(hidden, requires_grad=True)
    output = torch.from_numpy(weights["output_projection"].T.copy()).requires_grad_()
    given = None if mask is None else torch.from_numpy(mask).long()
    merged = peer(states, attention_mask=given).hidden_states @ output.T
    (merged * torch.from_numpy(seen)).square().sum().backward()
    return merged.detach().numpy(), {
        "query_key": peer.query_key.weight.grad.numpy().T,
        "value": peer.value.weight.grad.numpy().T,
        "output_projection": output.grad.numpy().T,
        "hidden": states.grad.numpy(),
    }


def find_gradients(layer, hidden, mask, seen):
    """The same of our layer."""
    names = [w.path.split("/")[-2] for w in layer.trainable_weights]
    values = [hidden, *map(to_numpy, layer.trainable_weights)]

    def compute(hidden, *weights):
        variables = zip(layer.trainable_variables, weights, strict=True)
        with keras.StatelessScope(state_mapping=list(variables)):
            return ops.sum(ops.square(layer(hidden, mask) * ops.convert_to_tensor(seen)))

    backend = keras.config.backend()
    if backend == "jax":
        import jax

        found = jax.jit(jax.grad(compute, argnums=tuple(range(len(values)))))(*values)
    elif backend == "torch":
        given = [torch.tensor(value, requires_grad=True) for value in values]
        found = torch.autograd.grad(compute(*given), given)
    else:
        import tensorflow as tf

        given = [tf.constant(value) for value in values]
        with tf.GradientTape() as tape:
            tape.watch(given)
            total = compute(*given)
        found = [tf.convert_to_tensor(x) for x in tape.gradient(total, given)]
    return dict(zip(["hidden", *names], map(to_numpy, found), strict=True))


def build(hashing=HASHING, **kwargs):
    layer = LshAttention(HEADS, hashing, dropout=0.0, **kwargs)
    layer(random_hidden())
    randomize(layer)
    return layer


def test_basics():
    arguments = {"num_heads": HEADS, "hashing": HASHING, "dropout": 0.2}
    inputs = {"hidden": random_hidden(), "attention_mask": random_mask()}
    check_layer(LshAttention, arguments, inputs, (B, L, H))


@pytest.mark.parametrize(
    ("hashing", "is_causal", "masked"),
    [
        (HASHING, False, False),
        pytest.param(HASHING, True, True, marks=pytest.mark.every_backend),
        (TokenHashing(CHUNK, 3, (2, 4), seed=5), False, True),
        (TokenHashing(CHUNK, 1, 8), True, False),
        (TokenHashing(L, 2, 4), False, True),
    ],
    ids=["rounds", "causal and padded", "factors and padded", "one causal round", "one chunk"],
)
def test_outputs_and_gradients_equal_transformers(hashing, is_causal, masked, monkeypatch):
    layer = build(hashing, is_causal=is_causal)
    hidden, mask = random_hidden(), random_mask() if masked else None
    seen = (random_mask() if masked else np.ones((B, L)))[..., None].astype("float32")
    wanted, gradients = run_peer(layer, hidden, mask, monkeypatch, seen)
    got = to_numpy(layer(hidden, mask))
    np.testing.assert_allclose(got * seen, wanted * seen, rtol=0, atol=1e-5)
    found = find_gradients(layer, hidden, mask, seen)
    assert found.keys() == gradients.keys()
    for name, gradient in gradients.items():
        scale = np.abs(gradient).max()
        assert scale > 0
        np.testing.assert_allclose(found[name] / scale, gradient / scale, rtol=0, atol=1e-5)


@pytest.mark.parametrize("length", [3, 4, 13])
def test_a_row_that_no_chunk_divides_is_the_row_with_padding(length):
    """Also one that is shorter than a chunk."""
    layer = build()
    hidden, mask = random_hidden()[:, :length], np.ones((B, length), "int32")
    mask[0, -1] = 0
    more = -length % CHUNK
    padded = np.pad(hidden, [[0, 0], [0, more], [0, 0]], constant_values=3.0)
    wanted = to_numpy(layer(padded, np.pad(mask, [[0, 0], [0, more]])))[:, :length]
    np.testing.assert_allclose(to_numpy(layer(hidden, mask)), wanted, rtol=0, atol=1e-6)
    if mask.all():
        np.testing.assert_allclose(to_numpy(layer(hidden)), wanted, rtol=0, atol=1e-6)


def test_one_chunk_sees_all_tokens_but_itself():
    """The formula of whole rows, in float64."""
    layer = build(TokenHashing(L, 2, 4))
    hidden, mask = random_hidden(), random_mask()
    weights = {w.path.split("/")[-2]: to_numpy(w) for w in layer.trainable_weights}
    query = (hidden @ weights["query_key"]).reshape(B, L, HEADS, -1).swapaxes(1, 2)
    key = query / np.sqrt((query**2).mean(-1, keepdims=True) + 1e-6) / np.sqrt(H // HEADS)
    visible = (mask[:, None, None] == 1) & ~np.eye(L, dtype="bool")
    scores = np.where(visible, np.exp(query.astype("float64") @ key.swapaxes(-1, -2)), 0.0)
    wanted = scores / scores.sum(-1, keepdims=True)
    got = to_numpy(layer.compute_probabilities(hidden, mask))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-6)


def test_a_token_that_sees_no_other_attends_to_itself():
    """The first token of a row that is read from left to right."""
    layer = build(is_causal=True)
    probabilities = to_numpy(layer.compute_probabilities(random_hidden()))
    # A sum of scores of -1e5 has three digits in float32, here and in transformers.
    np.testing.assert_allclose(probabilities.sum(-1), 1, rtol=0, atol=4e-3)
    np.testing.assert_allclose(probabilities[:, :, 0, 0], 1, rtol=0, atol=4e-3)
    assert np.abs(np.triu(probabilities, 1)).max() == 0
    assert np.diagonal(probabilities[:, :, 1:, 1:], axis1=2, axis2=3).min() == 0


def test_probabilities_weigh_the_values_of_all_rounds():
    layer = build()
    hidden, mask = random_hidden(13), random_mask(13)
    value = (hidden @ to_numpy(layer.value.kernel)).reshape(B, 13, HEADS, -1).swapaxes(1, 2)
    context = to_numpy(layer.compute_probabilities(hidden, mask)) @ value
    wanted = context.swapaxes(1, 2).reshape(B, 13, H) @ to_numpy(layer.output_projection.kernel)
    np.testing.assert_allclose(to_numpy(layer(hidden, mask)), wanted, rtol=0, atol=1e-6)


def test_rotations_are_drawn_from_the_seed():
    layers = [LshAttention(HEADS, TokenHashing(CHUNK, 2, 6, seed=seed)) for seed in (0, 0, 1)]
    for layer in layers:
        layer(random_hidden())
        assert [w.path.split("/")[-1] for w in layer.non_trainable_weights] == ["rotations"]
    first, same, other = (to_numpy(layer.rotations) for layer in layers)
    np.testing.assert_array_equal(first, same)
    assert np.abs(first - other).max() > 0.1


@pytest.mark.parametrize("length", [9, 64, 130, 1000, 4096, 9999])
@pytest.mark.parametrize("chunk", [1, 4, 64])
def test_the_number_of_buckets_is_that_of_transformers(chunk, length):
    if chunk >= length:
        pytest.skip("one chunk")
    config = ReformerConfig(
        lsh_attn_chunk_length=chunk, max_position_embeddings=min(length, chunk**3)
    )
    peer = modeling_reformer.LSHSelfAttention(config)
    peer._set_num_buckets(length)
    wanted = peer.num_buckets
    got = TokenHashing(chunk).fit_length(length).num_buckets
    assert got == (tuple(wanted) if isinstance(wanted, list) else wanted)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"num_buckets": 5}, r"must be even, .*num_buckets=5. Use 6 instead of 5"),
        ({"num_buckets": (4, 3)}, r"must be even, .*num_buckets=\(4, 3\). Use 4 instead of 3"),
        ({"num_buckets": 0}, "num_buckets must be an integer of at least 2, got 0"),
        ({"chunk_length": 0}, "chunk_length must be an integer of at least 1, got 0"),
        ({"num_rounds": 1.5}, "num_rounds must be an integer of at least 1, got 1.5"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
    ],
)
def test_wrong_settings(arguments, says):
    with pytest.raises(ValueError, match=says):
        TokenHashing(**arguments)


def test_settings_that_do_not_fit():
    with pytest.raises(ValueError, match="chunk_length=64 tokens has room for .* 64 tokens,"):
        TokenHashing().fit_length(64)
    with pytest.raises(ValueError, match=r"\(8, 16\) are 128 buckets, more than the 100 tokens"):
        TokenHashing(num_buckets=(8, 16)).fit_length(100)
    with pytest.raises(ValueError, match=r"needs a number of buckets.*hashing.fit_length\(n\)"):
        LshAttention(HEADS, TokenHashing())
    with pytest.raises(ValueError, match=r"padding mask \(B, L\), got a mask of pairs"):
        build()(random_hidden(), np.ones((B, L, L), "int32"))
