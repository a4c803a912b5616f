"""Rows of a query and its candidates, each text of which is packed by itself."""

import dataclasses

import numpy as np

from keras_bert_suite.heads.rankings.data import RankingData
from keras_bert_suite.preprocessing.packing import choose_namespace
from keras_bert_suite.preprocessing.text_rows import interleave_texts


class TowerData(RankingData):
    """Lists of K candidates, packed as rows of S = K + 1 texts with the query first; or pairs.

    Args: as for `RankingData`.
    """

    packed_axes = (("rows", "texts", "tokens"),)

    def read_columns(self, x, y, sample_weight):
        is_packed = isinstance(x, dict) and not {*self.input_names} & {*x}
        if not is_packed or y is None:
            return super().read_columns(x, y, sample_weight)
        # The labels are for the texts after the query.
        candidates = {name: np.asarray(array)[:, 1:] for name, array in x.items()}
        rows = super().read_columns(candidates, y, sample_weight)
        whole = {name: np.asarray(array) for name, array in x.items()}
        return dataclasses.replace(rows, inputs=whole)

    def pack(self, rows, labelled=False):
        """As `RankingData.pack`. Single texts, for `encode`, are rows of one text (B, 1, L)."""
        if not rows.is_packed and len(rows.inputs) == 1:
            return self.pack_rows(rows.inputs[0], 1), None, None
        return super().pack(rows, labelled)

    def check_pairs(self, rows):
        if not rows.is_packed:
            return super().check_pairs(rows)
        for name, array in rows.inputs.items():
            if array.ndim == 3 and array.shape[1] != 2:
                raise ValueError(
                    f"predict takes pairs of a query and a text, arrays (N, 2, L), got {name} of "
                    f"the shape {array.shape}. Call `rank(queries, texts)` for lists."
                )

    def pack_lists(self, queries, lists):
        rows = [[query, *row] for query, row in zip(queries, lists, strict=True)]
        return self.pack_rows([text for row in rows for text in row], len(rows[0]))

    def join_packed(self, arrays):
        return arrays

    def pack_texts(self, texts):
        """Packs queries (B,) and texts (B,), arrays or string tensors: dict (B, 2, L)."""
        return self.pack_rows(interleave_texts(texts), 2)

    def pack_rows(self, texts, num_texts):
        """Packs the texts (B S,) of B rows, one row after the other: dict (B, S, L)."""
        self.check_can_pack()
        xp = choose_namespace(texts)
        packed = self.pack_segments((texts,))
        # The number of rows is named, because a batch may have no row.
        number = xp.size(texts) // num_texts
        return {
            name: xp.reshape(array, [number, num_texts, xp.shape(array)[1]])
            for name, array in packed.items()
        }
