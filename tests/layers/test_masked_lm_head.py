"""Against KerasHub's head, whose epsilon and activation are set to ours."""

import keras
import keras_hub
import numpy as np
import pytest
from peer_weights import randomize, to_numpy

from keras_bert_suite import MaskedLMHead
from keras_bert_suite.layers import gelu_tanh

B, L, P, H, V = 2, 6, 3, 8, 20


def make_embedding():
    embedding = keras.layers.ReversibleEmbedding(V, H, name="token_embedding")
    embedding.build()
    return embedding


def make_inputs():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(B, L, H)).astype("float32")
    return hidden, rng.integers(0, L, (B, P)).astype("int32")


@pytest.mark.every_backend
def test_it_equals_keras_hub():
    hidden, positions = make_inputs()
    embedding = make_embedding()
    ours = MaskedLMHead(embedding, gelu_tanh, layer_norm_epsilon=1e-5)
    theirs = keras_hub.layers.MaskedLMHead(
        token_embedding=embedding, intermediate_activation=gelu_tanh, activation=None
    )
    outputs = ours(hidden, positions)
    assert tuple(outputs.shape) == (B, P, V)
    theirs(hidden, positions)
    randomize(ours)
    weights = {weight.path.partition("/")[2]: weight for weight in ours.weights}
    for weight in theirs.weights:
        for theirs_ends, path in (
            ("dense/kernel", "transform/kernel"),
            ("dense/bias", "transform/bias"),
            ("layer_norm/gamma", "layer_norm/gamma"),
            ("layer_norm/beta", "layer_norm/beta"),
            ("output_bias", "bias"),
        ):
            if weight.path.endswith(theirs_ends):
                weight.assign(weights[path])
    np.testing.assert_allclose(
        to_numpy(ours(hidden, positions)), to_numpy(theirs(hidden, positions)), atol=1e-5
    )
