"""Poolings of tasks: made, called on the states of an encoder, and checked."""

from collections.abc import Mapping
from typing import Any

import keras
import keras_hub

from keras_bert_suite import checkpoints
from keras_bert_suite.annotations import Tensor
from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.layers.heads.head_layers import takes_hidden_states
from keras_bert_suite.layers.poolings.pooling import SUMMARY_POOLINGS, call_pooling, get_pooling
from keras_bert_suite.models import BACKBONES
from keras_bert_suite.models.encoder import Encoder


def open_new_pooling(arguments: dict[str, Any], name: str) -> list[str]:
    """Makes the pooling layer of a task that is built on a checkpoint, in its `arguments`.

    It returns regular expressions for the weights of the layer. No checkpoint of another library
    has them.
    """
    if isinstance(arguments.get(name), Mapping):
        arguments[name] = get_pooling(arguments[name])
    pooling = arguments.get(name)
    return [f"{pooling.name}/.*"] if isinstance(pooling, keras.layers.Layer) else []


def find_pooled_summary(
    backbone: keras_hub.models.Backbone, pooling: keras.layers.Layer | None
) -> str | None:
    """The `summary_place` that a task reads a row from; None if it reads several tokens."""
    if pooling is None:
        return Encoder.of(backbone).summary_place
    places = SUMMARY_POOLINGS.items()
    return next((place for place, kind in places if isinstance(pooling, kind)), None)


def pool_hidden_states(
    backbone: keras_hub.models.Backbone,
    pooling: keras.layers.Layer,
    inputs: dict[str, Tensor] | None = None,
) -> tuple[Tensor, frozenset[str]]:
    """Calls a backbone, and a pooling layer on its outputs.

    The pooling is called with the sequence output (B, L, H) and the padding mask (B, L). If its
    `takes_hidden_states` is true, it gets a list of (B, L, H) instead, the embeddings and the
    output of each layer. `inputs` are symbolic tensors; None for the backbone's own.

    Returns:
        tuple (symbolic (B, P); frozenset of str, the paths of the backbone's variables that the
        vectors do not depend on).

    Raises:
        ValueError: if the backbone has no padding mask, or does not name the states that the
            pooling takes; or if the pooling does not return one vector for each row.
    """
    encoder = Encoder.of(backbone)
    inputs = backbone.input if inputs is None else inputs
    if "padding_mask" not in inputs:
        raise ValueError(
            f"{with_article(backbone, 'A')} has no input padding_mask, so a pooling cannot tell "
            "tokens from padding. Use a TextClassifier with pooling=None."
        )
    if takes_hidden_states(pooling):
        layers = encoder.make_layer_model()
        encoded, unused = layers(inputs), encoder.list_unused(layers)
    else:
        encoded, unused = encoder.encode_tokens(inputs), encoder.find_unused()
    pooled = call_pooling(pooling, encoded, inputs["padding_mask"])
    check_pooled(pooled, pooling)
    return pooled, unused


def check_pooled(pooled: Any, pooling: keras.layers.Layer) -> None:
    """Raises a ValueError if a pooling has not made one vector (B, P) of each row."""
    shape = getattr(pooled, "shape", None)
    if shape is None or len(shape) != 2 or shape[-1] is None:
        raise ValueError(
            "A pooling layer must return one vector (B, P) for each row, got "
            f"{shape or type(pooled).__name__} from {type(pooling).__name__}."
        )


def list_missing_poolers(checkpoint: Any) -> list[str]:
    """The path pattern of the pooler if a checkpoint lacks the pooler.

    If no output depends on the pooler, it needs no warning that its weights are new. A pooler that
    also transforms tokens needs this warning.
    """
    backbone = BACKBONES[checkpoint.model_type.backbone]
    if backbone.token_transform is not None or checkpoints.has_part(checkpoint, "pooler"):
        return []
    return ["pooler/.*"]
