"""The label of each word, and entities of labels."""

import numpy as np

from keras_bert_suite.data.tag_schemes import OUTSIDE
from keras_bert_suite.tasks.answers.entities import read_entities
from keras_bert_suite.tasks.answers.probabilities import softmax
from keras_bert_suite.tasks.answers.rows import ClassAnswers
from keras_bert_suite.tasks.data.word_windows import join_windows

#: For a word without a token, the logit of every label except "O".
MISSING = -1e4


class WordAnswers(ClassAnswers):
    """Labels of words, from logits of tokens (L, C) for each window.

    Each word has the label of its first token, in the window that sees the most context around it.

    Args:
        labels: `Tags`.
    """

    def decode(self, outputs, rows):
        """list with a list of `Entity` for each row; the logits themselves for packed arrays."""
        if rows.is_packed:
            return outputs
        logits, lengths = self.join(outputs, rows)
        labels = self.choose(logits, lengths)
        probabilities = self.find_probabilities(logits, lengths)
        scores = np.take_along_axis(probabilities, labels[:, None], axis=1)[:, 0]
        tags = self.name_labels(labels, lengths)
        scores = split_words(scores, lengths)
        return read_entities(rows.texts, rows.tokenized, tags, scores, self.labels.names)

    def decode_tags(self, outputs, rows):
        """list with a list of str for each row. In packed arrays every token counts as a word."""
        logits, lengths = self.join(outputs, rows)
        return self.name_labels(self.choose(logits, lengths), lengths)

    def decode_probabilities(self, outputs, rows):
        """list of float32 (words, C); float32 (N, L, C) for packed arrays."""
        logits, lengths = self.join(outputs, rows)
        probabilities = self.find_probabilities(logits, lengths)
        if rows.is_packed:
            return probabilities.reshape(outputs.shape)
        return split_words(probabilities, lengths)

    def choose(self, logits, lengths):
        """The label of each word.

        Args:
            logits: float32 (W, C), for the words of all rows.
            lengths: int (B,), how many words each row has.

        Returns:
            int (W,).
        """
        return logits.argmax(axis=-1)

    def find_probabilities(self, logits, lengths):
        """float32 (W, C), the probability of each label. Args: as for `choose`."""
        return softmax(logits)

    def name_labels(self, labels, lengths):
        """list with a list of str for each row, of the labels (W,) of all words."""
        names = np.array([*self.labels.names], object)
        return [row.tolist() for row in split_words(names[labels], lengths)]

    def join(self, outputs, rows):
        """(logits (W, C), lengths (B,)) of the words of rows, or of all tokens of arrays."""
        names = self.labels.names
        if rows.is_packed:
            return outputs.reshape(-1, len(names)), np.full(len(outputs), outputs.shape[1])
        missing = np.full(len(names), MISSING, "float32")
        missing[names.index(OUTSIDE) if OUTSIDE in names else 0] = 0
        lengths = np.fromiter(map(len, rows.tokenized.words), "int64", len(rows.texts))
        return join_windows(outputs, rows, missing), lengths


def split_words(column, lengths):
    """Splits a column of all words into rows."""
    return np.split(column, np.cumsum(lengths)[:-1]) if len(lengths) else []
