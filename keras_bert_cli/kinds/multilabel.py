"""A set of labels for each text: a `TextClassifier`, and tables whose labels are joined."""

from ..command_flags import UsageError
from ..table_flags import to_field
from .classify import TEXT_FLAGS, ClassifyKind
from .kind import Kind


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

    def format_table(self, found):
        rows = zip(found["labels"], found["probabilities"], strict=True)
        lines = (
            f"{to_field(','.join(s))}\t{','.join(f'{p[name]:.6f}' for name in s)}\n"
            for s, p in rows
        )
        return ["labels\tprobabilities\n", *lines]
