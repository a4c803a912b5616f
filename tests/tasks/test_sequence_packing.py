"""Training on packed rows gives the losses and weights of training on padded rows."""

import numpy as np
import pytest
from small_tasks import BATCH_SIZE, BYTE_PAIRS, TASKS, compile_model, make_task


def train(task, columns, weights=None, **arguments):
    """(losses, weights) of a `fit` on rows in their order, from the same weights."""
    if weights is not None:
        task.set_weights(weights)
    before = task.get_weights()
    compile_model(task)
    x, y, *rest = columns
    history = task.fit(
        x, y, batch_size=BATCH_SIZE, epochs=2, shuffle=False, verbose=0,
        sample_weight=rest[0] if rest else None, **arguments,
    )  # fmt: skip
    after = task.get_weights()
    return history.history["loss"], before, after


@pytest.mark.parametrize(
    ("name", "preprocessor"),
    [*((task, "SegmentPacker") for task in TASKS if task != "pretraining"),
     ("pretraining", "none"), ("pairs", BYTE_PAIRS), ("words", "none")],
)  # fmt: skip
def test_packed_rows_train_as_padded_rows_do(name, preprocessor):
    task, columns = make_task(name, preprocessor)
    losses, before, after = train(task, columns)
    packed_losses, _, packed_after = train(task, columns, before, sequence_packing=True)
    np.testing.assert_allclose(packed_losses, losses, rtol=1e-5)
    assert any(np.abs(new - old).max() > 1e-4 for new, old in zip(after, before, strict=True))
    for packed, padded in zip(packed_after, after, strict=True):
        np.testing.assert_allclose(packed, padded, atol=2e-5)
