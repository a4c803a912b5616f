"""The layers after which there are exits, and the layers of these exits."""

from collections.abc import Sequence
from typing import Any

import keras

from keras_bert_suite.argument_checks import check_list, with_article
from keras_bert_suite.models.encoder import Encoder


def check_exit_layers(encoder: Encoder, exit_layers: Sequence[int] | None) -> tuple[int, ...]:
    """The layers of an encoder with an exit before the last layer, counted from 1.

    Raises:
        ValueError: if an encoder has no layers to leave after, or they are not increasing numbers
            below that of its last layer.
    """
    name = with_article(encoder.as_model(), "A")
    if not encoder.hidden_states or not encoder.transformer_layers:
        raise ValueError(
            f"{name} does not name its transformer layers and their states, so rows cannot leave "
            "between them. Early exits are for the encoders of this package with transformer "
            "layers, such as a BertBackbone."
        )
    last = len(encoder.list_calls())
    if encoder.summary_place is None or last < 2:
        raise ValueError(
            f"{name} of {last} layers, with summary_place={encoder.summary_place!r}, has no layer "
            "to leave after before the last. Early exits need 2 layers, and a token that stands "
            "for the row."
        )
    if exit_layers is None:
        return tuple(range(1, last))
    check_list("exit_layers", exit_layers, "layers")
    chosen = tuple(exit_layers)
    are_numbers = all(isinstance(layer, int) and 0 < layer < last for layer in chosen)
    if not chosen or not are_numbers or list(chosen) != sorted(set(chosen)):
        raise ValueError(
            f"exit_layers must be increasing numbers from 1 to {last - 1}, since the last of the "
            f"{last} layers always has an exit, got {exit_layers!r}."
        )
    return chosen


def make_poolers(backbone: Any, exit_layers: Sequence[int]) -> list[keras.layers.Layer]:
    """The tanh layers of exits, (B, H) to (B, H), as the pooler of a BERT."""
    return [
        keras.layers.Dense(
            backbone.hidden_dim,
            activation="tanh",
            kernel_initializer=keras.initializers.TruncatedNormal(stddev=0.02),
            dtype=backbone.dtype_policy,
            name=f"exit_{layer}_pooler",
        )
        for layer in exit_layers
    ]
