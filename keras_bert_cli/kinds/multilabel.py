"""A set of labels for each text: a `TextClassifier`, and tables whose labels are joined."""

from ..command_flags import UsageError
from ..label_checks import check_labels, check_lines, list_labels
from ..scores import print_score_table
from ..table_flags import to_field
from .classify import ClassifyKind
from .kind import format_json


class MultiLabelKind(ClassifyKind):
    """Texts, or pairs of texts, with a set of labels each, which may be empty."""

    name = "multilabel"
    about = "a set of labels for each text"
    problem_type = "multi_label_classification"
    own_flags = (*ClassifyKind.own_flags, "label_separator")

    @staticmethod
    def define_flags(flags):
        explanation = "Separator of the labels of a text, with --task multilabel."
        flags.text("label_separator", ",", explanation)

    @classmethod
    def serves(cls, output_names):
        return "is_label" in output_names

    def read(self, path, text_columns=None):
        separator = self.values.label_separator
        if not separator:
            raise UsageError("--label_separator must not be empty; the default is a comma")
        return super().read(path, text_columns, label_separator=separator)

    def find_labels(self, train):
        """The names are the labels of the training file, sorted.

        Raises:
            ValueError: if no text has a label.
        """
        if not train.label_names:
            raise ValueError(
                f"No text of {train.path} has a label in the column {self.values.label_column!r}. "
                "Is it the right column? --label_column names another."
            )
        check_lines(train)
        return {"label_names": train.label_names, "problem_type": self.problem_type}

    def check(self, examples, arguments, source):
        check_labels(examples, examples.y, arguments["label_names"], source)

    def introduce(self, train, arguments):
        mean = sum(map(len, train.y)) / len(train)
        names = list_labels(arguments["label_names"])
        return f"{len(train)} training texts, {mean:.2f} labels in a text, labels {names}"

    def balance(self, train):
        """A text with a label weighs as much as all other texts for each text with the label."""
        counts = {}
        for name in (name for row in train.y for name in set(row)):
            counts[name] = counts.get(name, 0) + 1
        # A label that all texts have needs a weight, too.
        return {"class_weight": {n: max(len(train) - c, 1) / c for n, c in counts.items()}}

    def complete(self, task, dev):
        if dev is None:
            return None
        task.tune_thresholds(dev.x, dev.y, self.values.batch_size)
        return f"dev {self.describe(task, dev)}, with the best threshold of each label"

    def describe(self, task, examples):
        scores = task.score(examples.x, examples.y, self.values.batch_size)
        return f"micro F1 {scores['micro_f1']:.4f}, macro F1 {scores['macro_f1']:.4f}"

    def score(self):
        from keras_bert_suite.data.label_scores import score_label_sets
        from keras_bert_suite.data.label_sets import encode_label_sets, read_label_sets

        texts, examples = self.read_input()
        names = self.label_names
        check_labels(examples, examples.y, names, source=self.values.model)
        (is_label,) = self.answer(texts, "is_label")
        matrix = encode_label_sets(read_label_sets(examples.y), names) > 0
        scores = {"rows": len(examples), **score_label_sets(matrix, is_label, names)}
        print(
            f"micro F1 {scores['micro_f1']:.4f}, macro F1 {scores['macro_f1']:.4f}, exact match "
            f"{scores['exact_match']:.4f}, {scores['rows']} texts"
        )
        print_score_table("label", "texts", "rows", scores["classes"].items())

        def draw(path):
            from ..plots import plot_label_scores

            plot_label_scores(scores["classes"], path)

        return scores, draw

    def predict(self, columns):
        names = self.label_names
        is_label, probabilities = self.answer(columns, "is_label", "probabilities")
        by_name = [
            dict(zip(names, (round(float(p), 6) for p in row), strict=True))
            for row in probabilities
        ]
        sets = [[name for name, has in zip(names, row, strict=True) if has] for row in is_label]
        rows = zip(sets, by_name, strict=True)
        if self.values.format == "jsonl":
            return format_json(columns, ({"labels": s, "probabilities": p} for s, p in rows))
        lines = (
            f"{to_field(','.join(s))}\t{','.join(f'{p[name]:.6f}' for name in s)}\n"
            for s, p in rows
        )
        return ["labels\tprobabilities\n", *lines]
