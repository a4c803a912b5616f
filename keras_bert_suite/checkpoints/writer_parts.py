"""The common steps of writing a model in the format of another library."""

import keras
import numpy as np

from keras_bert_suite.checkpoints.load_weights import weights_by_path
from keras_bert_suite.files.messages import list_names


def find_tokenizer(model, tokenizer, kinds):
    """Finds the tokenizer to write: `tokenizer`, or else that of the task's preprocessor.

    Args:
        model: backbone or task.
        tokenizer: the tokenizer that was given, or None.
        kinds: tuple of str, the classes of tokenizers that the format can hold.

    Returns:
        the tokenizer. None if none was given, and the preprocessor has none or one of another
        class, such as a tokenizer of KerasHub.
    """
    if tokenizer is not None:
        return tokenizer
    own = getattr(getattr(model, "preprocessor", None), "tokenizer", None)
    return own if type(own).__name__ in kinds else None


def find_length(model, sequence_length):
    """Finds the maximum sequence length to write with a tokenizer.

    Args:
        model: backbone or task.
        sequence_length: int, the length that was given, or None for that of the task's
            preprocessor. Without one it is the number of positions.

    Returns:
        int, at most the number of positions.

    Raises:
        ValueError: if the length that was given is not from 4 to the number of positions.
    """
    positions = getattr(model, "backbone", model).max_sequence_length
    if sequence_length is None:
        own = getattr(getattr(model, "preprocessor", None), "sequence_length", positions)
        return min(own, positions)
    if not 4 <= sequence_length <= positions:
        raise ValueError(
            f"sequence_length must be from 4 to {positions}, the number of positions of the model, "
            f"got {sequence_length}."
        )
    return sequence_length


def collect_weights(model, table, owner):
    """Collects the weights of a model by path, and checks that the format can hold them all.

    Args:
        model: `keras.Model`, built.
        table: `NameTable` of the format.
        owner: as for `write_fields`.

    Returns:
        dict of path -> weight.

    Raises:
        ValueError: if the format cannot hold some weights, naming them; or the pooling of a
            classifier; or a head for three relations of a `Pretrainer`; or if the model was
            quantized.
    """
    if any(layer.quantization_mode for layer in model._flatten_layers(include_self=False)):
        raise ValueError(
            f"{owner} has no place for 8-bit integers, and {model.name!r} was quantized. Write it "
            "before `quantize`, or use `model.save`."
        )
    weights = weights_by_path(model)
    for name in ("pooling", "window_pooling"):
        pooling = getattr(model, name, None)
        if pooling is not None and "classifier/kernel" in weights:
            raise ValueError(
                f"{owner} classifies the pooled output of the encoder, got a "
                f"{type(model).__name__} with {name}={type(pooling).__name__}. Save its `backbone` "
                "alone, or use `model.save`."
            )
    strangers = [path for path in weights if table.their_name(path) is None]
    if strangers:
        remedy = "Save its `backbone` alone"
        if all(path.startswith("span_boundary/") for path in strangers):
            by = "`span_boundary=False` or keras-bert convert --part masked_lm"
            remedy = f"Leave the head out, by {by}"
        raise ValueError(
            f"{owner} has no place for these weights of {model.name!r}: {list_names(strangers)}. "
            f"{remedy}, or use `model.save`."
        )
    relations = weights.get("next_sentence/kernel")
    if relations is not None and relations.shape[-1] != 2:
        raise ValueError(
            f"{owner} tells two relations of texts apart, got a head with sentence_relations="
            f"{relations.shape[-1]}. Leave the head out, by `next_sentence=False` or keras-bert "
            "convert --part masked_lm, or use `model.save`."
        )
    return weights


def convert_weights(weights, table):
    """Yields their (name, float32 array) for each of our weights. One array is in memory at a time.

    Args:
        weights: dict of path -> weight, from `collect_weights`.
        table: `NameTable` of the format.
    """
    for path, weight in weights.items():
        name, transform = table.their_name(path)
        value = keras.ops.convert_to_numpy(keras.ops.cast(weight, "float32"))
        yield name, np.ascontiguousarray(transform(value))
