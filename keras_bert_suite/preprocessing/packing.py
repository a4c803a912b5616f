"""Packs ragged token ids as rows of a template, by index arithmetic over a grid.

Every function is written once, and runs in NumPy and in a TensorFlow graph. Its first argument is
the namespace of array functions to use: `NUMPY`, or the result of `tensorflow_namespace`. S is the
number of segments.
"""

from types import SimpleNamespace

import numpy as np

from keras_bert_suite.tokenizers.row_template import count_special_tokens
from keras_bert_suite.tokenizers.text_inputs import is_tf_tensor

TRUNCATIONS = ("longest_first", "only_first", "only_second", "head", "tail", "head_tail")

NUMPY = SimpleNamespace(
    append_zero=lambda x: np.append(x, np.int32(0)),
    arange=np.arange,
    argmax=lambda x: np.argmax(x, axis=-1),
    argsort=lambda x: np.argsort(x, axis=-1, kind="stable"),
    asarray=np.asarray,
    cast=lambda x: np.asarray(x).astype("int32"),
    clip=np.clip,
    concat=np.concatenate,
    cumsum=lambda x: np.cumsum(x, dtype=x.dtype),
    logical_and=np.logical_and,
    max=lambda x: np.max(x, initial=0),
    maximum=np.maximum,
    min=np.min,
    minimum=np.minimum,
    repeat=np.repeat,
    reshape=np.reshape,
    searchsorted=np.searchsorted,
    shape=np.shape,
    size=np.size,
    sum=np.sum,
    take=np.take,
    where=np.where,
    zeros_like=np.zeros_like,
)


def tensorflow_namespace():
    """Makes the namespace with the names of `NUMPY` for TensorFlow, which is imported only here."""
    import tensorflow as tf

    return SimpleNamespace(
        append_zero=lambda x: tf.pad(x, [[0, 1]]),
        arange=tf.range,
        argmax=lambda x: tf.argmax(x, axis=-1),
        argsort=lambda x: tf.argsort(x, axis=-1, stable=True),
        asarray=tf.constant,
        cast=lambda x: tf.cast(x, "int32"),
        clip=tf.clip_by_value,
        concat=lambda arrays: tf.concat(arrays, axis=0),
        cumsum=tf.cumsum,
        logical_and=tf.logical_and,
        max=tf.reduce_max,
        maximum=tf.maximum,
        min=tf.reduce_min,
        minimum=tf.minimum,
        repeat=tf.repeat,
        reshape=tf.reshape,
        searchsorted=tf.searchsorted,
        shape=tf.shape,
        size=tf.size,
        sum=tf.reduce_sum,
        take=tf.gather,
        where=tf.where,
        zeros_like=tf.zeros_like,
    )


def choose_namespace(*arrays):
    """`NUMPY`, or the namespace of TensorFlow if one of the arrays is a tensor of it."""
    return tensorflow_namespace() if any(map(is_tf_tensor, arrays)) else NUMPY


def count_places(sequence_length, num_segments, num_separators=1, template=None):
    """Counts the places of a row that are left for texts. Raises ValueError if there is none.

    A `RowTemplate` counts its special tokens itself.
    """
    if template is None:
        special = count_special_tokens(num_segments, num_separators)
    else:
        special = template.count_special_tokens(num_segments)
    places = sequence_length - special
    if places < 1:
        raise ValueError(
            f"sequence_length={sequence_length} cannot hold {num_segments} segments with their "
            f"special tokens; it must be at least {sequence_length - places + 1}."
        )
    return places


def kept_lengths(xp, lengths, budget, truncation):
    """Counts the tokens that each segment keeps so that all segments fit into `budget`.

    "longest_first" removes one token at a time from the longest segment, until all tokens fit. If
    segments have equal length, the later segment loses the token (Google's rule for pairs).
    "only_first" removes tokens from the first segment as long as it has any, and "only_second" from
    the second segment; then "longest_first" applies. "head", "tail" and "head_tail" keep as many
    tokens as "longest_first". The lengths, before and after, are S int32 arrays (B,).

    >>> kept_lengths(NUMPY, [np.array([10, 3]), np.array([10, 9])], 7, "longest_first")
    [array([4, 3]), array([3, 4])]
    """
    lengths = list(lengths)
    gives_way = {"only_first": 0, "only_second": 1}.get(truncation)
    if gives_way is not None:
        others = sum(lengths) - lengths[gives_way]
        room = xp.maximum(budget - others, xp.zeros_like(others))
        lengths[gives_way] = xp.minimum(lengths[gives_way], room)
    # The longest segments are cut to `level`, which is found bit by bit from its highest bit.
    level = xp.zeros_like(lengths[0])
    for bit in reversed(range(budget.bit_length())):
        higher = level + (1 << bit)
        fits = sum(xp.minimum(length, higher) for length in lengths) <= budget
        level = xp.where(fits, higher, level)
    kept = [xp.minimum(length, level) for length in lengths]
    spare = budget - sum(kept)
    for s, length in enumerate(lengths):
        one_more = xp.cast(xp.logical_and(length > level, spare > 0))
        kept[s] += one_more
        spare -= one_more
    return kept


