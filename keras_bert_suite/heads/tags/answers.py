"""The label of each word, and entities of labels."""

import dataclasses

import numpy as np

from keras_bert_suite.heads.base.answers import ClassAnswers
from keras_bert_suite.heads.base.averages import LOGITS
from keras_bert_suite.heads.base.probabilities import find_logits, softmax
from keras_bert_suite.heads.base.wrong_answers import find_wrong_classes
from keras_bert_suite.heads.tags.entities import read_entities
from keras_bert_suite.heads.tags.scores import score_entities
from keras_bert_suite.heads.tags.tag_schemes import find_middle_labels
from keras_bert_suite.heads.tags.windows import join_windows
from keras_bert_suite.layers.heads.chain_decoding import find_best_paths, find_marginals


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

    name = None  # type: ignore[assignment]  # Words have labels, and not rows.
    exported = {"probabilities": ("length", "labels")}
    read_exported = staticmethod(find_logits)
    stand_at_tokens = True

    def decode(self, outputs, rows):
        """list with a list of `Entity` for each row; the logits themselves for packed arrays."""
        if rows.is_packed:
            return outputs
        words = self.join(outputs, rows)
        labels = self.choose_words(words.logits, words.counts)
        probabilities = self.find_probabilities(words.logits, words.counts)
        scores = np.full(len(words.has_token), np.nan, "float32")
        scores[words.has_token] = np.take_along_axis(probabilities, labels[:, None], axis=1)[:, 0]
        tags = self.name_labels(self.fill(labels, words), words.lengths)
        scores = split_words(scores, words.lengths)
        return read_entities(rows.texts, rows.tokenized, tags, scores, self.labels.names)

    def decode_tags(self, outputs, rows):
        """list with a list of str for each row. In packed arrays every token counts as a word."""
        words = self.join(outputs, rows)
        labels = self.fill(self.choose_words(words.logits, words.counts), words)
        return self.name_labels(labels, words.lengths)

    def decode_probabilities(self, outputs, rows):
        """list of float32 (words, C); float32 (N, L, C) for packed arrays.

        The label of a word without a token has the probability 1.
        """
        words = self.join(outputs, rows)
        known = self.find_probabilities(words.logits, words.counts)
        if rows.is_packed:
            return known.reshape(outputs.shape)
        labels = self.fill(self.choose_words(words.logits, words.counts), words)
        probabilities = np.eye(len(self.labels.names), dtype="float32")[labels]
        probabilities[words.has_token] = known
        return split_words(probabilities, words.lengths)

    def fill(self, labels, words):
        """The labels of all words, int (W,). `labels` int (K,) are of the words with a token."""
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

    def score(self, outputs, rows, labels, mode="lenient"):
        """dict of scores against the encoded labels of rows; see `score_entities`.

        A word without a token does not count, as in run_ner of Hugging Face.
        """
        if rows.is_packed:
            counts = labels >= 0  # A negative label marks a token that does not count.
            labels, lengths = [row[row >= 0] for row in labels], counts.sum(axis=1)
            tags = self.name_labels(self.choose_words(outputs[counts], lengths), lengths)
        else:
            has_token = rows.tokenized.has_token
            labels = [row[has] for row, has in zip(labels, has_token, strict=True)]
            words = self.join(outputs, rows)
            tags = self.name_labels(self.choose_words(words.logits, words.counts), words.counts)
        true_tags = [[self.labels.names[label] for label in row] for row in labels]
        return score_entities(true_tags, tags, self.labels.names, mode)

    def inspect(self, outputs, rows, labels):
        """list of `WrongAnswer` without texts, one for each wrong word that has a token."""
        words = self.join(outputs, rows)
        has_token = words.has_token
        row_ids = np.repeat(np.arange(len(words.lengths)), words.lengths)
        places = np.arange(len(row_ids)) - np.searchsorted(row_ids, row_ids)
        labels = np.concatenate([np.zeros(0, "int64"), *labels])
        if rows.is_packed:  # A negative label marks a token that does not count.
            known = labels >= 0
            names = [None] * len(labels)
        else:
            known = has_token
            names = self.list_words(rows, len(labels))
        kept = np.flatnonzero(known)
        found = find_wrong_classes(
            self.find_probabilities(words.logits, words.counts)[known[has_token]],
            labels[known],
            self.labels.names,
            self.choose_words(words.logits, words.counts)[known[has_token]],
        )
        return [
            dataclasses.replace(w, row=int(row_ids[i]), word=names[i], place=int(places[i]))
            for w, i in ((w, kept[w.row]) for w in found)
        ]

    def list_words(self, rows, number):
        """list of the words of all rows, as many as a number."""
        return [word for row in rows.tokenized.words for word in row]

    def choose_words(self, logits, lengths):
        """The label of each word that has a token, int (K,), from logits (K, C).

        `lengths`, int (B,), say how many of these words each row has.
        """
        return self.choose(logits)

    def find_probabilities(self, logits, lengths):
        """float32 (K, C), the probability of each label. Args: as for `choose_words`."""
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


class ChainAnswers(WordAnswers):
    """Labels of words by the path with the highest score, from emissions of tokens (L, C).

    Args:
        labels: `ChainTags`.
        read_scores: function without arguments -> (starts, ends, transitions), NumPy arrays.
    """

    exported = {"emissions": ("length", "labels")}
    mean_forms = (LOGITS,)  # The mean of the scores of all paths is again a chain.

    @staticmethod
    def read_exported(emissions):
        return emissions

    def __init__(self, labels, read_scores):
        super().__init__(labels)
        self.read_scores = read_scores

    def choose_words(self, logits, lengths):
        return find_best_paths(logits, lengths, *self.read_scores())

    def find_probabilities(self, logits, lengths):
        """float32 (K, C), the marginal probabilities."""
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
