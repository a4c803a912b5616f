"""Turns texts into the inputs of a backbone, by our packer or by a preprocessor of KerasHub."""

import threading

import numpy as np

from keras_bert_suite.models.model_inputs import select_inputs
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.tasks.base.input_checks import check_preprocessor, check_segments
from keras_bert_suite.tokenizers.text_inputs import is_tf_tensor

#: A preprocessor of KerasHub is built in its first call, so two threads must not call it at once.
_KERAS_HUB_LOCK = threading.Lock()

#: The most characters that are tokenized only to be counted.
_MOST_CHARACTERS = 100_000_000


def check_can_pack(task):
    """Checks that a task has a preprocessor that fits its backbone."""
    if task.preprocessor is None:
        raise ValueError(
            f"{task.name} has no preprocessor to pack texts with. Set `preprocessor`, or pass "
            "packed arrays, a dictionary of token_ids, segment_ids and padding_mask."
        )
    if task.needs_segment_packer and not isinstance(task.preprocessor, SegmentPacker):
        raise ValueError(
            f"{task.name} has a {type(task.preprocessor).__name__}, which does not say where in a "
            "text a token is. Set `preprocessor` to a SegmentPacker with the tokenizer of the "
            "backbone, WordPiece or byte pairs, or pass packed arrays."
        )
    check_preprocessor(task.preprocessor, task.backbone)


def pack_texts(task, texts):
    """See `RowTask.pack_texts`."""
    check_can_pack(task)
    check_segments(len(texts), task.backbone, task.input_names)
    if isinstance(task.preprocessor, SegmentPacker):
        packed = task.preprocessor.pack(*texts)
    else:
        packed = _pack_by_keras_hub(task.preprocessor, texts)
    return select_inputs(task.backbone, packed)


def measure_rows(preprocessor, rows):
    """Measures `Rows` in memory, so that rows of similar length can share a batch.

    It returns int64 (N,), in tokens if our tokenizer can count them within some seconds, else in
    characters; None if the inputs are packed.
    """
    lengths = rows.text_lengths()
    counts_tokens = lengths is not None and isinstance(preprocessor, SegmentPacker)
    if not counts_tokens or lengths.sum() > _MOST_CHARACTERS:
        return lengths
    return rows.text_lengths(lambda texts: preprocessor.tokenizer.tokenize_flat(texts)[1])


def _pack_by_keras_hub(preprocessor, texts):
    """Packs lists of strings as arrays, or tensors of strings as tensors."""
    if any(map(is_tf_tensor, texts)):
        return preprocessor(texts if len(texts) > 1 else texts[0], y=None)
    texts = tuple(map(list, texts))
    with _KERAS_HUB_LOCK:
        # With `y`, KerasHub reads a tuple as segments, and not as an element of a dataset.
        packed = preprocessor(texts if len(texts) > 1 else texts[0], y=None)
    return {name: np.asarray(array) for name, array in packed.items()}
