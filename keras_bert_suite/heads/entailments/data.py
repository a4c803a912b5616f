"""Rows of a text and the labels that it may have, as pairs of the text and a statement."""

import dataclasses

import numpy as np

from keras_bert_suite.data.arrays import is_tuple_of_columns, name_columns
from keras_bert_suite.data.rows import Rows
from keras_bert_suite.heads.base.text_data import TextData
from keras_bert_suite.heads.choices.data import ChoiceData
from keras_bert_suite.heads.choices.rows import read_choice_rows
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.preprocessing.packing import NUMPY, choose_namespace
from keras_bert_suite.tokenizers.text_inputs import decode_text

#: The place of a label in a template.
PLACE = "{}"


class EntailmentData(ChoiceData):
    """Texts, each beside a statement for each label: (B, K, L).

    Rows are texts, which have the labels of the task; or `(texts, lists of labels)`, a list for
    each text, without `y`.

    Args:
        packer, encoder, input_names: as for `TextData`.
        labels: `Classes` or `LabelSets`.
        template: str, the statement, with {} in the place of the label.
    """

    needs_segment_packer = True

    def __init__(self, packer, encoder, labels, input_names, template):
        super().__init__(packer, encoder, input_names)
        self.labels = labels
        self.template = template

    @property
    def packer(self):
        """The preprocessor, which cuts the text alone, so that each statement stays whole."""
        return TextData.packer.fget(self)

    @packer.setter
    def packer(self, packer):
        TextData.packer.fset(self, packer)
        packer = self._packer
        if not isinstance(packer, SegmentPacker) or packer.truncation == "only_first":
            return
        if packer.truncation != "longest_first":
            raise ValueError(
                "A ZeroShotClassifier cuts its texts, and never the statements beside them; got a "
                f"SegmentPacker with truncation={packer.truncation!r}. Pass 'only_first'."
            )
        config = {**packer.get_config(), "tokenizer": packer.tokenizer}
        self._packer = type(packer).from_config({**config, "truncation": "only_first"})

    def read_columns(self, x, y, sample_weight):
        columns = name_columns(x)
        has_both = isinstance(columns, dict) and {*self.input_names} <= {*columns}
        if not has_both and not (is_tuple_of_columns(columns) and len(columns) == 2):
            return self._add_labels(TextData.read_columns(self, x, y, sample_weight))
        if y is not None:
            raise ValueError(
                "Rows with labels of their own are for `predict`, and cannot be trained on or "
                "scored. Pass the texts alone: the labels of the task are "
                f"{', '.join(self.labels.names)[:80]}."
            )
        rows = read_choice_rows(columns, None, sample_weight, self.input_names)
        return dataclasses.replace(rows, inputs=(rows.inputs[0], *map(_decode, rows.inputs[1:])))

    def read_batch_columns(self, x, y, sample_weight):
        return self._add_labels(TextData.read_batch_columns(self, x, y, sample_weight))

    def pack_texts(self, texts):
        """Packs texts (B,) and labels (B, K), arrays or string tensors: dict (B, K, L)."""
        before, after = self.template.split(PLACE)
        if choose_namespace(*texts) is NUMPY:
            self._check_statements({label: before + label + after for label in texts[1].flat})
        return super().pack_texts((texts[0], before + texts[1] + after))

    def _check_statements(self, statements):
        """Raises a ValueError if a statement, of a dict by label, leaves no place for a text."""
        if not statements:
            return
        self.check_can_pack()
        _, lengths = self.packer.tokenizer.tokenize_flat([*statements.values()])
        missing = max(lengths) + 1 - self.packer.count_places(2)
        if missing > 0:
            label = [*statements][int(np.argmax(lengths))]
            length = self.packer.sequence_length
            raise ValueError(
                f"sequence_length={length} has no place for a text beside the statement of the "
                f"label {label[:60]!r}, which has {max(lengths)} tokens and is never cut. It must "
                f"be at least {length + missing}; or take shorter labels, or a shorter template "
                f"than {self.template[:60]!r}."
            )

    def _add_labels(self, rows):
        """The `Rows` with a column for each label of the task."""
        if rows.is_packed:
            return rows
        if len(rows.inputs) != 1:
            raise ValueError(
                f"Wanted single texts, got rows of {len(rows.inputs)} texts. Join the texts of a "
                "row. Labels that differ between the rows are lists: (texts, lists_of_labels)."
            )
        (texts,) = rows.inputs
        labels = [np.full(len(texts), name, object) for name in self.labels.names]
        return Rows((texts, *labels), rows.labels, rows.weights)


def _decode(column):
    """A column of labels, str or bytes, as str. The places after the last label of a row stay."""
    return np.array([decode_text(v) if isinstance(v, bytes) else v for v in column], object)
