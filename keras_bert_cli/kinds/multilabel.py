"""A set of labels for each text: a `TextClassifier`, and tables whose labels are joined."""

import json

from absl import flags

from keras_bert_suite.data import tables

from ..command_flags import UsageError
from ..labelled_tables import check_lines, columns_of, list_labels, read_examples, shorten_label
from ..model_paths import find_input_names
from ..outputs import write_json, write_picture
from ..predictor import (
    open_classifier,
    open_saved_model,
    order_texts,
    predict_probabilities,
    read_label_names,
)
from ..score_table import make_score_table
from ..table_flags import choose_text_columns
from ..text_files import to_field
from .classify import Classify


class MultiLabel(Classify):
    """Texts, or pairs of texts, with a set of labels each, which may be empty."""

    name = "multilabel"
    about = "a set of labels for each text"
    problem_type = "multi_label_classification"
    own_flags = (*Classify.own_flags, "label_separator")

    @staticmethod
    def define_flags(values):
        explanation = "Separator of the labels of a text, with --task multilabel."
        flags.DEFINE_string("label_separator", ",", explanation, flag_values=values)

    @classmethod
    def serves(cls, output_names):
        return "is_label" in output_names

    def read(self, path):
        """Reads a `Table`, in which every row has its texts, and its labels joined."""
        columns = choose_text_columns(self.values)
        return read_examples(self.values, path, columns, needs_label=False)

    def find_labels(self, train):
        """The names are the labels of the training file, sorted.

        Raises:
            ValueError: if no text has a label.
        """
        names = tables.list_label_names(name for row in self.columns_of(train)[1] for name in row)
        if not names:
            raise ValueError(
                f"No text of {train.path} has a label in the column {self.values.label_column!r}. "
                "Is it the right column? --label_column names another."
            )
        check_lines(train, self.values.label_column, names)
        return {"label_names": names, "problem_type": self.problem_type}

    def check(self, examples, arguments, source):
        _check_sets(examples, self.columns_of(examples)[1], arguments["label_names"], source)

    def introduce(self, train, arguments):
        sets = self.columns_of(train)[1]
        mean = sum(map(len, sets)) / len(sets)
        names = list_labels(arguments["label_names"])
        return f"{len(train)} training texts, {mean:.2f} labels in a text, labels {names}"

    def columns_of(self, examples):
        if not self.values.label_separator:
            raise UsageError("--label_separator must not be empty; the default is a comma")
        texts, labels = columns_of(examples)
        return texts, [split_labels(row, self.values.label_separator) for row in labels]

    def balance(self, train):
        """A text with a label weighs as much as all other texts for each text with the label."""
        sets = self.columns_of(train)[1]
        counts = {}
        for name in (name for row in sets for name in set(row)):
            counts[name] = counts.get(name, 0) + 1
        # A label that all texts have needs a weight, too.
        return {"class_weight": {n: max(len(sets) - c, 1) / c for n, c in counts.items()}}

    def complete(self, task, dev):
        if dev is None:
            return None
        task.tune_thresholds(*self.columns_of(dev))
        return f"dev {self.describe(task, dev)}, with the best threshold of each label"

    def describe(self, task, examples):
        scores = task.score(*self.columns_of(examples))
        return f"micro F1 {scores['micro_f1']:.4f}, macro F1 {scores['macro_f1']:.4f}"

    def evaluate(self):
        values = self.values
        if values.png:
            from ..plots import plot_label_scores
        text_columns = choose_text_columns(values, find_input_names(values.model))
        table = read_examples(values, values.input, text_columns, needs_label=False)
        wanted = self.columns_of(table)[1]
        texts = {name: table.columns[name] for name in text_columns.values()}
        found, _, label_names = answer_sets(values.model, texts, values.batch_size)
        _check_sets(table, wanted, label_names, source=values.model)

        from keras_bert_suite.data.label_scores import score_label_sets
        from keras_bert_suite.data.label_sets import encode_label_sets, read_label_sets

        matrices = (
            encode_label_sets(read_label_sets(sets), label_names) > 0 for sets in (wanted, found)
        )
        scores = {"rows": len(table), **score_label_sets(*matrices, label_names)}
        print_set_scores(scores)
        if values.json:
            write_json(values.json, scores, values.overwrite)
        if values.png:
            write_picture(
                values.png,
                lambda path: plot_label_scores(scores["classes"], path),
                values.overwrite,
            )

    def predict(self, columns, saved_model=None):
        path, batch_size = self.values.model, self.values.batch_size
        sets, probabilities, label_names = answer_sets(path, columns, batch_size, saved_model)
        style = self.values.format or "tsv"
        return _format_lines(style, columns, sets, probabilities, label_names)


