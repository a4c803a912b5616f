"""Copies an encoder with fewer layers, or with another number of positions."""

from typing import Any

import keras
import numpy as np

from keras_bert_suite.annotations import Config
from keras_bert_suite.argument_checks import check_integer, with_article

#: bert4keras' share of the first row in the positions beyond the table.
ALPHA = 0.4

_TABLE = "embeddings/position_embedding/embeddings"


def resize_encoder(
    backbone: Any,
    num_layers: int | None,
    max_sequence_length: int | None,
    hierarchical_positions: bool | float,
) -> Any:
    """See `TextEncoder.resize`."""
    check_unconverted(backbone)
    alpha = ALPHA if hierarchical_positions is True else hierarchical_positions
    if alpha and not 0 < alpha < 1:
        raise ValueError(
            "hierarchical_positions must be True or a number between 0 and 1, got "
            f"{hierarchical_positions}."
        )
    config = backbone.get_config()
    if num_layers is not None:
        config.update(_cut_layers(backbone, config, num_layers))
    if max_sequence_length is not None:
        check_integer("max_sequence_length", max_sequence_length, at_least=1)
        config["max_sequence_length"] = max_sequence_length
    resized = type(backbone).from_config(config)
    values = {weight.path: weight for weight in backbone.weights}
    if alpha and (_TABLE not in values or max_sequence_length is None):
        raise ValueError(
            f"hierarchical_positions={hierarchical_positions} is for more positions in a table of "
            f"positions, got max_sequence_length={max_sequence_length} and "
            f"{with_article(backbone)}. Leave it out."
        )
    for weight in resized.weights:
        value = values[weight.path]
        if weight.path.endswith(_TABLE) and weight.shape != value.shape:
            value = _fill_positions(
                keras.ops.convert_to_numpy(keras.ops.cast(value, "float32")),
                weight.shape[0],
                backbone.position_offset,
                alpha,
            )
        # JAX would share the array, and a step of one of both models would delete it.
        weight.assign(keras.ops.copy(value))
    return resized


def check_unconverted(model: keras.Model) -> None:
    """Raises a ValueError if a copy of the weights would be no copy of the model."""
    for layer in model._flatten_layers():
        if layer.quantization_mode or getattr(layer, "lora_enabled", False):
            raise ValueError(
                f"Resize {with_article(model)} before `quantize` or `enable_lora`: the copy has "
                f"neither, and the layer {layer.path} has one of them."
            )


def _cut_layers(backbone: Any, config: Config, num_layers: int) -> Config:
    """The arguments of a constructor that change with the number of layers."""
    check_integer("num_layers", num_layers, at_least=1)
    if num_layers > backbone.num_layers:
        raise ValueError(
            f"num_layers must be at most {backbone.num_layers}, the layers of this "
            f"{type(backbone).__name__}, got {num_layers}."
        )
    if config.get("num_groups", 1) > 1 and num_layers < backbone.num_layers:
        raise ValueError(
            f"The layers of this {type(backbone).__name__} share the weights of "
            f"{backbone.num_groups} groups, so its first layers are no such model, got num_layers="
            f"{num_layers}. Leave it out."
        )
    by_layer = {
        name: value[:num_layers]
        for name, value in config.items()
        if isinstance(value, list) and len(value) == backbone.num_layers
    }
    return {**by_layer, "num_layers": num_layers}


def _fill_positions(table: Any, num_rows: int, offset: int, alpha: float) -> Any:
    """A table of `num_rows` rows. The first `offset` rows belong to no token."""
    first, rows = table[:offset], table[offset:]
    wanted, held = num_rows - offset, len(rows)
    if wanted <= held:
        return table[:num_rows]
    if not alpha or wanted > held**2:
        raise ValueError(
            f"The encoder has {held} positions, got max_sequence_length={wanted} and "
            f"hierarchical_positions={alpha}. Set the latter to True, or to a "
            f"number between 0 and 1, to make up to {held**2} positions of them."
        )
    u = (rows - alpha * rows[:1]) / (1 - alpha)
    places = np.arange(wanted)
    return np.concatenate([first, alpha * u[places // held] + (1 - alpha) * u[places % held]])
