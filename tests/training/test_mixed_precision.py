"""Trainings in mixed precision are interrupted and resumed like any other."""

import keras
import numpy as np
import pytest
from small_pretraining import (
    STEPS,
    STEPS_PER_EPOCH,
    At,
    SmallBatches,
    all_arrays,
    assert_same,
    build_pretrainer,
    fit,
    interrupt,
)

from keras_bert_suite import TrainingCheckpoint


def loss_scale(task):
    """float, and None without one."""
    scale = getattr(task.optimizer, "dynamic_scale", None)
    return None if scale is None else float(keras.ops.convert_to_numpy(scale))


@pytest.mark.parametrize(
    ("dtype", "optimizer"),
    [
        pytest.param("mixed_float16", {}, marks=pytest.mark.long("faults")),
        pytest.param("mixed_bfloat16", {}, marks=pytest.mark.long("faults")),
        ("mixed_float16", {"momentum_dtype": "bfloat16", "use_ema": True}),
    ],
)
def test_resumed_is_uninterrupted(tmp_path, dtype, optimizer):
    """A bad batch before the interruption halves the loss scale, one after it once more."""
    data, arguments = SmallBatches(bad={2, 11}), {"epochs": 2}
    wanted, checkpoint = (
        build_pretrainer(dtype, **optimizer),
        TrainingCheckpoint(tmp_path / "alone"),
    )
    logs = fit(wanted, checkpoint, data=data, **arguments)
    assert logs["skipped_steps"] == [1, 2] and checkpoint.skipped == 2
    assert int(wanted.optimizer.iterations) == 2 * STEPS_PER_EPOCH - 2
    assert np.isfinite(logs["loss"]).all()
    assert loss_scale(wanted) == (2.0**13 if dtype == "mixed_float16" else None)

    directory = tmp_path / "interrupted"
    with pytest.raises(KeyboardInterrupt):
        checkpoint = TrainingCheckpoint(directory, every=2)
        stop = At(STEPS_PER_EPOCH + 2, interrupt)
        fit(build_pretrainer(dtype, **optimizer), checkpoint, stop, data=data, **arguments)
    task, checkpoint = build_pretrainer(dtype, **optimizer), TrainingCheckpoint(directory)
    resumed = fit(task, checkpoint, data=data, **arguments)
    assert checkpoint.skipped == 2 and resumed["loss"] == logs["loss"][1:]
    assert_same(task, all_arrays(wanted))
    assert loss_scale(task) == loss_scale(wanted)


def test_a_loss_scale_may_be_looked_for(tmp_path):
    """Each batch that overflows halves it; that may take more than `max_skipped`."""
    task = build_pretrainer(dtype="mixed_float16")
    task.compile(
        keras.optimizers.LossScaleOptimizer(task.optimizer.inner_optimizer, initial_scale=2.0**30),
        loss=task.loss,
    )
    checkpoint = TrainingCheckpoint(tmp_path / "run", max_skipped=2)
    fit(task, checkpoint)
    assert 3 <= checkpoint.skipped < STEPS - 3
    assert int(task.optimizer.iterations) == STEPS - checkpoint.skipped


def test_a_loss_scale_is_not_looked_for_in_vain(tmp_path):
    task = build_pretrainer(dtype="mixed_float16")
    with pytest.raises(FloatingPointError, match="No step was taken in batches 0 to 16"):
        fit(task, TrainingCheckpoint(tmp_path / "run", max_skipped=2), data=SmallBatches(range(99)))
