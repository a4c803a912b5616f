"""Labels that a model was not trained on: a classifier of entailment, for `predict` alone."""

from keras_bert_suite.argument_checks import with_article

from ..command_flags import UsageError
from ..model_paths import is_runtime_folder, is_saved_model
from ..saved_tasks import open_task
from ..table_flags import read_text_columns
from . import make_kind
from .classify import ClassifyKind


class ZeroShotKind(ClassifyKind):
    """Single texts with the most probable of --zero_shot_labels."""

    input_names = ("text",)

    def read_texts(self):
        return read_text_columns(self.values, "input", self.input_names)

    def order_texts(self, columns):
        if len(columns) != 1:
            raise UsageError(
                f"--zero_shot_labels are for single texts, got the columns {', '.join(columns)}"
            )
        return columns

    def find_answers(self, columns):
        from keras_bert_suite.serving.named_answers import name_classes

        shares = self.predict_rows(columns)
        return name_classes(self.model.label_names, shares.argmax(axis=-1), shares)


def define_zero_shot_flags(flags):
    """Defines --zero_shot_labels and --zero_shot_template."""
    explanation = (
        "Labels between which each text is classified, joined by commas, by a model that was "
        "trained on entailment (MNLI, XNLI)."
    )
    flags.list("zero_shot_labels", None, explanation)
    explanation = (
        "With --zero_shot_labels the statement about a text, with {} in the place of the label. "
        "Default: This example is {}."
    )
    flags.text("zero_shot_template", None, explanation)


def open_zero_shot(values):
    """The `ZeroShotKind` of --model, or None without --zero_shot_labels."""
    if not values.zero_shot_labels:
        if values.zero_shot_template:
            raise UsageError("--zero_shot_template needs --zero_shot_labels")
        return None
    if is_saved_model(values.model) or is_runtime_folder(values.model):
        raise UsageError(
            "--zero_shot_labels are for a .keras file or the folder of a preset or checkpoint, got "
            f"--model {values.model}"
        )
    task = open_task(values.model, base=values.base)
    if not hasattr(task, "zero_shot"):
        raise ValueError(
            f"{values.model} holds {with_article(task)}. Wanted a TextClassifier that was trained "
            "on entailment."
        )
    template = {"template": values.zero_shot_template} if values.zero_shot_template else {}
    return make_kind(ZeroShotKind, values, task.zero_shot(values.zero_shot_labels, **template))
