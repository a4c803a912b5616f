"""The label of each word, and entities of labels."""

import numpy as np

from keras_bert_suite.data.entity_scores import score_entities
from keras_bert_suite.data.tag_schemes import OUTSIDE
from keras_bert_suite.layers.heads.chain_decoding import find_best_paths, find_marginals
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

    def score(self, outputs, rows, labels):
        """dict of scores against the encoded labels of rows; see `score_entities`."""
        if rows.is_packed:
            counts = labels >= 0  # A negative label marks a token that does not count.
            labels, lengths = [row[row >= 0] for row in labels], counts.sum(axis=1)
            tags = self.name_labels(self.choose(outputs[counts], lengths), lengths)
        else:
            tags = self.decode_tags(outputs, rows)
        true_tags = [[self.labels.names[label] for label in row] for row in labels]
        return score_entities(true_tags, tags, self.labels.names)

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


class ChainAnswers(WordAnswers):
    """Labels of words by the path with the highest score, from emissions of tokens (L, C).

    Args:
        labels: `ChainTags`.
        read_scores: function without arguments -> (starts, ends, transitions), NumPy arrays.
    """

    def __init__(self, labels, read_scores):
        super().__init__(labels)
        self.read_scores = read_scores

    def choose(self, logits, lengths):
        return find_best_paths(logits, lengths, *self.read_scores())

    def find_probabilities(self, logits, lengths):
        """float32 (W, C), the marginal probabilities."""
        return find_marginals(logits, lengths, *self.read_scores())

    def join(self, outputs, rows):
        if rows.is_packed:
            raise ValueError(
                "Packed arrays do not say which tokens the chain runs over. Pass rows of words or "
                "texts. `predict` gives the emissions of packed arrays, and `score` takes their "
                "labels."
            )
        return super().join(outputs, rows)

    def serve(self, ops, outputs, packed):
        """The answers for tokens: `emissions` float32 (B, L, C)."""
        return {"emissions": outputs}


def split_words(column, lengths):
    """Splits a column of all words into rows."""
    return np.split(column, np.cumsum(lengths)[:-1]) if len(lengths) else []
