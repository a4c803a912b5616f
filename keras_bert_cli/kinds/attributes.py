"""A label of each of several attributes: an `AttributeClassifier`, and tables of texts."""

import dataclasses

from keras_bert_suite.data.readers.columns import read_columns
from keras_bert_suite.data.readers.field_checks import check_filled, check_no_lists
from keras_bert_suite.data.readers.row_faults import RowFaults

from ..command_flags import UsageError
from ..table_flags import choose_text_columns, report_left_out, table_arguments, to_field
from .classify import ClassifyKind
from .kind import Kind


class AttributeKind(Kind):
    """Texts, or pairs of texts, with a label of each attribute, which may be missing."""

    name = "attributes"
    about = "a label of each of several attributes"
    own_flags = ("attribute_columns", "attribute_weights", "truncation", "augment")
    cuts_texts = True
    idle_table_flags = ("label_column",)
    input_names = ClassifyKind.input_names

    @staticmethod
    def define_flags(flags):
        explanation = (
            "Columns of the labels with --task attributes, joined by commas: size,season. Default "
            "of evaluate: the attributes of the model."
        )
        flags.text("attribute_columns", None, explanation)

    @staticmethod
    def define_training_flags(flags):
        explanation = (
            "Weights in the loss with --task attributes: size=2,season=0.5. Default: 1 for each."
        )
        flags.text("attribute_weights", None, explanation)

    @property
    def columns(self):
        """list of str, the columns of the labels."""
        if self.values.attribute_columns:
            columns = self.values.attribute_columns.split(",")
        elif self.model is not None:
            columns = list(self.model.attributes)
        else:
            raise UsageError(
                "--task attributes needs --attribute_columns, the columns of the labels: "
                "--attribute_columns size,season"
            )
        if self.model is not None and len(columns) != len(self.model.attributes):
            raise UsageError(
                f"--attribute_columns has {len(columns)} columns, wanted one for each attribute "
                f"of the model, in this order: {', '.join(self.model.attributes)}"
            )
        return columns

    def read(self, path):
        self.check_table_flags()
        texts = choose_text_columns(self.values, self.model and self.model.input_names)
        names = self.columns
        faults = RowFaults(path, self.values.row_errors)
        columns = [*texts, *names]
        read = read_columns(path, columns, faults=faults, **table_arguments(self.values))
        rows = [row for row in range(len(read)) if row not in faults.rows]
        for number, name in enumerate(texts):
            check_filled(read, number, "text", name, rows, faults)
        for number, name in enumerate(names, len(texts)):
            check_no_lists(read, number, "label", name, rows, faults)
        read = faults.leave_out(read)
        report_left_out(read)
        x = read.x[: len(texts)]
        labels = [[label.strip() for label in column] for column in read.x[len(texts) :]]
        y = dict(zip(self.model.attributes if self.model else names, labels, strict=True))
        return dataclasses.replace(read, x=x if len(x) > 1 else x[0], y=y)

    def find_arguments(self, train):
        attributes = {name: sorted({*column} - {""}) for name, column in train.y.items()}
        for name, labels in attributes.items():
            if len(labels) < 2:
                raise ValueError(
                    f"{train.path}: the column {name!r} has the labels {labels}, wanted 2 or more "
                    "different labels. Leave it out of --attribute_columns."
                )
        return {"attributes": attributes, "attribute_weights": self._read_weights(attributes)}

    def _read_weights(self, attributes):
        """dict of attribute -> float from --attribute_weights, or None."""
        if not self.values.attribute_weights:
            return None
        weights = {}
        for part in self.values.attribute_weights.split(","):
            name, _, number = part.rpartition("=")
            try:
                weights[name] = float(number)
            except ValueError:
                name = None
            if name not in attributes:
                raise UsageError(
                    f"--attribute_weights has {part!r}, wanted NAME=NUMBER with one of "
                    f"{', '.join(attributes)}"
                )
        return weights

    def format_table(self, found):
        from keras_bert_suite.serving.answer_columns import open_answers

        names = open_answers(self.model).attributes
        rows = ([row[name]["label"] for name in names] for row in found["attributes"])
        lines = ("\t".join(map(to_field, row)) + "\n" for row in rows)
        return ["\t".join(map(to_field, names)) + "\n", *lines]
