"""Rows of several texts that an encoder sees one by one, as one batch of texts."""

import numpy as np

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.tokenizers.text_inputs import is_tf_tensor


def interleave_texts(columns):
    """Puts the texts of each row one after the other.

    >>> interleave_texts((["a", "b"], ["c", "d"]))
    ['a', 'c', 'b', 'd']

    Args:
        columns: tuple of S columns: B strings as a list or an array, or string tensors (B,) of
            TensorFlow, also in a graph.

    Returns:
        list of B S strings, or a string tensor (B S,) for tensors.

    Raises:
        ValueError: if the columns differ in length.
    """
    if any(map(is_tf_tensor, columns)):
        import tensorflow as tf

        return tf.reshape(tf.stack(columns, axis=1), [-1])
    lengths = [len(column) for column in columns]
    if len(set(lengths)) > 1:
        raise ValueError(
            "The columns of a batch must have the same number of texts, got "
            f"{' and '.join(map(str, lengths))} texts."
        )
    return [text for row in zip(*columns, strict=True) for text in row]


def number_texts(token_ids: Tensor, num_texts: int) -> Tensor:
    """Numbers the texts of a batch, equal texts with equal numbers.

    >>> number_texts(np.array([[5, 6], [7, 8], [7, 8], [9, 0]]), 2)
    array([[0, 1], [1, 2]], dtype=int32)

    Args:
        token_ids: int32 (B S, L), packed texts, also a tensor in a graph of TensorFlow.
        num_texts: int S, texts of a row.

    Returns:
        int32 (B, S), an array, or a tensor for a tensor.
    """
    if is_tf_tensor(token_ids):
        import tensorflow as tf

        numbers = tf.raw_ops.UniqueV2(x=token_ids, axis=[0]).idx
        return tf.reshape(numbers, [-1, num_texts])
    _, numbers = np.unique(token_ids, axis=0, return_inverse=True)
    return numbers.reshape(-1, num_texts).astype("int32")
