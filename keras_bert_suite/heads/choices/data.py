"""Rows of a prompt and several endings, with the index of the right ending."""

import numpy as np

from keras_bert_suite.data.text_lists import find_texts
from keras_bert_suite.heads.base.labels import ClassIds
from keras_bert_suite.heads.base.text_data import TextData
from keras_bert_suite.heads.choices.rows import (
    check_collated_lists,
    read_choice_rows,
    read_collated,
)
from keras_bert_suite.preprocessing.packing import choose_namespace


class ChoiceData(TextData):
    """Rows of a prompt and K endings. The model sees each ending as a pair of texts.

    Args:
        packer, encoder, input_names: as for `TextData`.
    """

    takes_graphs = False  # Endings are listed in Python.
    text_ranks: tuple[int, ...] | None = (1, 2)  # Prompts (B,) and endings (B, K).
    packed_axes: tuple[tuple[str, ...], ...] = (("rows", "endings", "tokens"),)

    def __init__(self, packer, encoder, input_names):
        super().__init__(packer, encoder, ClassIds(), input_names)

    def read_columns(self, x, y, sample_weight):
        return read_choice_rows(x, y, sample_weight, self.input_names)

    def read_batch_columns(self, x, y, sample_weight):
        check_collated_lists(x, self.input_names)
        return self.read_columns(read_collated(x), y, sample_weight)

    def order(self, inputs, names):
        """`read_choice_rows` has put the columns in order."""
        return inputs

    def pack(self, rows, labelled=False):
        if rows.is_packed:
            return super().pack(rows)
        prompts, *endings = rows.inputs
        endings = np.stack(endings, axis=1)
        is_ending = find_texts(endings)
        most = max(is_ending.sum(axis=1), default=1)
        endings, is_ending = endings[:, :most], is_ending[:, :most]
        endings[~is_ending] = ""
        inputs = self.pack_texts((prompts, endings))
        if not is_ending.all():
            mask = inputs["padding_mask"] * is_ending[:, :, None]
            inputs = {**inputs, "padding_mask": mask}
        return inputs, rows.labels, rows.weights

    def pack_texts(self, texts):
        """Packs prompts (B,) and endings (B, K), arrays or string tensors: dict (B, K, L)."""
        xp = choose_namespace(*texts)
        packed = super().pack_texts(pair_up(xp, *texts))
        shape = xp.shape(texts[1])
        # The number of rows is named, because a batch may have no row.
        return {
            name: xp.reshape(array, [shape[0], shape[1], xp.shape(array)[1]])
            for name, array in packed.items()
        }


def pair_up(xp, texts, lists):
    """Two columns (B K,): each of the texts (B,) beside each text of its list (B, K)."""
    return xp.repeat(texts, xp.shape(lists)[1]), xp.reshape(lists, [-1])
