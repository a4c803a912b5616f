"""The common base of tasks that read the tokens of a row: layers between encoder and head."""

import re
from typing import Any, Self

import keras

from keras_bert_suite.annotations import Config, Tensor
from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.heads.base.feature_training import fit_on_features
from keras_bert_suite.heads.base.head import HEAD_LAYERS_RATE
from keras_bert_suite.heads.base.poolings import list_missing_poolers
from keras_bert_suite.heads.base.task import Task
from keras_bert_suite.layers.heads.head_layers import (
    HeadLayers,
    call_head_layers,
    open_head_layers,
    takes_hidden_states,
)
from keras_bert_suite.models.encoder import Encoder


class TokenTask(Task):
    """The base of tasks with `head_layers`: tags, spans and answers to questions.

    Such a task calls `encode_for_head` in its constructor, after `self.backbone` is set.
    """

    #: The layers between the encoder and the head, in the order of their calls.
    head_layers: list[keras.layers.Layer]

    #: The features that `fit_on_features` computes once: symbolic hidden states (B, L, H), and the
    #: padding mask (B, L) if the encoder has one.
    features: tuple[Tensor, ...]

    fit_on_features = fit_on_features

    @property
    def head_learning_rate(self) -> float | None:
        return HEAD_LAYERS_RATE if self.head_layers else super().head_learning_rate

    def encode_for_head(self, head_layers: HeadLayers, transformed: bool) -> Tensor:
        """The input of the head, symbolic float (B, L, P), after `head_layers`.

        `transformed` says whether the head is on `Encoder.transform_tokens` of the states.
        """
        backbone = self.backbone
        encoder = Encoder.of(backbone)
        self.head_layers = open_head_layers(head_layers)
        mask = backbone.input.get("padding_mask")
        if self.head_layers and mask is None:
            raise ValueError(
                f"{with_article(backbone, 'A')} has no input padding_mask, so head_layers cannot "
                "tell tokens from padding. Leave head_layers out."
            )
        if self.head_layers and takes_hidden_states(self.head_layers[0]):
            layers = encoder.make_layer_model()
            states, self.unused_paths = layers(backbone.input), encoder.list_unused(layers)
        else:
            states = encoder.encode_tokens()
            if transformed:
                states = encoder.transform_tokens(states)
            self.unused_paths = encoder.find_unused(transformed)
        self.encoder_features = (*keras.tree.flatten(states), *([] if mask is None else [mask]))
        if not self.head_layers:
            return states
        given = keras.tree.flatten(head_layers)
        are_new = any(isinstance(part, keras.layers.Layer) for part in given)
        return call_head_layers(self.head_layers, states, mask, check=are_new)

    @classmethod
    def arguments_of(cls, checkpoint: Any, arguments: Config) -> tuple[Config, list[str]]:
        cls.check_new_head(arguments)
        arguments, new_parts = super().arguments_of(checkpoint, arguments)
        layers = open_head_layers(arguments.get("head_layers"))
        weights = [re.escape(weight.path) for layer in layers for weight in layer.weights]
        new_parts += [*(f"{layer.name}/.*" for layer in layers), *weights]
        new_parts += list_missing_poolers(checkpoint)
        return {**arguments, "head_layers": layers}, new_parts

    @classmethod
    def load_keras_preset(cls, loader: Any, load_weights: bool, **arguments: Any) -> Self:
        cls.check_new_head(arguments)
        return super().load_keras_preset(loader, load_weights, **arguments)

    @classmethod
    def check_new_head(cls, arguments: Config) -> None:
        """Raises a ValueError if `head_layers` are to come before a head that was trained."""
        if arguments.get("head_layers") is not None and not cls.has_new_head(arguments):
            raise ValueError(
                "The head of a checkpoint reads what it was trained on. With `head_layers`, pass "
                "`num_classes` or `label_names` to get a new head."
            )

    def get_config(self) -> Config:
        config = super().get_config()
        return {**config, "head_layers": config["head_layers"] or None}
