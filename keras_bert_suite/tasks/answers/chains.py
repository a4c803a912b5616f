"""The most probable path of labels through the words of a row."""

from keras_bert_suite.layers.heads.chain_decoding import find_best_paths, find_marginals
from keras_bert_suite.tasks.answers.words import WordAnswers


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
