"""A set of labels for each text: a `TextClassifier`, and tables whose labels are joined."""

from ..command_flags import UsageError
from ..table_flags import to_field
from .classify import TEXT_FLAGS, ClassifyKind
from .kind import Kind, format_json


class MultiLabelKind(ClassifyKind):
    """Texts, or pairs of texts, with a set of labels each, which may be empty."""

    name = "multilabel"
    about = "a set of labels for each text"
    problem_type = "multi_label_classification"
    own_flags = (*TEXT_FLAGS, "png", "label_separator")
    score_outputs = Kind.score_outputs

    @staticmethod
    def define_flags(flags):
        explanation = "Separator of the labels of a text, with --task multilabel."
        flags.text("label_separator", ",", explanation)

    def read(self, path):
        separator = self.values.label_separator
        if not separator:
            raise UsageError("--label_separator must not be empty; the default is a comma")
        return super().read(path, label_separator=separator)

    def complete(self, task, dev):
        task.tune_thresholds(dev.x, dev.y, self.values.batch_size)
        return True

    def draw(self, scores, path):
        from ..plots import plot_label_scores

        plot_label_scores(scores["classes"], path)

    def predict(self, columns):
        names, answers = self.label_names, self.answer(columns, "is_label", "probabilities")
        by_name = [
            dict(zip(names, (round(float(p), 6) for p in row), strict=True))
            for row in answers["probabilities"]
        ]
        sets = [
            [name for name, has in zip(names, row, strict=True) if has]
            for row in answers["is_label"]
        ]
        rows = zip(sets, by_name, strict=True)
        if self.values.format == "jsonl":
            return format_json(columns, ({"labels": s, "probabilities": p} for s, p in rows))
        lines = (
            f"{to_field(','.join(s))}\t{','.join(f'{p[name]:.6f}' for name in s)}\n"
            for s, p in rows
        )
        return ["labels\tprobabilities\n", *lines]
