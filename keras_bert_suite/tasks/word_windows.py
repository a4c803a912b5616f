"""Cuts rows of words into windows of tokens, and joins the outputs for windows to words."""

import dataclasses
import re

import numpy as np

from keras_bert_suite.data.rows import Rows
from keras_bert_suite.data.word_rows import as_column
from keras_bert_suite.preprocessing.packing import NUMPY
from keras_bert_suite.preprocessing.windows import share_windows
from keras_bert_suite.tokenizers.text_inputs import decode_text


@dataclasses.dataclass(frozen=True)
class TokenizedWords:
    """B rows of words and their tokens, one row after the other.

    Attributes:
        words: list of B lists of str.
        spans: list of B lists of `(start, end)`, the characters of each word in its text; None in
            place of the list of a row that came as words.
        ids: int32 (T,), the tokens of all rows.
        lengths: int32 (B,), how many tokens each row has.
        first_tokens: int64 (W,), for each word the place of its first token in `ids`; -1 for a word
            without a token, such as a control character.
    """

    words: list
    spans: list
    ids: np.ndarray
    lengths: np.ndarray
    first_tokens: np.ndarray


@dataclasses.dataclass(frozen=True)
class WordWindows(Rows):
    """N windows over rows of words. `inputs`, `labels` and `weights` have an entry for each token.

    Attributes:
        texts: list of B rows, each a str or a list of str.
        tokenized: `TokenizedWords` of the rows.
        own_starts, own_ends: int32 (N,), the range of its tokens for which each window answers.
    """

    texts: list | None = None
    tokenized: TokenizedWords | None = None
    own_starts: np.ndarray | None = None
    own_ends: np.ndarray | None = None


def tokenize_rows(tokenizer, rows):
    """Tokenizes rows of words, or texts. The tokenizer finds the words of a text.

    Args:
        tokenizer: `WordPieceTokenizer`, or another with `tokenize_words` and
            `tokenize_with_offsets`.
        rows: object array (B,) of lists of str, or of str.

    Returns:
        `TokenizedWords`.
    """
    lists = [row if isinstance(row, list) else [] for row in rows]
    flat_ids, piece_counts = tokenizer.tokenize_words([word for row in lists for word in row])
    bounds = np.cumsum([0, *piece_counts])
    words, spans, ids, first_tokens = [], [], [], []
    word_number, num_tokens = 0, 0
    for row in rows:
        if isinstance(row, list):
            last = word_number + len(row)
            row_ids = flat_ids[bounds[word_number] : bounds[last]]
            starts = bounds[word_number:last] - bounds[word_number]
            starts = np.where(piece_counts[word_number:last] > 0, starts, -1)
            words.append([decode_text(word) for word in row])
            spans.append(None)
            word_number = last
        else:
            row_ids, starts, row_spans = _split_text(tokenizer, row)
            words.append([decode_text(row)[start:end] for start, end in row_spans])
            spans.append(row_spans)
        first_tokens.append(np.where(starts >= 0, starts + num_tokens, -1))
        ids.append(np.asarray(row_ids, "int32"))
        num_tokens += len(row_ids)
    return TokenizedWords(
        words,
        spans,
        np.concatenate([np.zeros(0, "int32"), *ids]),
        np.array([len(row_ids) for row_ids in ids], "int32"),
        np.concatenate([np.zeros(0, "int64"), *first_tokens]),
    )


