"""A label for each text: a `TextClassifier` or `DocumentClassifier`, and tables of texts."""

import functools
from pathlib import Path

from ..command_flags import UsageError
from ..label_checks import check_labels, check_lines, list_labels, weigh_labels
from ..model_paths import find_input_names
from ..saved_tasks import open_task
from ..scores import count_confusions, print_score_table, print_table
from ..table_flags import choose_text_columns, read_examples, to_field
from .kind import Kind, format_json

#: `problem_type` of a classifier -> the value of --task.
TASK_FLAGS = {
    "single_label_classification": "classify",
    "multi_label_classification": "multilabel",
    "regression": "regress",
}

WINDOW_FLAGS = ("window_pooling", "max_windows", "training_windows")

#: Values of --window_pooling -> `window_pooling` of `DocumentClassifier`, before Keras is imported.
POOLINGS = {
    "mean": "mean",
    "max": "max",
    "attention": {"class_name": "keras_bert_suite>AttentionPooling", "config": {}},
    "transformer": {"class_name": "keras_bert_suite>WindowTransformer", "config": {}},
}

#: A matrix of more classes is not printed.
MOST_PRINTED_CLASSES = 20


class ClassifyKind(Kind):
    """Texts, or pairs of texts, with a label each."""

    name = "classify"
    about = "a label for each text"
    own_flags = (*WINDOW_FLAGS, "png")

    #: `problem_type` of the task.
    problem_type = "single_label_classification"

    @property
    def task(self):
        """The class that `finetune` trains."""
        return "DocumentClassifier" if self.values.window_pooling else "TextClassifier"

    @staticmethod
    def define_training_flags(flags):
        explanation = (
            "For long texts: read windows of --sequence_length tokens, and pool their vectors in "
            "this way. Default: read one window, the beginning of a text."
        )
        flags.choice("window_pooling", None, list(POOLINGS), explanation)
        explanation = "Maximum number of windows of a text, with --window_pooling."
        flags.integer("max_windows", 32, explanation, 1)
        explanation = (
            "Windows of a text in a training step, a random sample, with --window_pooling. "
            "Default: all windows."
        )
        flags.integer("training_windows", None, explanation, 1)

    @classmethod
    def serves(cls, output_names):
        return {"labels", "probabilities"} <= {*output_names} and "is_label" not in output_names

    @classmethod
    def recognizes(cls, saved):
        is_classifier = super().recognizes(saved)
        return is_classifier and find_problem_type(saved.config) == cls.problem_type

    @property
    def input_names(self):
        """The names of the model's texts. For pairs they are the names of the columns."""
        if not self.values.text_pair_column:
            return ("text",)
        if not self.values.header:
            return ("text_a", "text_b")
        return (self.values.text_column, self.values.text_pair_column)

    def read(self, path, text_columns=None, **arguments):
        """Reads `Examples`.

        Args:
            path: str.
            text_columns: as `choose_text_columns` returns them. By default, the flags name them.
            **arguments: of `read_table`, about the labels.
        """
        columns = text_columns or choose_text_columns(self.values)
        arguments = {"problem_type": self.problem_type, **arguments}
        return read_examples(self.values, path, columns, "label_column", **arguments)

    def find_arguments(self, train):
        values, arguments = self.values, self.find_labels(train)
        if values.window_pooling:
            return {
                **arguments,
                "window_pooling": POOLINGS[values.window_pooling],
                "max_windows": values.max_windows,
                "training_windows": values.training_windows,
            }
        for name in ("max_windows", "training_windows"):
            if name in values.given:
                raise UsageError(f"--{name} needs --window_pooling")
        return arguments

    def find_labels(self, train):
        """dict of the arguments of the task that are about its labels.

        Raises:
            ValueError: if all texts have the same label.
        """
        names = train.label_names
        if len(names) < 2:
            raise ValueError(
                f"Every row of {train.path} has the label {names[0]!r} in its column "
                f"{self.values.label_column!r}. Wanted two or more different labels."
            )
        check_lines(train)
        # A new layer on a checkpoint for sets of labels would be for sets of labels, too.
        return {"label_names": names, "problem_type": self.problem_type}

    def check(self, examples, arguments, source):
        sets = ([label] for label in examples.y)
        check_labels(examples, sets, arguments["label_names"], source)

    def introduce(self, train, arguments):
        return f"{len(train)} training texts, labels {list_labels(arguments['label_names'])}"

    def balance(self, train):
        import numpy as np

        weights = weigh_labels(train.y)
        return {"sample_weight": np.array([weights[label] for label in train.y], "float32")}

    def describe(self, task, examples):
        scores = task.evaluate(
            examples.x, examples.y, self.values.batch_size, verbose=0, return_dict=True
        )
        return f"accuracy {scores['accuracy']:.4f}, loss {scores['loss']:.4f}"

    def score(self):
        from keras_bert_suite.data.label_scores import score_classes

        texts, examples = self.read_input()
        if self.label_names:
            self.check(examples, {"label_names": self.label_names}, source=self.values.model)
        (predicted,) = self.answer(texts, "labels")
        # A SavedModel may not name its labels. A label may then occur in the answers only.
        label_names = self.label_names or sorted({*examples.y, *predicted})
        id_of = {name: i for i, name in enumerate(label_names)}
        label_ids = [id_of[name] for name in examples.y]
        predicted_ids = [id_of[name] for name in predicted]
        scores = {
            "rows": len(examples),
            **score_classes(label_ids, predicted_ids, label_names),
            "label_names": label_names,
            "confusion_matrix": count_confusions(
                label_ids, predicted_ids, len(label_names)
            ).tolist(),
        }
        print_scores(scores)

        def draw(path):
            from ..plots import plot_confusion_matrix

            plot_confusion_matrix(label_ids, predicted_ids, label_names, path)

        return scores, draw

    def read_input(self):
        """(dict of the name of a column -> texts of --input; the `Examples` with their labels)."""
        text_columns = choose_text_columns(self.values, find_input_names(self.values.model))
        examples = self.read(self.values.input, text_columns)
        return dict(zip(text_columns.values(), examples.columns, strict=True)), examples

    @functools.cached_property
    def classifier(self):
        """The `TextClassifier` of --model.

        Raises:
            ValueError: if it has another problem type, so that its outputs mean something else.
        """
        path = self.values.model
        classifier = open_task(path, "TextClassifier")
        if classifier.problem_type != self.problem_type:
            other = TASK_FLAGS[classifier.problem_type]
            raise ValueError(
                f"{path} was trained with problem_type={classifier.problem_type!r}, and --task "
                f"{self.name} is for {self.problem_type!r}. Pass --task {other}."
            )
        return classifier

    @functools.cached_property
    def label_names(self):
        """list of C str, the label names of --model, or None for a SavedModel without them."""
        if self.saved_model is not None:
            return read_label_names(self.values.model)
        return self.classifier.label_names

    def answer(self, columns, *outputs):
        """Answers texts as a server does.

        Args:
            columns: dict, name of a column -> N texts.
            *outputs: str, names of outputs of `serving_default`.

        Returns:
            list with the answers of each output: an array, or for "labels" a list, of N rows.
        """
        import numpy as np

        batch_size = self.values.batch_size
        if self.saved_model is not None:
            batches = list(self.saved_model.answer(columns, batch_size))
            answers = {name: np.concatenate([batch[name] for batch in batches]) for name in outputs}
            if "labels" in answers:
                answers["labels"] = [label.decode() for label in answers["labels"]]
            return [answers[name] for name in outputs]

        from keras import ops

        texts = self.order_texts(self.classifier.input_names, columns)
        predicted = self.classifier.predict(texts, batch_size=batch_size, verbose=0)
        answers = self.classifier.answers.serve(ops, ops.convert_to_tensor(predicted), None)
        answers = {name: ops.convert_to_numpy(answer) for name, answer in answers.items()}
        if "label_ids" in answers:
            answers["labels"] = [self.label_names[i] for i in answers["label_ids"]]
        return [answers[name] for name in outputs]

    def predict(self, columns):
        labels, probabilities = self.answer(columns, "labels", "probabilities")
        rounded = [[round(float(p), 6) for p in row] for row in probabilities]
        if self.values.format != "jsonl":
            rows = zip(labels, rounded, strict=True)
            lines = (f"{to_field(label)}\t{max(row):.6f}\n" for label, row in rows)
            return ["label\tprobability\n", *lines]
        names = self.label_names
        answers = (
            {
                "label": label,
                "probability": max(row),
                "probabilities": dict(zip(names, row, strict=True)) if names else row,
            }
            for label, row in zip(labels, rounded, strict=True)
        )
        return format_json(columns, answers)


def find_problem_type(config):
    """The `problem_type` in the configuration of a `TextClassifier` or of transformers."""
    # transformers takes one output for a regression unless the file says otherwise.
    default = "regression" if len(config.get("id2label") or ()) == 1 else ClassifyKind.problem_type
    return config.get("problem_type") or default


def print_scores(scores):
    """Prints the scores of `score`."""
    print(
        f"accuracy {scores['accuracy']:.4f}, macro F1 {scores['macro_f1']:.4f}, "
        f"{scores['rows']} texts"
    )
    print_score_table("class", "texts", "rows", scores["classes"].items())
    names = scores["label_names"]
    if len(names) <= MOST_PRINTED_CLASSES:
        rows = zip(names, scores["confusion_matrix"], strict=True)
        print_table(["true \\ predicted", *names], ([name, *counts] for name, counts in rows))


def read_label_names(saved_model):
    """The class names that `export_saved_model` has written beside the graph, or None."""
    file = Path(saved_model) / "assets.extra" / "label_names.txt"
    # A name may hold any character but a line feed. `read_text` would change a carriage return.
    return file.read_bytes().decode("utf-8").split("\n") if file.is_file() else None
