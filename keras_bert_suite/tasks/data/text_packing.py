"""Turns texts into the inputs of a backbone, by our packer or by a preprocessor of KerasHub."""

import threading

import numpy as np

from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.tokenizers.text_inputs import is_tf_tensor

#: A preprocessor of KerasHub is built in its first call, so two threads must not call it at once.
_KERAS_HUB_LOCK = threading.Lock()

#: The most characters that are tokenized only to be counted.
_MOST_CHARACTERS = 100_000_000


def check_can_pack(data):
    """Checks that the data of a task have a preprocessor that can pack their texts."""
    if data.packer is None:
        raise ValueError(
            "This task has no preprocessor to pack texts with. Set `preprocessor`, or pass "
            "packed arrays, a dictionary of token_ids, segment_ids and padding_mask."
        )
    if data.needs_segment_packer and not isinstance(data.packer, SegmentPacker):
        raise ValueError(
            f"This task has a {type(data.packer).__name__}, which does not say where in a text a "
            "token is. Set `preprocessor` to a SegmentPacker with the tokenizer of the backbone, "
            "WordPiece or byte pairs, or pass packed arrays."
        )


def pack_texts(packer, texts):
    """Packs columns of texts; see `TextData.pack_texts`."""
    if isinstance(packer, SegmentPacker):
        return packer.pack(*texts)
    if any(map(is_tf_tensor, texts)):
        return packer(texts if len(texts) > 1 else texts[0], y=None)
    texts = tuple(map(list, texts))
    with _KERAS_HUB_LOCK:
        # With `y`, KerasHub reads a tuple as segments, and not as an element of a dataset.
        packed = packer(texts if len(texts) > 1 else texts[0], y=None)
    return {name: np.asarray(array) for name, array in packed.items()}


def measure_rows(packer, rows):
    """Measures `Rows` in memory, so that rows of similar length can share a batch.

    It returns int64 (N,), in tokens if our tokenizer can count them within some seconds, else in
    characters; None if the inputs are packed.
    """
    lengths = rows.text_lengths()
    counts_tokens = lengths is not None and isinstance(packer, SegmentPacker)
    if not counts_tokens or lengths.sum() > _MOST_CHARACTERS:
        return lengths
    return rows.text_lengths(lambda texts: packer.tokenizer.tokenize_flat(texts)[1])