def padded_length(xp, longest, allowed_lengths):
    """The smallest allowed length that holds `longest`, or `longest` if any length is allowed."""
    if allowed_lengths is None:
        return longest
    allowed = xp.asarray(np.array(allowed_lengths, "int32"))
    return xp.min(xp.where(allowed >= longest, allowed, allowed_lengths[-1]))


def pack_segments(
    xp,
    segments,
    sequence_length,
    template,
    truncation="longest_first",
    head_length=None,
    allowed_lengths=None,
):
    """Packs S segments a row with the special tokens of a template, and pads the rows.

    Args:
        segments: list of S triples (ids, starts, lengths). `ids`, int32 (T,), holds the token ids
            of all rows. `starts` and `lengths`, int32 (B,), say where in `ids` each row begins and
            how many tokens it has.
        sequence_length: int, the maximum sequence length, with special tokens.
        template: `RowTemplate`, from the tokenizer.
        truncation: one of `TRUNCATIONS`. "tail" keeps the end of a text. "head_tail" keeps
            `head_length` tokens of the beginning, and the rest from the end. All others keep
            the beginning of a text.
        head_length: int, for "head_tail".
        allowed_lengths: ascending ints, the lengths to pad to. The last is `sequence_length`.
            None pads to the longest row.

    Returns:
        dict of int32 (B, L): `token_ids`, `segment_ids` (of the template, for a text and its
        [SEP]s; left out if it has none), `padding_mask` (1 on tokens).

    Raises:
        ValueError: if `sequence_length` has no place for a token beside the special tokens; or if
            the template has segments for another number of texts.
    """
    budget = count_places(sequence_length, len(segments), template=template)
    kept = kept_lengths(xp, [lengths for _, _, lengths in segments], budget, truncation)
    total = template.count_tokens(kept)
    if allowed_lengths is not None and len(allowed_lengths) == 1:
        length = sequence_length
    else:
        length = padded_length(xp, xp.maximum(xp.max(total), 1), allowed_lengths)

    column, padding_mask = _count_columns(xp, template, total, length)
    token_ids = padding_mask * (template.end_token_id - template.pad_token_id)
    token_ids += template.pad_token_id
    is_summary = column == (0 if template.summary_place == "first" else total[:, None] - 1)
    if template.has_special_tokens:
        token_ids = xp.where(is_summary, template.start_token_id, token_ids)
    numbers = template.list_segments(len(segments))
    segment_ids = xp.zeros_like(token_ids) + numbers[0]
    begin = xp.zeros_like(total) + template.num_leading
    for s, ((ids, starts, lengths), keep) in enumerate(zip(segments, kept, strict=True)):
        if s:
            segment_ids += (numbers[s] - numbers[s - 1]) * xp.cast(column >= begin[:, None])
        head = _head_lengths(xp, lengths, keep, truncation, head_length)
        position = column - begin[:, None]
        source = (
            starts[:, None]
            + position
            + xp.where(position < head[:, None], 0, (lengths - keep)[:, None])
        )
        inside = xp.logical_and(position >= 0, position < keep[:, None])
        # An id is appended, because a batch without any token has no id to look up.
        looked_up = xp.take(xp.append_zero(ids), xp.clip(source, 0, xp.size(ids)))
        token_ids = xp.where(inside, looked_up, token_ids)
        begin += keep + template.num_between
    packed = {"token_ids": token_ids}
    if template.has_segment_ids:
        if template.has_special_tokens and template.summary_segment is not None:
            segment_ids = xp.where(is_summary, template.summary_segment, segment_ids)
        packed["segment_ids"] = segment_ids * padding_mask
    return {**packed, "padding_mask": padding_mask}


def _count_columns(xp, template, total, length):
    """The place of each column among the tokens of its row, and the padding mask, int32 (B, L).

    `total`, int32 (B,), counts the tokens. The places are (1, L), or with padding on the left (B,
    L), negative on padding.
    """
    column = xp.cast(xp.arange(length))[None, :]
    if template.padding_side == "right":
        return column, xp.cast(column < total[:, None])
    column = column - (length - total)[:, None]
    return column, xp.cast(column >= 0)


def _head_lengths(xp, lengths, keep, truncation, head_length):
    """Counts the kept tokens that come from the beginning of a text. The rest come from its end."""
    if truncation == "tail":
        return xp.zeros_like(keep)
    if truncation == "head_tail":
        return xp.minimum(keep, head_length)
    return keep


def tokenize_segments(tokenizer, segments):
    """Tokenizes each segment of B rows, with TensorFlow if a segment is a tensor.

    The segments are S lists or arrays of B strings, or tensors (B,); or S strings or scalars.

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
