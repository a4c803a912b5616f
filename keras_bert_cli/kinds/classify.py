"""A label for each text: a `TextClassifier` or `DocumentClassifier`, and tables of texts."""

import json

from ..label_weights import weigh_labels
from ..labelled_tables import (
    check_labels,
    columns_of,
    find_label_names,
    list_labels,
    read_examples,
    shorten_label,
)
from ..model_paths import find_input_names
from ..outputs import write_json, write_picture
from ..predictor import open_predictor
from ..score_table import make_score_table
from ..table_flags import choose_text_columns
from ..text_files import to_field
from ..window_flags import WINDOW_FLAGS, define_window_flags, find_window_arguments
from .kind import Kind

#: A matrix of more classes is not printed.
MOST_PRINTED_CLASSES = 20


class Classify(Kind):
    """Texts, or pairs of texts, with a label each."""

    name = "classify"
    about = "a label for each text"
    unit = "texts"
    own_flags = WINDOW_FLAGS

    #: `problem_type` of the task.
    problem_type = "single_label_classification"

    @property
    def task(self):
        """The class that `finetune` trains."""
        return "DocumentClassifier" if self.values.window_pooling else "TextClassifier"

    @staticmethod
    def define_training_flags(values):
        define_window_flags(values)

    @classmethod
    def recognizes(cls, saved):
        is_classifier = saved.class_name in ("TextClassifier", "DocumentClassifier")
        return is_classifier and find_problem_type(saved.config) == cls.problem_type

    @property
    def input_names(self):
        """The names of the model's texts. For pairs they are the names of the columns."""
        if not self.values.text_pair_column:
            return ("text",)
        if not self.values.header:
            return ("text_a", "text_b")
        return (self.values.text_column, self.values.text_pair_column)

    def read(self, path):
        """Reads a `Table`, in which every row has its texts and a label."""
        return read_examples(self.values, path, choose_text_columns(self.values))

    def find_arguments(self, train):
        return {**self.find_labels(train), **find_window_arguments(self.values)}

    def find_labels(self, train):
        """dict of the arguments of the task that are about its labels."""
        # A new layer on a checkpoint for sets of labels would be for sets of labels, too.
        names = find_label_names(self.values, train)
        return {"label_names": names, "problem_type": self.problem_type}

    def check(self, examples, arguments, source):
        check_labels(self.values, examples, arguments["label_names"], source)

    def introduce(self, train, arguments):
        return f"{len(train)} training texts, labels {list_labels(arguments['label_names'])}"

    def columns_of(self, examples):
        return columns_of(examples)

    def balance(self, train):
        import numpy as np

        labels = columns_of(train)[1]
        weights = weigh_labels(labels)
        return {"sample_weight": np.array([weights[label] for label in labels], "float32")}

    def describe(self, task, examples):
        scores = task.evaluate(*columns_of(examples), verbose=0, return_dict=True)
        return f"accuracy {scores['accuracy']:.4f}, loss {scores['loss']:.4f}"

    def evaluate(self):
        values = self.values
        if values.png:
            from ..plots import plot_confusion_matrix
        text_columns = choose_text_columns(values, find_input_names(values.model))
        table = read_examples(values, values.input, text_columns)

        predictor = open_predictor(values.model)
        labels = columns_of(table)[1]
        if predictor.label_names:
            check_labels(values, table, predictor.label_names, source=values.model)
        texts = {name: table.columns[name] for name in text_columns.values()}
        predicted, _ = predictor.answer(texts, values.batch_size)
        # A SavedModel may not name its labels. A label may then occur in the answers only.
        label_names = predictor.label_names or sorted({*labels, *predicted})

        from ..scores import count_confusions, score

        id_of = {name: i for i, name in enumerate(label_names)}
        label_ids = [id_of[name] for name in labels]
        predicted_ids = [id_of[name] for name in predicted]
        scores = score(count_confusions(label_ids, predicted_ids, len(label_names)), label_names)
        print_scores(scores)
        if values.json:
            write_json(values.json, scores, values.overwrite)
        if values.png:
            write_picture(
                values.png,
                lambda path: plot_confusion_matrix(label_ids, predicted_ids, label_names, path),
                values.overwrite,
            )

    def predict(self, columns, saved_model=None):
        predictor = open_predictor(self.values.model, saved_model)
        answers = predictor.answer(columns, self.values.batch_size)
        style = self.values.format or "tsv"
        return _format_lines(style, columns, *answers, predictor.label_names)


def find_problem_type(config):
    """The `problem_type` in the configuration of a `TextClassifier` or of transformers."""
    # transformers takes one output for a regression unless the file says otherwise.
    default = "regression" if len(config.get("id2label") or ()) == 1 else Classify.problem_type
    return config.get("problem_type") or default


def print_scores(scores):
    """Prints the scores of `score`."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False)
    console.print(
        f"accuracy {scores['accuracy']:.4f}, macro F1 {scores['macro_f1']:.4f}, "
        f"{scores['rows']} texts"
    )
    rows = ((shorten_label(name), row, row["rows"]) for name, row in scores["classes"].items())
    console.print(make_score_table("class", "texts", rows))

    names = [shorten_label(name) for name in scores["label_names"]]
    if len(names) > MOST_PRINTED_CLASSES:
        console.print(f"The confusion matrix of {len(names)} classes is for --json and --png.")
        return
    matrix = Table("true \\ predicted", *names)
    for column in matrix.columns[1:]:
        column.justify = "right"
    for name, counts in zip(names, scores["confusion_matrix"], strict=True):
        matrix.add_row(name, *map(str, counts))
    console.print(matrix)


def _format_lines(style, columns, labels, probabilities, label_names):
    """Yields the lines of the output."""
    if style == "tsv":
        yield "label\tprobability\n"
    for row, label in enumerate(labels):
        rounded = [round(float(p), 6) for p in probabilities[row]]
        if style == "tsv":
            yield f"{to_field(label)}\t{max(rounded):.6f}\n"
            continue
        answer = {name: texts[row] for name, texts in columns.items()}
        answer.update(label=label, probability=max(rounded))
        answer["probabilities"] = (
            dict(zip(label_names, rounded, strict=True)) if label_names else rounded
        )
        yield json.dumps(answer, ensure_ascii=False) + "\n"
