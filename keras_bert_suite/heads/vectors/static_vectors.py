"""The vectors of a `TextEmbedder` on a `StaticBackbone`, without padding and without a graph.

A graph would gather and pad the vectors of all tokens, and texts would be tokenized twice, once to
sort them by length. Here the tokenizer takes most of the time.
"""

import numpy as np
from keras import ops

from keras_bert_suite.data.input_dataset import is_dataset
from keras_bert_suite.layers import MeanPooling
from keras_bert_suite.models import StaticBackbone
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.replicas import has_joint_variables
from keras_bert_suite.runs.batches import read
from keras_bert_suite.runs.weight_lock import lock_weights
from keras_bert_suite.tokenizers.text_inputs import is_tf_tensor

#: How many texts are tokenized, and how many vectors are gathered at once. The vectors of a block
#: stay in the cache of a processor.
_TEXTS, _TOKENS = 16384, 2048
#: How many vectors are added in float32. The sums of longer rows are in float64.
_PIECE = 128

#: The truncations that keep the beginning of a single text.
_KEEPS_BEGINNING = ("longest_first", "only_first", "only_second", "head")


def encode_static(embedder, x, batch_size, arguments):
    """The vectors of texts in memory, float32 (N, H); None if the model itself must make them.

    `x`, `batch_size` and further `arguments` are those of `predict`.
    """
    is_column = isinstance(x, list) or getattr(x, "ndim", None) == 1
    if not is_column or is_dataset(x) or is_tf_tensor(x) or not _reads_table(embedder):
        return None
    embedder.check_predict_arguments(arguments)
    rows = read(embedder, x, batch_size=batch_size)
    if rows.is_packed or len(rows.inputs) != 1 or not len(rows):
        return None
    (texts,) = rows.inputs
    packer = embedder.preprocessor
    with lock_weights(embedder):
        table = _read_table(embedder.backbone.token_embedding.embeddings)
        vectors = np.zeros((len(texts), table.shape[1]), "float32")
        for first in range(0, len(texts), _TEXTS):
            part = slice(first, first + _TEXTS)
            ids, lengths = packer.tokenizer.tokenize_flat(texts[part].tolist())
            starts = np.cumsum(lengths) - lengths
            kept = np.minimum(lengths, packer.sequence_length)
            average_rows(table, ids, starts, kept, vectors[part])
    if embedder.normalize:
        squares = np.sum(np.square(vectors), axis=-1, keepdims=True)
        vectors *= 1 / np.sqrt(np.maximum(squares, np.float32(1e-24)))
    return vectors if embedder.dimensions is None else vectors[:, : embedder.dimensions].copy()


def average_rows(table, ids, starts, lengths, means):
    """Writes the mean of the vectors of each row of tokens to `means`, float32 (N, H) of zeros.

    Rows of one length are averaged together. A row without tokens stays 0.

    Args:
        table: float32 (V, H).
        ids: int32 (T,).
        starts, lengths: int (N,), where in `ids` each row begins, and how many tokens it has.
    """
    order = np.argsort(lengths, kind="stable")
    ordered = lengths[order]
    bounds = np.flatnonzero(np.diff(ordered, prepend=-1, append=-1))
    for begin, end in zip(bounds[:-1], bounds[1:], strict=True):
        length = int(ordered[begin])
        step = max(1, _TOKENS // max(length, 1))
        for first in range(begin, end if length else begin, step):
            rows = order[first : min(first + step, end)]
            total = np.zeros((len(rows), table.shape[1]))
            for place in range(0, length, _PIECE):
                places = np.arange(place, min(place + _PIECE, length))
                total += table[ids[starts[rows][:, None] + places]].sum(axis=1)
            means[rows] = total / length


def _reads_table(embedder):
    """Whether the vectors of an embedder are the means of rows of a table in float32."""
    backbone = getattr(embedder, "backbone", None)  # An `Ensemble` has none.
    packer = getattr(embedder, "preprocessor", None)
    if type(backbone) is not StaticBackbone or type(packer) is not SegmentPacker:
        return False
    layer = backbone.token_embedding
    is_plain = layer.quantization_mode is None and not layer.lora_enabled
    is_mean = type(embedder.pooling) is MeanPooling and not embedder.dense_layers
    in_float32 = backbone.compute_dtype == embedder.pooling.compute_dtype == "float32"
    cuts_end = not packer.add_special_tokens and packer.truncation in _KEEPS_BEGINNING
    return is_plain and is_mean and in_float32 and cuts_end and not has_joint_variables()


def _read_table(variable):
    """float32 (V, H), of a variable, without a copy where the backend allows it."""
    value = ops.stop_gradient(ops.convert_to_tensor(variable))
    # NumPy does not read the memory of a GPU of PyTorch.
    return np.asarray(value.cpu() if getattr(value, "is_cuda", False) else value)