def split_labels(text, separator):
    """list of str, the labels of a text.

    >>> split_labels("joy, love", ",")
    ['joy', 'love']
    """
    return [name.strip() for name in text.split(separator) if name.strip()]


def answer_sets(path, columns, batch_size, saved_model=None):
    """Answers texts with sets of labels.

    Args:
        path: str, a task or a SavedModel.
        columns: dict, name of a column -> N texts.
        batch_size: int.
        saved_model: the `SavedModel` at `path`, if it is loaded already.

    Returns:
        (list of N lists of names; probabilities, float32 (N, C); list of C names).
    """
    import numpy as np

    saved_model = open_saved_model(path, saved_model)
    if saved_model is not None:
        saved_model.check_kind(MultiLabel)
        batches = list(saved_model.answer(columns, batch_size))
        sets = [
            [name.decode() for name in row if name] for batch in batches for row in batch["labels"]
        ]
        probabilities = np.concatenate([batch["probabilities"] for batch in batches])
        return sets, probabilities, read_label_names(path)
    task = open_classifier(path, "multi_label_classification")
    texts = order_texts(path, task.input_names, columns)
    probabilities = predict_probabilities(task, texts, batch_size)
    names = np.array(task.label_names, object)
    is_label = probabilities > np.array(task.thresholds, "float32")
    return [names[row].tolist() for row in is_label], probabilities, task.label_names


def print_set_scores(scores):
    """Prints the scores of `score_label_sets`."""
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    console.print(
        f"micro F1 {scores['micro_f1']:.4f}, macro F1 {scores['macro_f1']:.4f}, exact match "
        f"{scores['exact_match']:.4f}, {scores['rows']} texts"
    )
    rows = ((shorten_label(name), row, row["rows"]) for name, row in scores["classes"].items())
    console.print(make_score_table("label", "texts", rows))


def _check_sets(table, sets, label_names, source):
    """Raises a `ValueError` if a label is not one of the names, naming its line."""
    known = set(label_names)
    for row, names in enumerate(sets):
        for name in names:
            if name not in known:
                raise ValueError(
                    f"{table.locate(row)}: the label {shorten_label(name)!r} does not occur in "
                    f"{source}, whose labels are {list_labels(label_names)}. Correct it, train "
                    "with texts that have it, or name what stands between the labels with "
                    "--label_separator."
                )


def _format_lines(style, columns, sets, probabilities, label_names):
    """Yields the lines of the output."""
    if style == "tsv":
        yield "labels\tprobabilities\n"
    for row, names in enumerate(sets):
        by_name = {
            name: round(float(p), 6)
            for name, p in zip(label_names, probabilities[row], strict=True)
        }
        if style == "tsv":
            shares = (f"{by_name[name]:.6f}" for name in names)
            yield f"{to_field(','.join(names))}\t{','.join(shares)}\n"
            continue
        answer = {name: texts[row] for name, texts in columns.items()}
        answer.update(labels=names, probabilities=by_name)
        yield json.dumps(answer, ensure_ascii=False) + "\n"
