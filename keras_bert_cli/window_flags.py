"""The flags that train a classifier on windows of long texts."""

from absl import flags

from .command_flags import UsageError

WINDOW_FLAGS = ("window_pooling", "max_windows", "training_windows")

#: Values of --window_pooling -> `window_pooling` of `DocumentClassifier`, before Keras is imported.
POOLINGS = {
    "mean": "mean",
    "max": "max",
    "attention": {"class_name": "keras_bert_suite>AttentionPooling", "config": {}},
    "transformer": {"class_name": "keras_bert_suite>WindowTransformer", "config": {}},
}


def define_window_flags(values):
    """Defines the flags of `WINDOW_FLAGS`.

    Args:
        values: `absl.flags.FlagValues`.
    """
    explanation = (
        "For long texts: read windows of --sequence_length tokens, and pool their vectors in this "
        "way. Default: read one window, the beginning of a text."
    )
    flags.DEFINE_enum("window_pooling", None, list(POOLINGS), explanation, flag_values=values)
    explanation = "Maximum number of windows of a text, with --window_pooling."
    flags.DEFINE_integer("max_windows", 32, explanation, 1, flag_values=values)
    explanation = (
        "Windows of a text in a training step, a random sample, with --window_pooling. Default: "
        "all windows."
    )
    flags.DEFINE_integer("training_windows", None, explanation, 1, flag_values=values)


def find_window_arguments(values):
    """dict of the arguments of `DocumentClassifier` that the flags set; empty without windows.

    Raises:
        UsageError: if --window_pooling is missing.
    """
    if values.window_pooling:
        return {
            "window_pooling": POOLINGS[values.window_pooling],
            "max_windows": values.max_windows,
            "training_windows": values.training_windows,
        }
    for name in ("max_windows", "training_windows"):
        if values[name].present:
            raise UsageError(f"--{name} needs --window_pooling")
    return {}
