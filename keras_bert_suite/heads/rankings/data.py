"""Rows of a query and its candidates, with the relevance of each candidate."""

import numpy as np

from keras_bert_suite.data.rows import Rows
from keras_bert_suite.heads.base.text_data import TextData
from keras_bert_suite.heads.choices.data import ChoiceData
from keras_bert_suite.heads.rankings.rows import list_pairs, read_ranking_rows
from keras_bert_suite.preprocessing.padding_lengths import compiles_each_length

#: The relevance in the places after the last candidate of a list.
NO_CANDIDATE = -1.0


class RankingData(ChoiceData):
    """Lists of candidates for training, and pairs of a query and a candidate for prediction.

    Args: as for `ChoiceData`.

    `compares` says whether the loss of `compile` compares the candidates of a list.
    """

    text_ranks = None
    packed_axes: tuple[tuple[str, ...], ...] = (
        ("lists", "candidates", "tokens"),
        ("pairs", "tokens"),
    )
    compares = True
    pack_texts = TextData.pack_texts

    def read_columns(self, x, y, sample_weight):
        return read_ranking_rows(x, y, sample_weight, self.input_names)

    def check_training(self, rows, batch_size):
        """Raises a ValueError if a list has nothing to compare, or if no list can teach."""
        alone = [row for row, labels in enumerate(rows.labels) if len(labels) == 1]
        if alone and self.compares:
            query = "" if rows.is_packed else f", {str(rows.inputs[0][alone[0]])[:60]!r},"
            raise ValueError(
                f"Row {rows.sources[alone[0]]}{query} has one candidate, as have {len(alone)} of "
                f"{len(rows)} rows, and nothing to compare it with. Add candidates that are not "
                "relevant, leave these rows out, or compile with loss=RankingLoss('pointwise')."
            )
        if self.compares and all(labels.min() == labels.max() for labels in rows.labels):
            raise ValueError(
                "The candidates of each list have the same relevance, so there is no order to "
                "learn. Give a higher number to those that are more relevant."
            )

    def lengths(self, rows):
        """As in `TextData`. Lists of as many candidates share a batch, first of all."""
        if rows.is_packed or rows.labels is None:
            return super().lengths(rows)
        lengths = super().lengths(Rows(list_pairs(*rows.inputs)))
        sizes = np.array(list(map(len, rows.inputs[1])))
        longest = np.maximum.reduceat(lengths, np.cumsum(sizes) - sizes)
        return sizes * (longest.max() + 1) + longest

    def pack(self, rows, labelled=False):
        """Packs B lists as B K pairs, one list after the other, or packs pairs for prediction.

        Empty pairs come after the last candidate of a list with fewer than K.

        Returns:
            (packed arrays (B K, L), relevance float32 (B, K), weights); of pairs (packed arrays
            (B, L), None, weights).

        Raises:
            ValueError: if there are lists in the place of pairs.
        """
        if not labelled:
            self.check_pairs(rows)
            return TextData.pack(self, rows)
        size = max(map(len, rows.labels))
        if rows.is_packed:
            packed = self.join_packed(rows.inputs)
        else:
            if compiles_each_length():
                size = 1 << (size - 1).bit_length()  # So that few sizes are compiled.
            lists = [[*row, *[""] * (size - len(row))] for row in rows.inputs[1]]
            packed = self.pack_lists(rows.inputs[0], lists)
        relevance = np.full((len(rows), size), NO_CANDIDATE, "float32")
        for row, labels in enumerate(rows.labels):
            relevance[row, : len(labels)] = labels
        return packed, relevance, rows.weights

    def pack_lists(self, queries, lists):
        """The packed arrays of B queries and of their lists of K texts each."""
        return self.pack_texts(list_pairs(queries, lists))

    def join_packed(self, arrays):
        """The inputs of the model, of packed arrays with an axis for candidates."""
        return {name: array.reshape(-1, array.shape[-1]) for name, array in arrays.items()}

    def check_pairs(self, rows):
        """Raises a ValueError if rows for prediction are lists, and not pairs."""
        columns = rows.inputs.values() if rows.is_packed else rows.inputs[1:]
        if any(c.ndim > 2 or isinstance(c.flat[0], list) for c in columns if c.size):
            raise ValueError(
                "predict takes pairs, as many texts as queries, got lists of texts. Call "
                "`rank(queries, texts)` for lists."
            )
