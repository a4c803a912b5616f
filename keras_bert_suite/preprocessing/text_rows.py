"""Turns rows of several texts into one batch of texts, for encoders that see one text at a time."""

import numpy as np

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.models.frame_inputs import FRAMES
from keras_bert_suite.tokenizers.text_inputs import is_tf_tensor


def interleave_texts(columns):
    """Puts the texts of each row one after the other: S columns of B strings -> B S strings.

    >>> interleave_texts((["a", "b"], ["c", "d"]))
    ['a', 'c', 'b', 'd']

    String tensors of TensorFlow, also in a graph, become a tensor.
    """
    if any(map(is_tf_tensor, columns)):
        import tensorflow as tf

        return tf.reshape(tf.stack(columns, axis=1), [-1])
    return [text for row in zip(*columns, strict=True) for text in row]


def number_texts(token_ids: Tensor, num_texts: int) -> Tensor:
    """Numbers the texts of a batch, int32 (B S, L) -> int32 (B, S). Equal texts get equal numbers.

    >>> number_texts(np.array([[5, 6], [7, 8], [7, 8], [9, 0]]), 2)
    array([[0, 1], [1, 2]], dtype=int32)

    A tensor in a graph of TensorFlow becomes a tensor.
    """
    if is_tf_tensor(token_ids):
        import tensorflow as tf

        numbers = tf.raw_ops.UniqueV2(x=token_ids, axis=[0]).idx
        return tf.reshape(numbers, [-1, num_texts])
    _, numbers = np.unique(token_ids, axis=0, return_inverse=True)
    return numbers.reshape(-1, num_texts).astype("int32")


def split_packed(arrays):
    """Splits packed rows of several texts, int32 (B, S, L), into S dicts of arrays (B, L).

    Single texts are (B, L). Tensors in a graph of TensorFlow are taken, too.
    """
    if {len(array.shape) - (name == FRAMES) for name, array in arrays.items()} == {2}:
        return (arrays,)
    if {len(array.shape) for array in arrays.values()} != {3}:
        shapes = {name: tuple(array.shape) for name, array in arrays.items()}
        raise ValueError(f"Packed arrays must have the shape (B, S, L) or (B, L), got {shapes}.")
    num_texts = next(iter(arrays.values())).shape[1]
    return tuple({name: array[:, i] for name, array in arrays.items()} for i in range(num_texts))


def interleave_packed(columns):
    """Puts the packed texts of each row one after the other: S dicts (B, L) -> a dict (B S, L)."""
    return {name: _interleave([column[name] for column in columns]) for name in columns[0]}


def _interleave(arrays):
    if is_tf_tensor(arrays[0]):
        import tensorflow as tf

        stacked = tf.stack(arrays, axis=1)
        return tf.reshape(stacked, [-1, tf.shape(stacked)[2]])
    stacked = np.stack(arrays, axis=1)
    return stacked.reshape(-1, *stacked.shape[2:])
