"""Draws of tokens beside the filters of transformers, and beside the probabilities."""

import keras_hub
import numpy as np
import pytest
import scipy.stats
import torch
import transformers
from keras import ops
from peer_weights import to_numpy
from tasks.test_seq2seq import SOURCES, make_writer

from keras_bert_suite.heads.targets.sampling import (
    choose_sampling,
    draw_next,
    draw_tokens,
    filter_logits,
)

GREEDY = keras_hub.samplers.GreedySampler()
MANY = list(np.repeat(SOURCES, 2))


def make_inputs(num_rows, length=1, **arguments):
    arguments = {"top_k": None, "top_p": None, "temperature": None, "seed": 0, **arguments}
    sampling = choose_sampling(GREEDY, **arguments)
    inputs = sampling.make_inputs(np.arange(num_rows), length)
    return {name: ops.convert_to_tensor(array) for name, array in inputs.items()}


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "top_k, top_p, temperature",
    [(None, None, 0.7), (5, None, 1.0), (1, 0.9, 1.0), (None, 0.8, 1.0), (7, 0.6, 1.5)],
)
def test_filters_are_those_of_transformers(top_k, top_p, temperature):
    logits = np.random.default_rng(0).normal(0, 3, (64, 30)).astype("float32")
    warpers = [transformers.TemperatureLogitsWarper(temperature)]
    if top_k is not None:
        warpers.append(transformers.TopKLogitsWarper(top_k))
    if top_p is not None:
        warpers.append(transformers.TopPLogitsWarper(top_p))
    wanted = transformers.LogitsProcessorList(warpers)(None, torch.from_numpy(logits))
    inputs = make_inputs(1, top_k=top_k, top_p=top_p, temperature=temperature)
    limits = (inputs[name] for name in ("top_k", "top_p", "temperature"))
    got = to_numpy(filter_logits(ops.convert_to_tensor(logits), *limits))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(wanted.numpy()))
    wanted = torch.softmax(wanted, -1).numpy()
    np.testing.assert_allclose(to_numpy(ops.softmax(got)), wanted, rtol=0, atol=1e-6)


@pytest.mark.every_backend
def test_tokens_are_drawn_with_their_probability():
    logits = np.log([0.4, 0.0, 0.3, 0.2, 0.1], where=[True, False, True, True, True], out=None)
    logits[1] = -np.inf
    num_draws = 20_000
    rows = ops.convert_to_tensor(np.tile(logits.astype("float32"), (num_draws, 1)))
    drawn = to_numpy(draw_next(rows, make_inputs(num_draws, 3, seed=5), 2))
    counts = np.bincount(drawn, minlength=5)
    assert counts[1] == 0
    found = scipy.stats.chisquare(counts[[0, 2, 3, 4]], num_draws * np.array([0.4, 0.3, 0.2, 0.1]))
    assert found.pvalue > 0.01
    # Another place of the rows has draws of its own.
    first = to_numpy(draw_next(rows, make_inputs(num_draws, 3, seed=5), 0))
    assert np.mean(first == drawn) == pytest.approx(0.4**2 + 0.3**2 + 0.2**2 + 0.1**2, abs=0.02)


def test_the_ends_of_the_unit_interval():
    """Neither draws a token without a probability."""
    logits = ops.convert_to_tensor(np.float32([[-np.inf, 0.0, 1.0, -np.inf]] * 2))
    ends = ops.convert_to_tensor(np.float32([0.0, 1 - 2.0**-23]))
    assert to_numpy(draw_tokens(logits, ends)).tolist() == [1, 2]


@pytest.mark.every_backend
def test_a_seed_draws_the_same_targets():
    """Of a cold distribution they are those of a greedy search."""
    writer = make_writer(max_target_length=4)
    drawn = writer.predict(MANY, seed=3)
    assert drawn == writer.predict(MANY, seed=3) != writer.predict(MANY, seed=4)
    assert drawn[0] != drawn[1]  # The same source.
    assert writer.predict(MANY, temperature=1e-6) == writer.predict(MANY) != drawn


def test_draws_do_not_depend_on_the_batch():
    writer = make_writer(max_target_length=6)
    drawn = writer.predict(MANY, seed=3)
    assert drawn == writer.predict(MANY, batch_size=2, seed=3)
    assert drawn == writer.predict(iter([(MANY[:4],), (MANY[4:],)]), seed=3)
    assert drawn[:1] == [writer.predict(MANY[0], seed=3)]
    greedy = writer.predict(MANY)
    assert writer.predict(MANY, top_k=1) == greedy
    assert writer.predict(MANY, top_p=1e-6, seed=9) == greedy


@pytest.mark.parametrize(
    "sampler, arguments",
    [
        (keras_hub.samplers.TopPSampler(p=0.3, k=9), {"top_p": 0.3, "top_k": 9}),
        (keras_hub.samplers.TopKSampler(k=3, temperature=2.0), {"top_k": 3, "temperature": 2.0}),
        (keras_hub.samplers.RandomSampler(), {}),
    ],
    ids=["top_p", "top_k", "random"],
)
def test_what_is_not_asked_for_is_of_the_sampler(sampler, arguments):
    writer = make_writer(max_target_length=6)
    greedy, wanted = writer.predict(MANY), writer.predict(MANY, seed=3, **arguments)
    assert (wanted == writer.predict(MANY, seed=3)) == (not arguments)
    writer.compile(sampler=sampler)
    assert writer.predict(MANY, seed=3) == wanted
    assert writer.predict(MANY, seed=3, top_k=1) == greedy


def test_large_numbers_are_no_error():
    writer = make_writer(max_target_length=4)
    wanted = writer.predict(SOURCES, seed=0)
    assert writer.predict(SOURCES, seed=2**64, top_k=2**31) == wanted


def test_temperatures_beyond_float32():
    """A sweep towards 0 ends with the most probable tokens, and not with empty texts."""
    writer = make_writer(max_target_length=4, min_target_length=3)
    assert writer.predict(SOURCES, temperature=1e-46) == writer.predict(SOURCES)
    hot = writer.predict(SOURCES, seed=3, temperature=1e30)
    assert writer.predict(SOURCES, seed=3, temperature=1e300) == hot


def test_without_a_seed_numpy_gives_one():
    writer = make_writer(max_target_length=6)
    drawn = []
    for _ in range(2):
        np.random.seed(0)
        drawn += [writer.predict(MANY, top_k=8), writer.predict(MANY, top_k=8)]
    assert drawn[:2] == drawn[2:] and drawn[0] != drawn[1]


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"top_p": 0.0}, "top_p must be over 0 and at most 1, got 0.0"),
        ({"top_p": 1.5}, "top_p must be over 0 and at most 1, got 1.5"),
        ({"top_k": 0}, "top_k must be an integer of at least 1, got 0"),
        ({"temperature": 0}, "temperature must be a number above 0, got 0. For the most probable"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
    ],
)
def test_values_out_of_their_range(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_writer().predict(SOURCES, **arguments)


def test_logits_are_not_drawn_from():
    writer = make_writer()
    packed, _, _ = writer.data.pack(writer.data.read(SOURCES))
    for rows in (packed, iter([(packed,)])):
        with pytest.raises(ValueError, match="of which nothing is drawn. Leave out top_k"):
            writer.predict(rows, top_k=2)


def test_a_beam_search_draws_nothing():
    writer = make_writer(sampler="beam")
    with pytest.raises(ValueError, match="beam search finds the most probable text, and top_k"):
        writer.predict(SOURCES, temperature=0.5)
