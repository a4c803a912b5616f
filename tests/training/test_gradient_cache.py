"""A step with cached gradients is the step without, and its random numbers are drawn once."""

import keras
import numpy as np
import pytest
from keras import ops
from peer_weights import to_numpy
from small_embedder import make_embedder, make_pairs
from tables import everywhere_for

from keras_bert_suite.heads.vectors import text_embedder

PAIRS, _ = make_pairs(11)


def take_step(embedder, cache_batch_size, variables):
    """The weights after a step from given values of all variables."""
    for variable, value in zip(embedder.variables, variables, strict=True):
        variable.assign(value)
    keras.utils.set_random_seed(0)  # PyTorch draws dropout from a generator of its own.
    embedder.compile(keras.optimizers.SGD(0.5), cache_batch_size=cache_batch_size)
    embedder.fit(PAIRS, batch_size=11, shuffle=False, verbose=0)
    return [to_numpy(variable) for variable in embedder.variables]


def encode_in_plain_parts(model, encode, inputs, part_size):
    """Like `encode_in_parts`, for 22 rows in two parts, with all activations kept."""
    assert part_size == 11
    parts = ({name: x[i : i + 11] for name, x in inputs.items()} for i in (0, 11))
    return ops.concatenate([encode(part) for part in parts])


@pytest.mark.parametrize("dropout", everywhere_for([0.0, 0.1], 0.1))
def test_gradients_are_those_of_the_whole_batch(dropout, monkeypatch):
    embedder = make_embedder(dropout)
    before = [to_numpy(variable) for variable in embedder.variables]
    # The last of three parts of 8 is not full. With dropout, two parts have masks of their own.
    got = take_step(embedder, 11 if dropout else 8, before)
    if dropout:
        monkeypatch.setattr(text_embedder, "encode_in_parts", encode_in_plain_parts)
    wanted = take_step(embedder, 11 if dropout else None, before)
    moved = 0
    for variable, a, b, old in zip(embedder.variables, got, wanted, before, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5, err_msg=variable.path)
        moved += bool((a != old).any())
    assert moved > 10
