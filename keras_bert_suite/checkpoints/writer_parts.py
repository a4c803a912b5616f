"""The common steps of writing a model in the format of another library."""

import keras
import numpy as np

from keras_bert_suite.checkpoints.load_weights import weights_by_path
from keras_bert_suite.files.messages import list_names, name_of

#: Attributes of our backbones that the backbones of KerasHub do not have.
_BERT_DIALS = ("activation", "attention_dropout", "embedding_dim", "layer_norm_epsilon")


def find_tokenizer(model, tokenizer, kind):
    """The tokenizer to write: the one that was given, or else that of a task's preprocessor.

    Args:
        model: backbone or task.
        tokenizer: the tokenizer that was given, or None.
        kind: str, the class of the tokenizers that the format holds. A preprocessor may have
            another one, of KerasHub's, which is not written.
    """
    if tokenizer is not None:
        return tokenizer
    own = getattr(getattr(model, "preprocessor", None), "tokenizer", None)
    return own if type(own).__name__ == kind else None


def make_config(backbone, hidden_acts, owner, position_offset=0):
    """Makes the fields of a configuration that Google and Hugging Face share.

    `config_values.read_backbone_config` reads them.

    Args:
        backbone: `BertBackbone` or `RobertaBackbone`.
        hidden_acts: dict of the name of an activation function -> their `hidden_act`.
        owner: str, the owner of the format in messages, such as "Google's BERT".
        position_offset: int, how many rows the format's position embedding has before the row of
            the first token.

    Returns:
        dict.

    Raises:
        ValueError: if the backbone is not one of ours, or the format does not have its activation
            or its positions.
    """
    missing = [name for name in _BERT_DIALS if not hasattr(backbone, name)]
    if missing:
        raise ValueError(
            f"{owner} can hold a BertBackbone of keras_bert_suite, got "
            f"{type(backbone).__module__.partition('.')[0]}'s {type(backbone).__name__}. Use "
            "`model.save_to_preset`. (A preset that KerasHub's BertBackbone saves is read by "
            "`keras_bert_suite.BertBackbone.from_preset`, and can then be saved here.)"
        )
    if backbone.position_offset != position_offset:
        raise ValueError(
            f"{owner} has its first token at position {position_offset}, got a "
            f"{type(backbone).__name__} with position {backbone.position_offset}. Use "
            "`save_hugging_face`, or `model.save`."
        )
    activation = name_of(backbone.activation)
    if activation not in hidden_acts:
        raise ValueError(
            f"{owner} has no activation {activation!r}; wanted one of {', '.join(hidden_acts)}. "
            "Use `model.save`."
        )
    return {
        "attention_probs_dropout_prob": backbone.attention_dropout,
        "hidden_act": hidden_acts[activation],
        "hidden_dropout_prob": backbone.dropout,
        "hidden_size": backbone.hidden_dim,
        "initializer_range": backbone.initializer_range,
        "intermediate_size": backbone.intermediate_dim,
        "max_position_embeddings": backbone.max_sequence_length + position_offset,
        "num_attention_heads": backbone.num_heads,
        "num_hidden_layers": backbone.num_layers,
        "type_vocab_size": backbone.num_segments,
        "vocab_size": backbone.vocabulary_size,
    }


def collect_weights(model, table, owner):
    """dict of path -> weight of a model, if all weights have a name in the table.

    Args:
        model: `keras.Model`, built.
        table: `NameTable` of the format.
        owner: as for `make_config`.

    Raises:
        ValueError: if the format has no place for some weights, naming them, or for the pooling of
            a classifier.
    """
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
        raise ValueError(
            f"{owner} has no place for these weights of {model.name!r}: {list_names(strangers)}. "
            "Save its `backbone` alone, or use `model.save`."
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
