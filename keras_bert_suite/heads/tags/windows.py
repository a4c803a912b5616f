"""Cuts rows of words into windows of tokens, and joins the outputs for windows to words."""

import dataclasses
import re

import numpy as np

from keras_bert_suite.data.arrays import map_arrays
from keras_bert_suite.data.rows import Rows
from keras_bert_suite.data.word_rows import as_column
from keras_bert_suite.layers.heads.crf import CONTINUED, NO_LABEL
from keras_bert_suite.preprocessing.packing import NUMPY
from keras_bert_suite.preprocessing.windows import share_windows
from keras_bert_suite.tokenizers.row_template import RowTemplate
from keras_bert_suite.tokenizers.text_inputs import decode_text


@dataclasses.dataclass(frozen=True)
class TokenizedWords:
    """B rows of words and their tokens, one row after the other.

    Attributes:
        words: list of B lists of str.
        characters: list of B lists of `(start, end)`, the characters of each word in its text. For
            a row that is a list of words, there is None instead of the list.
        ids: int32 (T,), the tokens of all rows.
        lengths: int32 (B,), how many tokens each row has.
        first_tokens: int64 (W,), for each word the position of its first token in `ids`; -1 for a
            word without a token, such as a control character.
    """

    words: list
    characters: list
    ids: np.ndarray
    lengths: np.ndarray
    first_tokens: np.ndarray

    @property
    def has_token(self):
        """list of B bool (words,), whether each word has a token."""
        ends = np.cumsum([len(words) for words in self.words])
        return np.split(self.first_tokens >= 0, ends[:-1]) if len(ends) else []


@dataclasses.dataclass(frozen=True, kw_only=True)
class WordWindows(Rows):
    """N windows over rows of words. `inputs` and `labels` have an array for each window.

    Attributes:
        texts: list of B rows, each a str or a list of str.
        tokenized: `TokenizedWords` of the rows.
        template: `RowTemplate` of the packed rows.
        starts: int32 (N,), where the tokens of each window begin in `tokenized.ids`.
        own_starts, own_ends: int32 (N,), the range of the window's tokens for which it answers.
    """

    texts: list
    tokenized: TokenizedWords
    template: RowTemplate
    starts: np.ndarray
    own_starts: np.ndarray
    own_ends: np.ndarray

    def find_text(self, window):
        """The position of a window's first token, counted from the origin of its packed row."""
        return self.template.find_text([len(self.inputs[0][window])])


def tokenize_rows(tokenizer, rows, cutting=None):
    """Tokenizes rows of words, or texts, an object array (B,), as `TokenizedWords`.

    `cutting`, a `WordCutting`, finds the words of a text. If it is None, the tokenizer does.
    """
    cut = {} if cutting is None else _cut_texts(tokenizer, rows, cutting)
    lists = [row if isinstance(row, list) else [] for row in rows]
    flat_ids, token_counts = tokenizer.tokenize_words([word for row in lists for word in row])
    bounds = np.cumsum([0, *token_counts])
    words, characters, ids, first_tokens = [], [], [], []
    word_number, num_tokens = 0, 0
    for number, row in enumerate(rows):
        if isinstance(row, list):
            last = word_number + len(row)
            row_ids = flat_ids[bounds[word_number] : bounds[last]]
            starts = bounds[word_number:last] - bounds[word_number]
            starts = np.where(token_counts[word_number:last] > 0, starts, -1)
            words.append([decode_text(word) for word in row])
            characters.append(None)
            word_number = last
        else:
            row_ids, starts, row_spans = cut[number] if cut else _split_text(tokenizer, row)
            words.append([decode_text(row)[start:end] for start, end in row_spans])
            characters.append(row_spans)
        first_tokens.append(np.where(starts >= 0, starts + num_tokens, -1))
        # The tokens of an ELMo have a further axis.
        ids.append(np.asarray(row_ids, "int32").reshape(-1, *flat_ids.shape[1:]))
        num_tokens += len(row_ids)
    return TokenizedWords(
        words,
        characters,
        np.concatenate([flat_ids[:0], *ids]),
        np.array([len(row_ids) for row_ids in ids], "int32"),
        np.concatenate([np.zeros(0, "int64"), *first_tokens]),
    )


