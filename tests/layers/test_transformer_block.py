import keras
import numpy as np
import pytest
from checkers import check_layer
from peer_weights import randomize, to_numpy

from keras_bert_suite.layers import TransformerBlock, gelu_erf, gelu_tanh

B, L, H = 3, 5, 12
KWARGS = dict(num_heads=3, intermediate_dim=20)


def random_hidden(batch=B, length=L, seed=0):
    return np.random.default_rng(seed).standard_normal((batch, length, H)).astype("float32")


@pytest.mark.every_backend
def test_basics():
    mask = np.ones((B, L), "int32")
    mask[1, 3:] = 0
    check_layer(
        TransformerBlock,
        dict(
            **KWARGS,
            activation=gelu_tanh,
            dropout=0.2,
            attention_dropout=0.3,
            remat=True,
            layer_norm_epsilon=1e-5,
            initializer_range=0.1,
        ),
        {"hidden": random_hidden(), "attention_mask": mask},
        (B, L, H),
        may_stay=["key/bias"],
    )


@pytest.mark.parametrize("activation", [gelu_erf, gelu_tanh, "relu"])
@pytest.mark.parametrize("epsilon", [1e-12, 0.3])
def test_norms_come_after_the_residuals(activation, epsilon):
    block = TransformerBlock(**KWARGS, activation=activation, layer_norm_epsilon=epsilon)
    hidden = random_hidden()
    block(hidden)
    randomize(block)
    w = {v.path.split("/", 1)[1]: to_numpy(v).astype("float64") for v in block.weights}

    def normalize(x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon)
        return x * w[f"{name}/gamma"] + w[f"{name}/beta"]

    x = normalize(hidden + to_numpy(block.self_attention(hidden)), "self_attention_norm")
    inner = x @ w["intermediate/kernel"] + w["intermediate/bias"]
    inner = to_numpy(keras.activations.get(activation)(inner.astype("float32")))
    projected = inner @ w["feedforward_output/kernel"] + w["feedforward_output/bias"]
    expected = normalize(x + projected, "feedforward_norm")
    np.testing.assert_allclose(to_numpy(block(hidden)), expected, atol=1e-5)


def test_mask_reaches_the_attention():
    block = TransformerBlock(**KWARGS)
    hidden, other = random_hidden(), random_hidden(seed=1)
    causal = np.tril(np.ones((1, L, L), "bool"))
    changed = np.concatenate([hidden[:, :3], other[:, 3:]], axis=1)
    block(hidden)
    randomize(block)
    got = to_numpy(block(hidden, attention_mask=causal))
    np.testing.assert_allclose(
        got[:, :3], to_numpy(block(changed, attention_mask=causal))[:, :3], atol=1e-6
    )
    assert np.abs(got - to_numpy(block(hidden))).max() > 1e-2


def test_dropout_acts_on_both_sublayers(monkeypatch):
    """Without norms, with outputs 1 and 10 of the sublayers, a sum tells what was dropped."""
    block = TransformerBlock(**KWARGS, dropout=0.1)
    hidden = np.zeros((B, L, H), "float32")
    block(hidden)
    for variable in block.weights:
        variable.assign(np.zeros(variable.shape))
    block.self_attention.output_projection.bias.assign(np.full(H, 1.0))
    block.feedforward_output.bias.assign(np.full(H, 10.0))
    monkeypatch.setattr(block.self_attention_norm, "call", lambda x: x)
    monkeypatch.setattr(block.feedforward_norm, "call", lambda x: x)
    np.testing.assert_allclose(to_numpy(block(hidden)), 11.0, atol=1e-4)
    trained = np.stack([to_numpy(block(hidden, training=True)) for _ in range(40)])
    kept = (trained * 0.9).round(3)
    assert set(np.unique(kept).tolist()) == {0.0, 1.0, 10.0, 11.0}
    attention_kept, feedforward_kept = np.isin(kept, [1, 11]), kept >= 10
    assert abs(1 - attention_kept.mean() - 0.1) < 0.02
    assert abs(1 - feedforward_kept.mean() - 0.1) < 0.02
    both_dropped = (~attention_kept & ~feedforward_kept).mean()
    assert abs(both_dropped - 0.01) < 0.006  # drawn apart


def test_unknown_activation_is_an_error():
    with pytest.raises(ValueError, match="activation"):
        TransformerBlock(**KWARGS, activation="unknown")
