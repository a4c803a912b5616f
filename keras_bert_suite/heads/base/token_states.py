"""The states of the tokens of an encoder, and the weights that they do not depend on."""

from typing import Any

import keras
import keras_hub

from keras_bert_suite import checkpoints
from keras_bert_suite.annotations import Tensor
from keras_bert_suite.models import BACKBONES


def find_unused(backbone: keras_hub.models.Backbone, transformed: bool = False) -> frozenset[str]:
    """The paths of the weights of a backbone that a task on tokens does not need.

    With `transformed` the task is on `transform_tokens` of the sequence output.
    """
    if not isinstance(backbone.output, dict):
        return frozenset()
    sequence_output = backbone.output["sequence_output"]
    encoder = keras.Model(backbone.input, sequence_output, name="sequence_encoder")
    has_transform = transformed and hasattr(backbone, "token_transform")
    return list_unused(backbone, encoder, *([backbone.token_transform] if has_transform else []))


def list_unused(backbone: keras_hub.models.Backbone, *used: Any) -> frozenset[str]:
    """The paths of the weights of a backbone that are in none of some models and layers."""
    paths = {variable.path for part in used for variable in part.variables}
    return frozenset(v.path for v in backbone.variables if v.path not in paths)


def encode_tokens(
    backbone: keras_hub.models.Backbone, inputs: dict[str, Tensor] | None = None
) -> Tensor:
    """float (B, L, H), symbolic, the sequence output of a text encoder.

    `inputs` are symbolic tensors (B, L) by name, by default the backbone's own input.
    """
    encoded = backbone(backbone.input if inputs is None else inputs)
    return encoded["sequence_output"] if isinstance(encoded, dict) else encoded


def transform_tokens(backbone: keras_hub.models.Backbone, encoded: Tensor) -> Tensor:
    """The input of the output layer of a head on tokens, symbolic (B, L, H) as `encoded`."""
    transform = getattr(backbone, "token_transform", None)
    return encoded if transform is None else transform(encoded)


def list_missing_poolers(checkpoint: Any) -> list[str]:
    """The path pattern of the pooler if a checkpoint lacks the pooler.

    If no output depends on the pooler, it needs no warning that its weights are new. A pooler that
    also transforms tokens needs this warning.
    """
    backbone = BACKBONES[checkpoint.model_type.backbone]
    if hasattr(backbone, "token_transform") or checkpoints.has_part(checkpoint, "pooler"):
        return []
    return ["pooler/.*"]