def cut_windows(packer, rows, cutting=None):
    """Cuts `Rows` from `read_word_rows` into `WordWindows` that the packer has room for.

    `cutting` is a `WordCutting` or None. The windows have no labels. The weight of a window is the
    weight of its row, and so are the columns beside the texts.
    """
    (column,) = rows.inputs
    tokenized = tokenize_rows(packer.tokenizer, column, cutting)
    starts = np.cumsum(tokenized.lengths, dtype="int32") - tokenized.lengths
    starts, lengths, row_ids, own_starts, own_ends = share_windows(
        NUMPY, starts, tokenized.lengths, packer.count_places()
    )
    rows_and_characters = zip(column, tokenized.characters, strict=True)
    return WordWindows(
        (_cut(tokenized.ids, starts, lengths),),
        weights=None if rows.weights is None else rows.weights[row_ids],
        features=map_arrays(lambda column: column[row_ids], rows.features),
        texts=[row if part is None else decode_text(row) for row, part in rows_and_characters],
        tokenized=tokenized,
        template=packer.row_template,
        sources=row_ids,
        starts=starts,
        own_starts=own_starts,
        own_ends=own_ends,
    )


def cut_tag_windows(packer, rows, cutting=None):
    """Cuts `Rows` of words, with an encoded label for each word or none, into `WordWindows`.

    The first token of a word has the label of the word, in the window that answers for this token.
    The other tokens for which a window answers have the label `NO_LABEL`. A token for which another
    window answers has the label `CONTINUED`. A row with more or fewer labels than words is an
    error.
    """
    windows = cut_windows(packer, rows, cutting)
    if rows.labels is None:
        return windows
    (tokens,) = windows.inputs
    lengths = np.fromiter(map(len, tokens), "int32", len(tokens))
    labels = _cut(_label_tokens(windows.tokenized, rows.labels), windows.starts, lengths)
    for window, first, end in zip(labels, windows.own_starts, windows.own_ends, strict=True):
        window[:first] = window[end:] = CONTINUED
    return dataclasses.replace(windows, labels=labels)


def join_windows(outputs, windows, num_labels):
    """Takes the outputs for words, float32 (K, C), from the outputs for the tokens of windows.

    `outputs` has N arrays (L, C), whose lengths differ, for all tokens of packed rows. K counts the
    words of all rows that have a token.
    """
    own = [np.zeros((0, num_labels), "float32")]
    owned = zip(outputs, windows.own_starts, windows.own_ends, strict=True)
    for window, (output, first, end) in enumerate(owned):
        begin = windows.template.find_origin(len(output)) + windows.find_text(window)
        own.append(output[begin + first : begin + end])
    first_tokens = windows.tokenized.first_tokens
    tokens = np.concatenate(own).astype("float32")
    return tokens[first_tokens[first_tokens >= 0]]


def _cut(column, starts, lengths):
    """Object array (N,) of copies of the parts of a column."""
    parts = zip(starts, lengths, strict=True)
    return as_column(column[start : start + length].copy() for start, length in parts)


def _label_tokens(tokenized, labels):
    """int32 (T,), the labels of the tokens of rows."""
    word_labels = [np.zeros(0, "int32")]
    for number, (words, row_labels) in enumerate(zip(tokenized.words, labels, strict=True)):
        if tokenized.characters[number] is not None:
            raise ValueError(
                f"Row {number} is a text, and labels belong to words. Split it into a list of "
                "words, with a label for each word."
            )
        if len(words) != len(row_labels):
            raise ValueError(
                f"Row {number} has {len(words)} words, which begin with {words[:3]}, and "
                f"{len(row_labels)} labels. Wanted a label for each word."
            )
        word_labels.append(row_labels)
    token_labels = np.full(len(tokenized.ids), NO_LABEL, "int32")
    known = tokenized.first_tokens >= 0
    token_labels[tokenized.first_tokens[known]] = np.concatenate(word_labels)[known]
    return token_labels


def _cut_texts(tokenizer, rows, cutting):
    """dict of the number of a row that is a text -> the result of `_split_text`.

    A word without a token is left out.
    """
    texts = {n: decode_text(row) for n, row in enumerate(rows) if not isinstance(row, list)}
    spans = {number: cutting.cut(text) for number, text in texts.items()}
    ids, counts = tokenizer.tokenize_words(
        [texts[number][start:end] for number in texts for start, end in spans[number]]
    )
    ends = np.cumsum([0, *counts])
    found, first = {}, 0
    for number, row_spans in spans.items():
        last = first + len(row_spans)
        starts, has_token = ends[first:last] - ends[first], counts[first:last] > 0
        kept = [span for span, has in zip(row_spans, has_token, strict=True) if has]
        found[number] = ids[ends[first] : ends[last]], starts[has_token], kept
        first = last
    return found


def _split_text(tokenizer, text):
    """(ids, positions of the words' first tokens, characters of the words) of a text."""
    ids, offsets, word_starts = tokenizer.tokenize_with_offsets(text)
    starts = [i for i, begins in enumerate(word_starts) if begins]
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
