"""Arrays that a model hands on to its layers belong to one call.

The oracle is the same model, called eagerly with the same arrays.
"""

import keras
import numpy as np
import pytest
from peer_weights import to_numpy

from keras_bert_suite.layers import BertEmbeddings, PackedSequences, SequenceNumbers
from keras_bert_suite.layers.companions import CompanionReader, find_companions, hand_on


class PackedModel(PackedSequences, keras.Model):
    """A model of a guest whose rows may come packed."""


MASK = np.array([[1, 1, 1], [1, 0, 0]], "int32")
#: Layouts of one shape and of another, and none.
LAYOUTS = ([[0, 1, 2, 3]], [[3, 0, 1, 2]], [[0, 1, 2], [3, -1, -1]], None)


def make_arrays(layout):
    packed = {} if layout is None else {"sequence_layout": np.array(layout, "int32")}
    arrays = {"padding_mask": MASK, **packed}
    return {name: keras.ops.convert_to_tensor(array) for name, array in arrays.items()}


def compile_call(model):
    """The call of a model, compiled as a whole by the compiler of the backend."""
    backend = keras.config.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        return tf.function(lambda arrays: model(arrays, training=False))
    if backend == "jax":
        import jax

        return jax.jit(lambda arrays: model(arrays, training=False))
    import torch

    return torch.compile(
        lambda arrays: model(arrays, training=False), backend="eager", fullgraph=True
    )


@pytest.mark.every_backend
def test_a_compiled_call_reads_the_layout_of_its_own_batch():
    mask = keras.Input((None,), dtype="int32", name="padding_mask")
    model = PackedModel({"padding_mask": mask}, SequenceNumbers()(mask))
    compiled = compile_call(model)
    for layout in (*LAYOUTS, *LAYOUTS):
        arrays = make_arrays(layout)
        found = to_numpy(compiled(arrays))
        wanted = MASK if layout is None else np.array(layout) // 3
        np.testing.assert_array_equal(found, wanted)
        assert not find_companions()


def test_a_call_that_fails_leaves_nothing():
    with hand_on({"prompt_length": 1}):
        with pytest.raises(KeyError), hand_on({"sequence_layout": 2}):
            assert find_companions() == {"prompt_length": 1, "sequence_layout": 2}
            raise KeyError
        assert find_companions() == {"prompt_length": 1}
    assert not find_companions()


class Reader(CompanionReader):
    def call(self, x, sequence_layout=None):
        return x if sequence_layout is None else x * sequence_layout


def test_an_array_that_is_given_goes_before_one_that_is_handed_on():
    with hand_on({"sequence_layout": 2.0}):
        found = [Reader()(np.ones(1)), Reader()(np.ones(1), sequence_layout=3.0)]
    assert [float(x[0]) for x in found] == [2.0, 3.0]


@pytest.mark.backend("torch")
def test_a_layer_that_keras_recomputes_has_its_layout_for_the_gradient():
    gradients = []
    for mode in (None, "full"):
        with keras.RematScope(mode):
            embeddings = BertEmbeddings(5, 2, 4, dropout=0.0)
        inputs = {
            name: keras.Input((None,), dtype="int32", name=name)
            for name in ("token_ids", "padding_mask")
        }
        model = PackedModel(inputs, embeddings(inputs["token_ids"]))
        for variable, seed in zip(model.weights, range(9), strict=False):
            variable.assign(keras.random.normal(variable.shape, seed=seed))
        arrays = {**make_arrays(LAYOUTS[1]), "token_ids": keras.ops.convert_to_tensor(MASK * 3)}
        keras.ops.sum(model(arrays, training=True) ** 3).backward()
        gradients.append([to_numpy(v.value.grad) for v in model.trainable_variables])
    for plain, recomputed in zip(*gradients, strict=True):
        np.testing.assert_allclose(recomputed, plain, rtol=1e-5)
