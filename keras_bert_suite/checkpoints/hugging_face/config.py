"""Reads the kind of a model and of its head from Hugging Face's config.json."""

from keras_bert_suite.checkpoints.model_types.dials import DIALS
from keras_bert_suite.checkpoints.model_types.table import MODEL_TYPES, find_type
from keras_bert_suite.files.messages import shorten

#: The values of `problem_type`.
SINGLE_LABEL, MULTI_LABEL, REGRESSION = (
    "single_label_classification",
    "multi_label_classification",
    "regression",
)

#: Our field for the thresholds of the labels. transformers keeps it and does not use it.
THRESHOLDS = "label_thresholds"


def find_model_type(config):
    """Finds the type of a model, and checks that one of our backbones computes it.

    Args:
        config: `ConfigValues`.

    Returns:
        `ModelType`.

    Raises:
        ValueError: if the model is of another type, or a field of `DIALS` has a value that our
            backbones do not support.
    """
    kind = find_type(config)
    # Only files since 2020 have a `model_type`. RoBERTa's tensors may have BERT's names.
    if config.get("model_type") is None and config.get("type_vocab_size") == 1:
        raise ValueError(
            f"{config.path} has no model_type, and one type of segments, as a RoBERTa. Add the "
            f"model_type: one of {', '.join(MODEL_TYPES)}."
        )
    understood = {field.name for field in kind.fields}
    config.check_dials(dial for dial in (*DIALS, *kind.dials) if dial[0] not in understood)
    code = config.get("auto_map")
    if isinstance(code, dict) and any(str(name).startswith("AutoModel") for name in code):
        raise ValueError(
            f"'auto_map' in {config.path} names code of the model's own, which is never run. If "
            f"it computes a plain {kind.title}, remove 'auto_map'."
        )
    return kind


def has_head(config, ending):
    """Whether a model was saved from a class with this ending, such as "ForMultipleChoice"."""
    names = config.get("architectures")
    return isinstance(names, list) and any(str(name).endswith(ending) for name in names)


def read_classifier(config, shape, dropout):
    """Reads the arguments of a `TextClassifier` whose head is the checkpoint's layer.

    Args:
        config: `ConfigValues`.
        shape: shape of the kernel of the classification layer, or None if there is no such
            tensor.
        dropout: float, the dropout rate of the head.

    Returns:
        dict of arguments of `TextClassifier`, or None if the layer cannot be its head.

    Raises:
        ValueError: if `id2label` has a wrong value.
    """
    if not has_head(config, "ForSequenceClassification") or shape is None or len(shape) != 2:
        return None
    # transformers takes one output for a regression unless the file says otherwise.
    problem_type = config.get("problem_type") or (REGRESSION if shape[0] == 1 else SINGLE_LABEL)
    known = problem_type in (SINGLE_LABEL, MULTI_LABEL, REGRESSION)
    if not known or (problem_type == SINGLE_LABEL and shape[0] < 2):
        return None
    arguments = {
        "label_names": _read_label_names(config, shape[0]),
        "problem_type": problem_type,
        "dropout": dropout,
    }
    thresholds = config.get(THRESHOLDS)
    if thresholds is not None and problem_type == MULTI_LABEL:
        arguments["thresholds"] = thresholds
    return arguments


def read_token_classifier(config, shape, dropout):
    """Reads the arguments of a `TokenClassifier` whose head is the checkpoint's layer.

    Args, Raises: as for `read_classifier`.

    Returns:
        dict of arguments of `TokenClassifier`, or None.
    """
    if not has_head(config, "ForTokenClassification") or shape is None or len(shape) != 2:
        return None
    return {"label_names": _read_label_names(config, shape[0]), "dropout": dropout}


def read_multiple_choice(config, shape, dropout):
    """Reads the arguments of a `MultipleChoice` whose head is the checkpoint's layer.

    Args, Raises: as for `read_classifier`.

    Returns:
        dict of arguments of `MultipleChoice`, or None.
    """
    is_there = has_head(config, "ForMultipleChoice") and shape is not None
    return {"dropout": dropout} if is_there and len(shape) == 2 and shape[0] == 1 else None


def _read_label_names(config, num_labels):
    # transformers does not write `id2label` if it has its default, two labels with these names.
    labels = config.get("id2label", {"0": "LABEL_0", "1": "LABEL_1"})
    try:
        names = {int(key): str(name) for key, name in labels.items()}
    except (AttributeError, ValueError):
        names = {}
    if sorted(names) != list(range(len(names))) or not 0 < len(names) <= num_labels:
        raise ValueError(
            f"'id2label' in {config.path} must map 0 to at most {num_labels - 1} to names, got "
            f"{shorten(repr(labels))}."
        )
    # Files of 2019 may have another `num_labels` beside the default of two names.
    return [names.get(i, f"LABEL_{i}") for i in range(num_labels)]
