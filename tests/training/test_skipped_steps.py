"""A step with a gradient that is not finite leaves no trace."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops
from tables import everywhere_for

from keras_bert_suite import AdamW, Lamb, LinearWarmupDecay

BAD = (float("nan"), float("inf"), -float("inf"))


@pytest.fixture
def variables():
    layer = keras.layers.Dense(3, name="dense")
    layer.build((None, 4))
    return layer.trainable_variables


def apply(optimizer, variables, gradients):
    """One step, by the way Keras' trainer of this backend takes."""
    gradients = [ops.convert_to_tensor(g) for g in gradients]
    if keras.config.backend() == "jax":
        import jax

        trained, state = jax.jit(optimizer.stateless_apply)(
            [v.value for v in optimizer.variables], gradients, [v.value for v in variables]
        )
        for variable, value in zip(variables, trained, strict=True):
            variable.assign(value)
        for variable, value in zip(optimizer.variables, state, strict=True):
            variable.assign(value)
    elif keras.config.backend() == "tensorflow":
        import tensorflow as tf

        tf.function(lambda values: optimizer.apply(values, variables))(gradients)
    else:
        optimizer.apply(gradients, variables)


def state_of(optimizer, variables):
    return [np.array(ops.convert_to_numpy(v)) for v in [*variables, *optimizer.variables]]


def random_gradients(seed, variables):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=v.shape).astype("float32") for v in variables]


def with_one_bad(gradients, bad):
    gradients = [g.copy() for g in gradients]
    gradients[0][1, 1] = bad
    return gradients


@pytest.mark.parametrize(
    ("optimizer_cls", "momentum_dtype", "global_clipnorm", "bias_correction"),
    everywhere_for(
        itertools.product([AdamW, Lamb], [None, "bfloat16"], [1.0, None], [False, True]),
        # Without the kernel of TensorFlow, and with it.
        *((AdamW, None, 1.0, False), (AdamW, "bfloat16", None, True), (Lamb, None, None, True)),
    ),
)
def test_nothing_moves(variables, optimizer_cls, momentum_dtype, global_clipnorm, bias_correction):
    optimizer = optimizer_cls(
        LinearWarmupDecay(1e-2, total_steps=9),
        bias_correction=bias_correction,
        momentum_dtype=momentum_dtype,
        global_clipnorm=global_clipnorm,
    )
    optimizer.build(variables)
    for step in range(2):
        apply(optimizer, variables, random_gradients(step, variables))
    before = state_of(optimizer, variables)
    for bad in BAD:
        apply(optimizer, variables, with_one_bad(random_gradients(2, variables), bad))
        for found, wanted in zip(state_of(optimizer, variables), before, strict=True):
            np.testing.assert_array_equal(found, wanted)
    assert int(optimizer.iterations) == 2
    apply(optimizer, variables, random_gradients(3, variables))
    assert int(optimizer.iterations) == 3
    for found, wanted in zip(state_of(optimizer, variables), before, strict=True):
        assert np.isfinite(found).all() and (found != wanted).any()


@pytest.mark.parametrize("bad_batch", [0, 1])
def test_accumulated_gradients_are_dropped_together(variables, bad_batch):
    optimizer = AdamW(1e-2, gradient_accumulation_steps=2)
    optimizer.build(variables)
    before = state_of(optimizer, variables)
    for batch in range(2):
        gradients = random_gradients(batch, variables)
        if batch == bad_batch:
            gradients = with_one_bad(gradients, np.nan)
        apply(optimizer, variables, gradients)
    for found, wanted in zip(state_of(optimizer, variables), before, strict=True):
        np.testing.assert_array_equal(found, wanted)
    for batch in range(2):
        apply(optimizer, variables, random_gradients(batch, variables))
    assert int(optimizer.iterations) == 1
    twin = [keras.Variable(value) for value in before[: len(variables)]]
    mean = np.mean([random_gradients(batch, variables)[0] for batch in range(2)], axis=0)
    means = [mean, random_gradients(0, variables)[1] / 2 + random_gradients(1, variables)[1] / 2]
    AdamW(1e-2, no_decay=["."]).apply([ops.convert_to_tensor(g) for g in means], twin)
    found = ops.convert_to_numpy(variables[1])  # the bias, which is not decayed
    np.testing.assert_allclose(found, ops.convert_to_numpy(twin[1]), atol=1e-6)


@pytest.mark.every_backend
def test_a_loss_scale_skips_by_itself(variables):
    inner = AdamW(1e-2)
    optimizer = keras.optimizers.LossScaleOptimizer(inner, initial_scale=8.0)
    optimizer.build(variables)
    apply(optimizer, variables, random_gradients(0, variables))
    before = state_of(inner, variables)
    apply(optimizer, variables, with_one_bad(random_gradients(1, variables), np.inf))
    for found, wanted in zip(state_of(inner, variables), before, strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert float(ops.convert_to_numpy(optimizer.dynamic_scale)) == 4.0
    apply(optimizer, variables, random_gradients(1, variables))
    assert int(optimizer.iterations) == 2