def cut_word_windows(packer, rows):
    """Cuts rows of words into windows that the packer has room for.

    The first token of a word has its label, in the one window that answers for this token. All
    other tokens have the weight 0.

    Args:
        packer: `SegmentPacker`.
        rows: `Rows` from `read_word_rows`, with encoded labels.

    Returns:
        `WordWindows`.

    Raises:
        ValueError: if a row has more or fewer labels than words, or is a text with labels, naming
            the row.
    """
    (column,) = rows.inputs
    tokenized = tokenize_rows(packer.tokenizer, column)
    starts = np.cumsum(tokenized.lengths, dtype="int32") - tokenized.lengths
    starts, lengths, _, own_starts, own_ends = share_windows(
        NUMPY, starts, tokenized.lengths, packer.count_places()
    )

    rows_and_spans = zip(column, tokenized.spans, strict=True)

    def cut(tokens):
        return as_column(
            tokens[start : start + n] for start, n in zip(starts, lengths, strict=True)
        )

    windows = WordWindows(
        (cut(tokenized.ids),),
        texts=[row if spans is None else decode_text(row) for row, spans in rows_and_spans],
        tokenized=tokenized,
        own_starts=own_starts,
        own_ends=own_ends,
    )
    if rows.labels is None:
        return windows
    labels, weights = _label_tokens(tokenized, rows)
    owned = [
        np.where((np.arange(len(part)) >= first) & (np.arange(len(part)) < end), part, 0)
        for part, first, end in zip(cut(weights), own_starts, own_ends, strict=True)
    ]
    return dataclasses.replace(
        windows, labels=cut(labels), weights=as_column(part.astype("float32") for part in owned)
    )


def join_windows(outputs, windows, missing):
    """Takes the outputs for words from the outputs for the tokens of windows.

    Args:
        outputs: list of N arrays (L, C), whose lengths differ. The first token is the start token.
        windows: `WordWindows`.
        missing: float32 (C,), the output for a word without a token.

    Returns:
        float32 (W, C), for the words of all rows.
    """
    own = [
        output[1 + first : 1 + end]
        for output, first, end in zip(outputs, windows.own_starts, windows.own_ends, strict=True)
    ]
    # The place -1 of a word without a token is `missing`, at the end.
    tokens = np.concatenate([*own, missing[None]]).astype("float32")
    return tokens[windows.tokenized.first_tokens]


def _label_tokens(tokenized, rows):
    """(label ids int32 (T,), weights float32 (T,)) of the tokens of rows."""
    weights = np.ones(len(rows.labels)) if rows.weights is None else rows.weights
    word_labels, word_weights = [np.zeros(0, "int32")], [np.zeros(0, "float32")]
    for number, (words, labels) in enumerate(zip(tokenized.words, rows.labels, strict=True)):
        if tokenized.spans[number] is not None:
            raise ValueError(
                f"Row {number} is a text, and labels belong to words. Split it into a list of "
                "words, with a label for each word."
            )
        if len(words) != len(labels):
            raise ValueError(
                f"Row {number} has {len(words)} words, which begin with {words[:3]}, and "
                f"{len(labels)} labels. Wanted a label for each word."
            )
        word_labels.append(labels)
        word_weights.append(np.full(len(words), weights[number], "float32"))
    token_labels = np.zeros(len(tokenized.ids), "int32")
    token_weights = np.zeros(len(tokenized.ids), "float32")
    known = tokenized.first_tokens >= 0
    first_tokens = tokenized.first_tokens[known]
    token_labels[first_tokens] = np.concatenate(word_labels)[known]
    token_weights[first_tokens] = np.concatenate(word_weights)[known]
    return token_labels, token_weights


def _split_text(tokenizer, text):
    """(ids, places of the words' first tokens, spans of the words) of a text."""
    ids, offsets, word_starts = tokenizer.tokenize_with_offsets(text)
    starts = [place for place, begins in enumerate(word_starts) if begins]
    ends = [*starts[1:], len(ids)][: len(starts)]  # A text may have no word.
    words = [
        (first, (offsets[first][0], offsets[end - 1][1]))
        for first, end in zip(starts, ends, strict=True)
    ]
    if tokenizer.blank_words is not None:
        blank = re.compile(tokenizer.blank_words)
        characters = decode_text(text)
        words = [word for word in words if not blank.fullmatch(characters, *word[1])]
    return ids, np.array([first for first, _ in words], "int64"), [span for _, span in words]
