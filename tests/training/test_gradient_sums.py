"""Gradients of embeddings, which TensorFlow keeps in parts."""

import keras
import numpy as np
import pytest

from keras_bert_suite.training import sum_before_clipping

pytestmark = pytest.mark.backend("tensorflow")


@pytest.mark.parametrize("arguments", [{"global_clipnorm": 0.1}, {"clipnorm": 0.1}, {}])
def test_an_optimizer_of_keras_adds_the_parts_first(arguments):
    import tensorflow as tf

    # Row 0 has two parts, as a token that occurs twice.
    parts = tf.IndexedSlices(tf.constant([[1.0, -2.0], [3.0, 1.0], [0.5, 0.5]]), [0, 0, 2], [3, 2])
    table = []
    for gradient in (parts, tf.constant([[4.0, -1.0], [0.0, 0.0], [0.5, 0.5]])):
        variable = keras.Variable(np.ones((3, 2), "float32"))
        optimizer = keras.optimizers.Adam(0.1, epsilon=0.1, **arguments)
        sum_before_clipping(optimizer)
        optimizer.apply([gradient], [variable])
        optimizer.apply([gradient], [variable])
        table.append(variable.numpy())
    np.testing.assert_allclose(*table, rtol=1e-6)
