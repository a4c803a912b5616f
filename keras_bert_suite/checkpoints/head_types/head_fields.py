"""Reads and writes the fields of heads in Hugging Face's config.json."""

from keras_bert_suite.files.messages import shorten

#: The values of `problem_type`.
SINGLE_LABEL, MULTI_LABEL, REGRESSION = (
    "single_label_classification",
    "multi_label_classification",
    "regression",
)

#: Our field for the thresholds of the labels. transformers keeps it and does not use it.
THRESHOLDS = "label_thresholds"
#: Our field for how texts are cut into words. transformers keeps it and does not use it.
WORD_CUTTING = "word_cutting"


def read_text_labels(config, num_outputs, dropout):
    """The arguments of a `TextClassifier` in a config.json, with the dropout rate of its head.

    It is None for a problem type that `TextClassifier` does not have.
    """
    # transformers takes one output for a regression unless the file says otherwise.
    problem_type = config.get("problem_type") or (REGRESSION if num_outputs == 1 else SINGLE_LABEL)
    known = problem_type in (SINGLE_LABEL, MULTI_LABEL, REGRESSION)
    if not known or (problem_type == SINGLE_LABEL and num_outputs < 2):
        return None
    arguments = {**read_labels(config, num_outputs, dropout), "problem_type": problem_type}
    thresholds = config.get(THRESHOLDS)
    has_thresholds = problem_type == MULTI_LABEL or (problem_type, num_outputs) == (SINGLE_LABEL, 2)
    if thresholds is not None and has_thresholds:
        arguments["thresholds"] = thresholds
    return arguments


def write_text_labels(task, num_outputs):
    """The fields that `read_text_labels` reads, of a model with a layer "classifier"."""
    fields = write_labels(task, num_outputs)
    if getattr(task, "problem_type", None) is not None:
        fields["problem_type"] = task.problem_type
    thresholds = getattr(task, "thresholds", None) or ()
    if any(threshold != 0.5 for threshold in thresholds):
        fields[THRESHOLDS] = list(thresholds)
    return fields


def read_labels(config, num_outputs, dropout):
    """The arguments of a task with a name for each output: `label_names` and `dropout`."""
    # transformers does not write `id2label` if it has its default, two labels with these names.
    labels = config.get("id2label", {"0": "LABEL_0", "1": "LABEL_1"})
    try:
        names = {int(key): str(name) for key, name in labels.items()}
    except (AttributeError, ValueError):
        names = {}
    if sorted(names) != list(range(len(names))) or not 0 < len(names) <= num_outputs:
        raise ValueError(
            f"'id2label' in {config.path} must map 0 to at most {num_outputs - 1} to names, got "
            f"{shorten(repr(labels))}."
        )
    # Files of 2019 may have another `num_labels` beside the default of two names.
    names = [names.get(i, f"LABEL_{i}") for i in range(num_outputs)]
    return {"label_names": names, "dropout": dropout}


def write_labels(task, num_outputs):
    """The fields that `read_labels` reads."""
    names = getattr(task, "label_names", None) or [f"LABEL_{i}" for i in range(num_outputs)]
    return {
        "id2label": {str(i): name for i, name in enumerate(names)},
        "label2id": {name: i for i, name in enumerate(names)},
    }


def read_word_labels(config, num_outputs, dropout):
    """The arguments of a `TokenClassifier`."""
    arguments = read_labels(config, num_outputs, dropout)
    cutting = config.get(WORD_CUTTING)
    return arguments if cutting is None else {**arguments, "word_cutting": cutting}


def write_word_labels(task, num_outputs):
    """The fields that `read_word_labels` reads."""
    cutting = getattr(task, "word_cutting", None)
    written = {} if cutting is None else {WORD_CUTTING: cutting.get_config()}
    return {**write_labels(task, num_outputs), **written}


def read_choices(config, num_outputs, dropout):
    """The arguments of a `MultipleChoice`, or None if a choice has several outputs."""
    return {"dropout": dropout} if num_outputs == 1 else None
