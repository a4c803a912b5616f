"""Cuts rows with spans into windows of tokens, and joins spans of windows to spans of rows.

A span is stored as two tokens: the first token of its first word, and the first token of its last
word. In a window both are positions in the packed row, counted from its origin, see `RowTemplate`.
"""

import dataclasses
import warnings

import numpy as np

from keras_bert_suite.data.word_rows import as_column
from keras_bert_suite.heads.tags.windows import cut_windows


def cut_span_windows(packer, rows, cutting=None):
    """Cuts `Rows` of words or texts into `WordWindows`. A window has every span that it sees whole.

    A span is int32 (3,): the positions of the two tokens, and the label id. A span without a word,
    or beyond its row, is a ValueError.
    """
    windows = cut_windows(packer, rows, cutting)
    if rows.labels is None:
        return windows
    spans = _find_tokens(windows, rows.labels)
    (tokens,) = windows.inputs
    ends = windows.starts + np.fromiter(map(len, tokens), "int32", len(tokens))
    labels, seen = [], [np.zeros(len(row), bool) for row in spans]
    edges = zip(windows.sources, windows.starts, ends, strict=True)
    for window, (row, start, end) in enumerate(edges):
        inside = (spans[row][:, 0] >= start) & (spans[row][:, 1] < end)
        seen[row] |= inside
        shift = windows.find_text(window) - start
        labels.append((spans[row][inside] + [shift, shift, 0]).astype("int32"))
    unseen = [
        (row, spans[row][~is_seen][0]) for row, is_seen in enumerate(seen) if not is_seen.all()
    ]
    if unseen:
        row, span = unseen[0]
        warnings.warn(
            f"{sum((~is_seen).sum() for is_seen in seen)} entities are in no window as a whole and "
            f"are not learned, such as the entity of row {row} that is {span[1] - span[0] + 1} "
            f"tokens long. A window has {packer.count_places()} tokens, and the next window begins "
            "half of that later. Raise the preprocessor's sequence_length.",
            stacklevel=2,
        )
    return dataclasses.replace(windows, labels=as_column(labels))


def align_spans(windows, labels):
    """The spans of B rows as they are learned, for scores: lists of (start, end, label id).

    A span of characters becomes the words that it touches, from their first character to their
    last. A span of words loses the words at its ends that have no token. A span without any token
    is left out.
    """
    aligned, moved = [], []
    has_token = windows.tokenized.has_token
    for row, spans in enumerate(labels):
        if windows.tokenized.characters[row] is None:
            edges = [_trim(span, has_token[row]) for span in spans]
        else:
            _, edges = _widen(windows, row, spans, moved)
        pairs = zip(edges, spans, strict=True)
        aligned.append([(*edge, int(span[2])) for edge, span in pairs if edge is not None])
    _warn_of_moved(moved, "scored")
    return aligned


def _trim(span, has_token):
    """(start, end) of a span of words without the words at its ends that have no token."""
    places = np.flatnonzero(has_token[span[0] : span[1]])
    if not len(places):
        return None
    return int(span[0] + places[0]), int(span[0] + places[-1] + 1)


def _widen(windows, row, spans, moved):
    """The words that spans of characters touch, int64 (M, 2), and their characters, list of pairs.

    A span that has other characters is added to `moved`, as `(row, span, characters)`.
    """
    characters = windows.tokenized.characters[row]
    words = _cover(characters, spans, row, len(windows.texts[row]))
    edges = [(characters[first][0], characters[end - 1][1]) for first, end in words]
    pairs = zip(spans, edges, strict=True)
    moved += [(row, span, edge) for span, edge in pairs if tuple(span[:2]) != edge]
    return words, edges


def _warn_of_moved(moved, verb):
    if not moved:
        return
    row, span, edge = moved[0]
    warnings.warn(
        f"{len(moved)} spans begin or end inside of a word, or at a space, and "
        f"are {verb} as the whole words: in row {row} characters {span[0]} to {span[1]} as "
        f"{edge[0]} to {edge[1]}.",
        stacklevel=2,
    )


