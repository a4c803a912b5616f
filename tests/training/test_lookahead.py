"""Lookahead around both optimizers: the rule of the paper in NumPy, and what its state survives."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops
from peer_weights import to_numpy
from tables import everywhere_for

from keras_bert_suite import AdamW, Lamb

STEPS, RATE = 7, 0.05


def make_variables(dtype="float32"):
    rng = np.random.default_rng(0)
    values = {"kernel": rng.normal(size=(3, 2)), "bias": rng.normal(size=2)}
    return [keras.Variable(value, dtype=dtype, name=name) for name, value in values.items()]


def apply(optimizer, variables, gradients):
    """A step, compiled as Keras' trainer of this backend compiles it."""
    gradients = [ops.cast(ops.convert_to_tensor(g), variables[0].dtype) for g in gradients]
    optimizer.build(variables)
    if keras.config.backend() == "jax":
        import jax

        owned = optimizer.variables
        step = jax.jit(optimizer.stateless_apply, donate_argnums=(0, 2))
        results = step([v.value for v in owned], gradients, [v.value for v in variables])
        for kind, values in zip((variables, owned), results, strict=True):
            for variable, value in zip(kind, values, strict=True):
                variable.assign(value)
    elif keras.config.backend() == "tensorflow":
        import tensorflow as tf

        tf.function(lambda values: optimizer.apply(values, variables))(gradients)
    else:
        optimizer.apply(gradients, variables)


def draw_gradients(number):
    rng = np.random.default_rng(number)
    return [rng.normal(size=shape).astype("float32") for shape in ((3, 2), (2,))]


def read(variables):
    return [to_numpy(ops.cast(variable, "float32")) for variable in variables]


@pytest.mark.parametrize(
    ("cls", "steps", "share", "dtype"),
    everywhere_for(
        itertools.product([AdamW, Lamb], [1, 3], [0.5, 0.8], ["float32", "bfloat16"]),
        (Lamb, 3, 0.8, "float32"),
    ),
)
def test_the_rule_of_the_paper(cls, steps, share, dtype):
    """Algorithm 1. The inner steps are those of a twin without it, from the same weights."""
    arguments = {"weight_decay": 0.1, "global_clipnorm": None}
    optimizer = cls(RATE, **arguments, lookahead_steps=steps, lookahead_share=share)
    twin = cls(RATE, **arguments)
    ours, fast = make_variables(dtype), make_variables(dtype)
    slow = read(fast)
    for number in range(1, STEPS + 1):
        apply(optimizer, ours, draw_gradients(number))
        apply(twin, fast, draw_gradients(number))
        if number % steps == 0:
            slow = [phi + share * (w - phi) for phi, w in zip(slow, read(fast), strict=True)]
            for variable, value in zip(fast, slow, strict=True):
                variable.assign(value)
            slow = read(fast)  # Rounded to the dtype of the weights.
        for got, wanted in zip(read(ours), read(fast), strict=True):
            # XLA may leave out a rounding to 16 bits within a step.
            atol = 1e-6 if dtype == "float32" else 2**-7
            np.testing.assert_allclose(got, wanted, rtol=0, atol=atol)
    plain = cls(RATE, **arguments)
    others = make_variables(dtype)
    for number in range(1, STEPS + 1):
        apply(plain, others, draw_gradients(number))
    assert not np.allclose(read(others)[0], read(ours)[0], atol=1e-3)


@pytest.mark.every_backend
def test_steps_are_updates_that_were_made():
    """A batch of several, and a step that was skipped, are no steps."""
    optimizer = AdamW(RATE, global_clipnorm=None, lookahead_steps=2, gradient_accumulation_steps=2)
    twin = AdamW(RATE, global_clipnorm=None, lookahead_steps=2)
    ours, theirs = make_variables(), make_variables()
    bad = [np.full_like(g, np.nan) for g in draw_gradients(0)]
    for number in (1, 2, None, 3, 4):
        gradients = bad if number is None else draw_gradients(number)
        apply(optimizer, ours, gradients)
        apply(optimizer, ours, gradients)
        if number is not None:
            apply(twin, theirs, gradients)
        for got, wanted in zip(read(ours), read(theirs), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-6)
    assert int(to_numpy(optimizer.iterations)) == 4


def test_weights_that_were_set_between_two_cycles_are_the_new_beginning():
    optimizer, twin = (AdamW(RATE, global_clipnorm=None, lookahead_steps=2) for _ in range(2))
    ours, theirs = make_variables(), make_variables()
    optimizer.build(ours)
    for variable in (*ours, *theirs):
        variable.assign(ops.ones_like(variable))
    twin.build(theirs)
    for number in range(4):
        for each, variables in ((optimizer, ours), (twin, theirs)):
            apply(each, variables, draw_gradients(number))
    for got, wanted in zip(read(ours), read(theirs), strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lookahead_steps": 0}, "lookahead_steps must be an integer of at least 1, got 0"),
        ({"lookahead_steps": 2.5}, "lookahead_steps .* got 2.5"),
        ({"lookahead_steps": 5, "lookahead_share": 0}, "lookahead_share must be over 0 .* got 0"),
        ({"lookahead_steps": 5, "lookahead_share": 1.5}, "lookahead_share .* got 1.5"),
        ({"lookahead_share": 0.8}, "lookahead_share=0.8 .*lookahead_steps=None. Pass"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        AdamW(RATE, **arguments)
