"""Counts the words of a corpus, and measures how well a vocabulary covers them."""

import collections
import dataclasses

from keras_bert_suite.tokenizers.text_inputs import check_several, decode_text
from keras_bert_suite.tokenizers.word_piece.word_splitting import (
    MAX_CHARACTERS_PER_WORD,
    WordSplitter,
)


def count_words(texts, lowercase=True, strip_accents=None):
    """How often each word of up to 200 characters occurs, as `WordPieceTokenizer` splits them.

    >>> count_words(["Où? ou", b"OU!"])
    Counter({'ou': 3, '?': 1, '!': 1})
    """
    check_several(texts)
    splitter = WordSplitter(lowercase, lowercase if strip_accents is None else strip_accents)
    segment_counts = collections.Counter()
    for text in texts:
        if not isinstance(text, str | bytes):
            raise ValueError(
                f"`texts` must hold str or bytes. Received: {text!r} of type {type(text).__name__}."
            )
        text = decode_text(text)
        segment_counts.update(splitter.segment_pattern(text).findall(text))
    word_counts = collections.Counter()
    for segment, count in segment_counts.items():
        for word in splitter.split_segment(segment):
            if len(word) <= MAX_CHARACTERS_PER_WORD:
                word_counts[word] += count
    return word_counts


def count_characters(word_counts):
    """How often each character occurs, the most frequent first, equals by code point: a dict."""
    counts = collections.Counter()
    for word, count in word_counts.items():
        for character in word:
            counts[character] += count
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


@dataclasses.dataclass(frozen=True)
class Coverage:
    """How a vocabulary fits a corpus. Each word counts as often as it occurs.

    Attributes:
        pieces_per_word: float, of the words that are not unknown.
        single: float, the share of words that are one token.
        unknown: float, the share of words that are the unknown token.
    """

    pieces_per_word: float
    single: float
    unknown: float


def measure_coverage(vocabulary, word_counts):
    """The `Coverage` of counted words by a vocabulary, a list of str with `[UNK]`."""
    from tokenizers.models import WordPiece

    model = WordPiece(
        {piece: id for id, piece in enumerate(vocabulary)},
        unk_token="[UNK]",
        max_input_chars_per_word=MAX_CHARACTERS_PER_WORD,
    )
    words = pieces = single = unknown = 0
    for word, count in word_counts.items():
        tokens = model.tokenize(word)
        words += count
        if tokens[0].value == "[UNK]":
            unknown += count
        else:
            pieces += count * len(tokens)
            single += count * (len(tokens) == 1)
    return Coverage(pieces / max(words - unknown, 1), single / words, unknown / words)