def pad_spans(columns, origin):
    """int32 (B, M, 3), the spans of a batch, filled up with -1. M is a power of two.

    `origin` is the position of the origin in the packed rows, from which spans are counted.
    """
    most = max([1, *map(len, columns)])
    spans = np.full((len(columns), 1 << (most - 1).bit_length(), 3), -1, "int32")
    for row, column in enumerate(columns):
        spans[row, : len(column)] = column + [origin, origin, 0]
    return spans


def join_span_windows(found, windows):
    """Joins spans of windows to spans of B rows.

    A span comes from the window that answers for the token in the middle of the span. `found` has N
    arrays (M, 4) of `find_entity_spans`. The result has B arrays float64 (M, 4): first word, last
    word, label id and score, sorted.
    """
    tokenized = windows.tokenized
    # `word_of` has, for each token that begins a word, the number of this word in its row.
    counts = np.fromiter(map(len, tokenized.words), "int64", len(tokenized.words))
    numbers = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    word_of = np.full(len(tokenized.ids) + 1, -1)
    known = tokenized.first_tokens >= 0
    word_of[tokenized.first_tokens[known]] = numbers[known]

    (tokens,) = windows.inputs
    rows = [[np.zeros((0, 4))] for _ in tokenized.words]
    for number, spans in enumerate(found):
        first, last = spans[:, :2].astype("int64").T - windows.find_text(number)
        middle = (first + last) // 2
        own = (middle >= windows.own_starts[number]) & (middle < windows.own_ends[number])
        own &= (first >= 0) & (last < len(tokens[number]))
        begin = windows.starts[number]
        words = np.stack([word_of[np.where(own, begin + p, -1)] for p in (first, last)], axis=-1)
        own &= (words >= 0).all(axis=-1)
        rows[windows.sources[number]].append(np.concatenate([words, spans[:, 2:]], axis=1)[own])
    joined = [np.concatenate(row) for row in rows]
    return [row[np.lexsort((row[:, 2], row[:, 1], row[:, 0]))] for row in joined]


def _find_tokens(windows, labels):
    """list of B int64 (M, 3): the two tokens of each span, by their position in all tokens."""
    tokenized = windows.tokenized
    ends = np.cumsum([len(words) for words in tokenized.words])
    found, moved = [], []
    for row, spans in enumerate(labels):
        words = spans[:, :2]
        if tokenized.characters[row] is not None:
            words, _ = _widen(windows, row, spans, moved)
        elif len(spans) and words.max() > len(tokenized.words[row]):
            raise ValueError(
                f"A span of row {row} ends at word {words.max()}, and the row has "
                f"{len(tokenized.words[row])} words. Correct the span."
            )
        begin = ends[row] - len(tokenized.words[row])
        first_tokens = tokenized.first_tokens[begin : ends[row]]
        tokens_of_spans = []
        for (first, end), kind in zip(words, spans[:, 2], strict=True):
            tokens = first_tokens[first:end]
            tokens = tokens[tokens >= 0]
            if len(tokens):  # Words without a token cannot be found.
                tokens_of_spans.append((tokens[0], tokens[-1], kind))
        found.append(np.array(tokens_of_spans, "int64").reshape(-1, 3))
    _warn_of_moved(moved, "learned")
    return found


def _cover(characters, spans, row, length):
    """int64 (M, 2), the words that each span of characters touches, first and end."""
    starts, ends = np.reshape(characters, (-1, 2)).T
    first = np.searchsorted(ends, spans[:, 0], side="right")
    end = np.searchsorted(starts, spans[:, 1], side="left")
    wrong = np.flatnonzero((spans[:, 1] > length) | (first >= end))
    if len(wrong):
        raise ValueError(
            f"The span {spans[wrong[0], :2].tolist()} of row {row} has no word in it, or ends "
            f"behind the text, which has {length} characters. Correct the span."
        )
    return np.stack([first, end], axis=-1)
