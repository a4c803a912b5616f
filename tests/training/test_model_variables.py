"""All variables of a training to arrays and back."""

import keras
import numpy as np
import pytest
from small_pretraining import STEPS_PER_EPOCH, SmallBatches, all_arrays, build_pretrainer
from small_texts import TINY

from keras_bert_suite import AdamW, BertBackbone, Pretrainer
from keras_bert_suite.training import lay_schedule
from keras_bert_suite.training.model_variables import assign_variables, copy_variables


@pytest.fixture(scope="module")
def trained():
    task = build_pretrainer()
    task.fit(SmallBatches(), verbose=0)
    return task


def build_like(trained, **arguments):
    """Another, with variables of the same names; metrics are made by a first batch."""
    task = build_pretrainer(**arguments)
    task._symbolic_build(data_batch=SmallBatches()[0])
    return task


def test_round_trip(trained):
    arrays, before = copy_variables(trained), all_arrays(trained)
    twin = build_like(trained)
    assign_variables(twin, arrays, "here")
    lay_schedule(twin, 0, STEPS_PER_EPOCH)  # Each `fit` does so, and arrays leave it out.
    for found, wanted in zip(all_arrays(twin), before, strict=True):
        np.testing.assert_array_equal(found, wanted)
    metrics = [np.array(keras.ops.convert_to_numpy(v)) for v in twin.metrics_variables]
    assert any(np.any(values) for values in metrics)


def test_a_copy_is_of_its_moment(trained):
    arrays = copy_variables(trained)
    kept = {name: array.copy() for name, array in arrays.items()}
    trained.fit(SmallBatches(), verbose=0)
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, kept[name])


def test_integers_of_another_backend(trained):
    arrays = copy_variables(trained)
    wide = {n: a.astype("int64") if a.dtype.kind in "iu" else a for n, a in arrays.items()}
    twin = build_like(trained)
    assign_variables(twin, wide, "here")
    assert int(twin.optimizer.iterations) == int(trained.optimizer.iterations)


def test_bfloat16_stays():
    task = Pretrainer(BertBackbone(**TINY, dtype="bfloat16"), next_sentence=False)
    task.compile(AdamW(1e-3))
    task.optimizer.build(task.trainable_variables)
    arrays = copy_variables(task)
    kernels = [array for name, array in arrays.items() if name.endswith("pooler/kernel")]
    assert {array.dtype.name for array in kernels} == {"bfloat16"}
    assign_variables(task, arrays, "here")


def test_another_model_is_refused(trained):
    wider = Pretrainer(
        BertBackbone(**{**TINY, "num_layers": 1, "intermediate_dim": 40}), next_sentence=False
    )
    wider.compile(AdamW(1e-3))
    wider.fit(SmallBatches(), verbose=0, steps_per_epoch=1)
    before = all_arrays(wider)
    with pytest.raises(
        ValueError, match=r"here holds.*intermediate/bias: float32 \(32,\), wanted.*\(40,\)"
    ):
        assign_variables(wider, copy_variables(trained), "here")
    for found, wanted in zip(all_arrays(wider), before, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_weights_that_are_not_finite_are_not_kept(trained):
    task = build_like(trained)
    bias = task.masked_lm.bias
    bias.assign(np.full(bias.shape, np.nan))
    with pytest.raises(FloatingPointError, match="masked_lm/bias holds values.*not finite"):
        copy_variables(task)
