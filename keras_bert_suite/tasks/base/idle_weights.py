"""Leaves weights untrained that the outputs of a task do not depend on, such as the pooler's."""

from typing import Any

import keras
import keras_hub

from keras_bert_suite import checkpoints
from keras_bert_suite.annotations import Tensor
from keras_bert_suite.models import BACKBONES


class IdleWeights:
    """A task that does not train the weights at `idle_paths`, which no output depends on.

    A weight that no output depends on has no gradient, and Keras warns about it. Under JAX its
    gradient is 0, so that weight decay would still change it. So such weights are not trained.
    """

    idle_paths: frozenset[str] = frozenset()

    @property
    def trainable_variables(self) -> list[keras.Variable]:
        return [v for v in super().trainable_variables if v.path not in self.idle_paths]

    @property
    def trainable_weights(self) -> list[keras.Variable]:
        return [v for v in super().trainable_weights if v.path not in self.idle_paths]

    @property
    def non_trainable_variables(self) -> list[keras.Variable]:
        trainable = set(map(id, self.trainable_variables))
        return [variable for variable in self.variables if id(variable) not in trainable]

    @property
    def non_trainable_weights(self) -> list[keras.Variable]:
        trainable = set(map(id, self.trainable_weights))
        return [variable for variable in self.weights if id(variable) not in trainable]


def find_idle(backbone: keras_hub.models.Backbone, transformed: bool = False) -> frozenset[str]:
    """The paths of the weights of a backbone that a task on tokens does not need.

    With `transformed` the task is on `transform_tokens` of the sequence output.
    """
    if not isinstance(backbone.output, dict):
        return frozenset()
    sequence_output = backbone.output["sequence_output"]
    encoder = keras.Model(backbone.input, sequence_output, name="sequence_encoder")
    used = {variable.path for variable in encoder.variables}
    if transformed and hasattr(backbone, "token_transform"):
        used |= {variable.path for variable in backbone.token_transform.variables}
    return frozenset(v.path for v in backbone.variables if v.path not in used)


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
