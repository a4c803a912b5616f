"""All variables of a training to arrays and back."""

import keras
import numpy as np
import pytest
from small_pretraining import STEPS_PER_EPOCH, SmallBatches, all_arrays, build_pretrainer
from small_texts import ONE_LAYER, TINY

from keras_bert_suite import (
    AdamW,
    AttentionPooling,
    BertBackbone,
    BiLSTMPooling,
    ConvolutionPooling,
    DocumentClassifier,
    EntitySpanClassifier,
    GlobalPointer,
    LastLayers,
    Pretrainer,
    ScalarMix,
    TextClassifier,
    TextEmbedder,
    WindowTransformer,
)
from keras_bert_suite.runs.model_variables import (
    assign_variables,
    copy_variables,
    named_variables,
)
from keras_bert_suite.training import set_schedule_length


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


@pytest.mark.every_backend
def test_round_trip(trained):
    arrays, before = copy_variables(trained), all_arrays(trained)
    twin = build_like(trained)
    assign_variables(twin, arrays, "here")
    set_schedule_length(twin, 0, STEPS_PER_EPOCH)  # Each `fit` does so, and arrays leave it out.
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
        ValueError, match=r"here is the state.*intermediate/bias: float32 \(32,\), wanted.*\(40,\)"
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


class OwnPooling(keras.layers.Layer):
    """A layer as a user writes it, without a name anywhere."""

    def __init__(self):
        super().__init__()
        self.parts = [keras.layers.Dense(4), keras.layers.Dense(4), keras.layers.Dropout(0.1)]
        self.scale = self.add_weight(shape=(4,))

    def call(self, sequence_output, padding_mask):
        for part in self.parts:
            sequence_output = part(sequence_output)
        return sequence_output[:, 0] * self.scale


def pool_texts(make_pooling):
    return lambda backbone: TextClassifier(backbone, 2, pooling=make_pooling())


def pool_twice(backbone):
    return DocumentClassifier(
        backbone,
        2,
        pooling=ScalarMix(pooling=AttentionPooling()),
        window_pooling=AttentionPooling(),
    )


#: Tasks with a layer that the user makes, and leaves without a name.
UNNAMED = {
    "attention": pool_texts(AttentionPooling),
    "convolution": pool_texts(lambda: ConvolutionPooling(2)),
    "BiLSTM": pool_texts(BiLSTMPooling),
    "scalar mix": pool_texts(lambda: ScalarMix(pooling=AttentionPooling())),
    "last layers": pool_texts(lambda: LastLayers(1, pooling=BiLSTMPooling())),
    "Keras' own": pool_texts(lambda: keras.layers.Bidirectional(keras.layers.LSTM(2))),
    "own": pool_texts(OwnPooling),
    "windows": lambda b: DocumentClassifier(b, 2, window_pooling=WindowTransformer(num_heads=2)),
    "two of a class": pool_twice,
    "spans": lambda b: EntitySpanClassifier(b, 2, head=GlobalPointer(2, head_dim=2)),
    "vectors": lambda b: TextEmbedder(b, pooling=AttentionPooling()),
}


def build_unnamed(name, **arguments):
    task = UNNAMED[name](BertBackbone(**ONE_LAYER))
    task.compile(keras.optimizers.LossScaleOptimizer(AdamW(1e-3)), **arguments)
    task.optimizer.build(task.trainable_variables)
    return task


#: The LSTM of the last layers is slow.
MARKS = {"two of a class": pytest.mark.every_backend, "last layers": pytest.mark.long("faults")}


@pytest.mark.parametrize("name", [pytest.param(n, marks=MARKS.get(n, ())) for n in UNNAMED])
def test_names_do_not_depend_on_what_was_built_before(name):
    """As when a cell of a notebook is run again."""
    task, twin = build_unnamed(name), build_unnamed(name)
    arrays = copy_variables(task)
    assert {variable.path for variable in task.variables} != {v.path for v in twin.variables}
    # The moments of a weight follow it.
    assert len(arrays) >= len(task.variables) + 2 * len(task.trainable_variables)
    assign_variables(twin, arrays, "here")
    for ours, theirs in zip(twin.weights, task.weights, strict=True):
        assert np.array_equal(*map(keras.ops.convert_to_numpy, (ours, theirs))), ours.path


def test_names_of_metrics():
    class OwnMean(keras.metrics.Mean):
        def update_state(self, labels, outputs, sample_weight=None):
            return super().update_state(outputs)

    def build():
        task = build_unnamed("attention", metrics=[OwnMean(name=None)])
        ids = np.ones((2, 4), "int32")
        task._symbolic_build(data_batch=({name: ids for name in task.input}, np.zeros(2)))
        return task

    task, twin = build(), build()
    assert named_variables(task).keys() == named_variables(twin).keys()
    assert [v.path for v in task.metrics_variables] != [v.path for v in twin.metrics_variables]
