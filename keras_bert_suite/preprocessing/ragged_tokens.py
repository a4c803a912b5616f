"""Tokenizes segments of texts into the ragged ids that `packing` takes, in NumPy or TensorFlow."""

from keras_bert_suite.preprocessing.packing import NUMPY, tensorflow_namespace
from keras_bert_suite.tokenizers.text_inputs import is_tf_tensor


def tokenize_segments(tokenizer, segments):
    """Tokenizes each segment of B rows, with TensorFlow if a segment is a tensor.

    Args:
        tokenizer: `TextTokenizer`.
        segments: S lists or arrays of B strings, or tensors (B,); or S strings or scalars.

    Returns:
        `(xp, ragged, batched)`: the namespace of array functions; list of S triples (ids, starts,
        lengths), int32, as `pack_segments` takes them; bool, False for one row without a batch.

    Raises:
        ValueError: if the segments differ in their number of rows. The rows of symbolic tensors
            are counted only if TensorFlow knows them.
    """
    if any(is_tf_tensor(segment) for segment in segments):
        xp = tensorflow_namespace()
        ragged, batched = _tokenize_tensors(tokenizer, segments)
    else:
        xp = NUMPY
        ragged, batched = _tokenize_texts(tokenizer, segments)
    ragged = [(ids, xp.cast(lengths)) for ids, lengths in ragged]
    return xp, [(ids, xp.cumsum(n) - n, n) for ids, n in ragged], batched


def _tokenize_texts(tokenizer, segments):
    batched = not isinstance(segments[0], (str, bytes))
    segments = [segment if batched else [segment] for segment in segments]
    _check_sizes([len(segment) for segment in segments])
    return [tokenizer.tokenize_flat(segment) for segment in segments], batched


def _tokenize_tensors(tokenizer, segments):
    import tensorflow as tf

    segments = [tf.convert_to_tensor(segment) for segment in segments]
    batched = segments[0].shape.rank != 0
    if not batched:
        segments = [segment[None] for segment in segments]
    _check_sizes([segment.shape[0] for segment in segments if segment.shape.rank])
    ragged = [tokenizer.tokenize(segment) for segment in segments]
    return [(ids.flat_values, ids.row_lengths()) for ids in ragged], batched


def _check_sizes(sizes):
    """Raises a `ValueError` if segments differ in their number of rows; None is unknown."""
    if len({size for size in sizes if size is not None}) > 1:
        raise ValueError(f"All segments must have the same number of texts, got {sizes}.")
