"""The label of each word, and entities of labels."""

import dataclasses

import numpy as np

from keras_bert_suite.data.tag_schemes import find_middle_labels
from keras_bert_suite.tasks.answers.entities import read_entities
from keras_bert_suite.tasks.answers.probabilities import softmax
from keras_bert_suite.tasks.answers.rows import ClassAnswers
from keras_bert_suite.tasks.data.word_windows import join_windows


@dataclasses.dataclass(frozen=True)
class WordLogits:
    """The logits for the words of B rows.

    Attributes:
        logits: float32 (K, C), for the words that have a token.
        counts: int (B,), how many words with a token each row has.
        lengths: int (B,), how many words each row has.
        has_token: bool (W,), for the words of all rows.
    """

    logits: np.ndarray
    counts: np.ndarray
    lengths: np.ndarray
    has_token: np.ndarray


class WordAnswers(ClassAnswers):
    """Labels of words, from logits of tokens (L, C) for each window.

    Each word has the label of its first token, in the window that sees the most context around it.
    A word without a token, such as a space of no width, continues the entity around it.

    Args:
        labels: `Tags`.
    """

    def decode(self, outputs, rows):
        """list with a list of `Entity` for each row; the logits themselves for packed arrays."""
        if rows.is_packed:
            return outputs
        words = self.join(outputs, rows)
        labels = self.choose(words.logits, words.counts)
        probabilities = self.find_probabilities(words.logits, words.counts)
        scores = np.full(len(words.has_token), np.nan, "float32")
        scores[words.has_token] = np.take_along_axis(probabilities, labels[:, None], axis=1)[:, 0]
        tags = self.name_labels(self.fill(labels, words), words.lengths)
        scores = split_words(scores, words.lengths)
        return read_entities(rows.texts, rows.tokenized, tags, scores, self.labels.names)

    def decode_tags(self, outputs, rows):
        """list with a list of str for each row. In packed arrays every token counts as a word."""
        words = self.join(outputs, rows)
        labels = self.fill(self.choose(words.logits, words.counts), words)
        return self.name_labels(labels, words.lengths)

    def decode_scored_tags(self, outputs, rows):
        """For each row (list of str, bool (words,)): the tags, and the words that have a token."""
        tags = self.decode_tags(outputs, rows)
        return list(zip(tags, rows.tokenized.has_token, strict=True))

    def decode_probabilities(self, outputs, rows):
        """list of float32 (words, C); float32 (N, L, C) for packed arrays.

        The label of a word without a token has the probability 1.
        """
        words = self.join(outputs, rows)
        known = self.find_probabilities(words.logits, words.counts)
        if rows.is_packed:
            return known.reshape(outputs.shape)
        labels = self.fill(self.choose(words.logits, words.counts), words)
        probabilities = np.eye(len(self.labels.names), dtype="float32")[labels]
        probabilities[words.has_token] = known
        return split_words(probabilities, words.lengths)

    def fill(self, labels, words):
        """The labels of all words, from the labels of the words that have a token.

        Args:
            labels: int (K,).
            words: `WordLogits`.

        Returns:
            int (W,).
        """
        has_token, border = words.has_token, len(self.labels.names)
        if has_token.all():
            return labels
        # Two borders, which a place of -1 or W finds.
        filled = np.full(len(has_token) + 2, border)
        filled[:-2][has_token] = labels
        rows = np.append(np.repeat(np.arange(len(words.lengths)), words.lengths), [-1, -1])
        places = np.arange(len(has_token))
        before = np.maximum.accumulate(np.where(has_token, places, -1))
        after = np.where(has_token, places, len(places))
        after = np.minimum.accumulate(after[::-1])[::-1]
        missing = places[~has_token]
        beside = [
            np.where(rows[near[missing]] == rows[missing], filled[near[missing]], border)
            for near in (before, after)
        ]
        filled[missing] = np.array(find_middle_labels(self.labels.names))[tuple(beside)]
        return filled[:-2]

    def choose(self, logits, lengths):
        """The label of each word.

        Args:
            logits: float32 (K, C), for the words of all rows that have a token.
            lengths: int (B,), how many of these words each row has.

        Returns:
            int (K,).
        """
        return logits.argmax(axis=-1)

    def find_probabilities(self, logits, lengths):
        """float32 (K, C), the probability of each label. Args: as for `choose`."""
        return softmax(logits)

    def name_labels(self, labels, lengths):
        """list with a list of str for each row, of the labels (W,) of all words."""
        names = np.array([*self.labels.names], object)
        return [row.tolist() for row in split_words(names[labels], lengths)]

    def join(self, outputs, rows):
        """`WordLogits` of the words of rows, or of all tokens of arrays."""
        if rows.is_packed:
            lengths = np.full(len(outputs), outputs.shape[1])
            logits = outputs.reshape(-1, len(self.labels.names))
            return WordLogits(logits, lengths, lengths, np.ones(len(logits), bool))
        has_token = rows.tokenized.has_token
        lengths, counts = (np.array([f(row) for row in has_token], "int64") for f in (len, np.sum))
        logits = join_windows(outputs, rows, len(self.labels.names))
        return WordLogits(logits, counts, lengths, rows.tokenized.first_tokens >= 0)


def split_words(column, lengths):
    """Splits a column of all words into rows."""
    return np.split(column, np.cumsum(lengths)[:-1]) if len(lengths) else []
