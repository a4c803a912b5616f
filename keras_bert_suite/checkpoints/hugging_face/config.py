"""Reads the kind of a model from Hugging Face's config.json."""

from keras_bert_suite.checkpoints.model_types.dials import DIALS
from keras_bert_suite.checkpoints.model_types.table import MODEL_TYPES, find_type


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


def has_architecture(config, ending):
    """Whether a model was saved from a class with this ending, such as "ForMultipleChoice"."""
    names = config.get("architectures")
    return isinstance(names, list) and any(str(name).endswith(ending) for name in names)
