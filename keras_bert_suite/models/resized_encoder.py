"""Copies an encoder with some of its layers, or with another number of positions."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_suite.annotations import Config
from keras_bert_suite.argument_checks import check_integer, check_list, with_article
from keras_bert_suite.models.weight_copies import copy_all, copy_weight, list_by_path

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
        config.update(_cut_layers(backbone, config, _list_first(backbone, num_layers)))
    if max_sequence_length is not None:
        check_integer("max_sequence_length", max_sequence_length, at_least=1)
        config["max_sequence_length"] = max_sequence_length
    resized = type(backbone).from_config(config)
    values = list_by_path(backbone)
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
            resized.mark_resized("resize")
        copy_weight(weight, value)
    return resized


def check_unconverted(model: keras.Model) -> None:
    """Raises a ValueError if a copy of the weights would be no copy of the model."""
    for layer in model._flatten_layers():
        if layer.quantization_mode or getattr(layer, "lora_enabled", False):
            raise ValueError(
                f"Resize {with_article(model)} before `quantize` or `enable_lora`: the copy has "
                f"neither, and the layer {layer.path} has one of them."
            )


def keep_layers(backbone: Any, layers: Sequence[int]) -> Any:
    """See `TextEncoder.keep_layers`."""
    check_unconverted(backbone)
    _check_has_layers(backbone)
    check_list("layers", layers, "integers such as [0, 2, 4]")
    layers = list(layers)
    for layer in layers:
        check_integer("a layer", layer)
    if not layers or layers != sorted(set(layers)) or layers[-1] >= backbone.num_layers:
        raise ValueError(
            f"keep_layers takes some of the layers 0 to {backbone.num_layers - 1} of this "
            f"{type(backbone).__name__}, each once and in their order, got {layers}."
        )
    config = backbone.get_config()
    arguments = {**config, **_cut_layers(backbone, config, layers)}
    blocks, calls = backbone.transformer_layers, backbone.list_calls()
    is_shared = config.get("num_groups") is not None
    if not is_shared and (list(blocks) != list(calls) or len(blocks) != backbone.num_layers):
        raise ValueError(
            f"The layers of {with_article(backbone)} are not one after the other, so keep_layers "
            "cannot choose among them. Keep its first ones, by num_layers of `resize`."
        )
    copy = type(backbone).from_config(arguments)
    values = list_by_path(backbone)
    if not is_shared:
        for block, i in zip(copy.transformer_layers, layers, strict=True):
            if len(block.weights) != len(blocks[i].weights):
                raise ValueError(
                    f"The first layer of this {type(backbone).__name__} has other weights than "
                    f"layer {i}, which cannot take its place, got {layers}. Keep layer 0, too."
                )
            pairs = zip(block.weights, blocks[i].weights, strict=True)
            values.update((new.path, old) for new, old in pairs)
    copy_all(copy, values)
    return copy


def _check_has_layers(backbone: Any) -> None:
    if backbone.num_layers is None:
        raise ValueError(
            f"{with_article(backbone, 'A')} has no layers to choose from. To make it smaller, keep "
            "fewer tokens: `keep_tokens` of its task."
        )


def _list_first(backbone: Any, num_layers: int) -> list[int]:
    check_integer("num_layers", num_layers, at_least=1)
    _check_has_layers(backbone)
    if num_layers > backbone.num_layers:
        raise ValueError(
            f"num_layers must be at most {backbone.num_layers}, the layers of this "
            f"{type(backbone).__name__}, got {num_layers}."
        )
    return list(range(num_layers))


def _cut_layers(backbone: Any, config: Config, layers: Sequence[int]) -> Config:
    """The arguments of a constructor that change if some layers are kept alone."""
    if backbone.adapters and len(layers) < backbone.num_layers:
        raise ValueError(
            f"The adapters {', '.join(backbone.adapters)} of this {type(backbone).__name__} are "
            f"for its {backbone.num_layers} layers, got {len(layers)} layers to keep. Choose the "
            "layers before `adapt`; or copy a task without them by `merge_adapter`."
        )
    if config.get("num_groups", 1) > 1 and len(layers) < backbone.num_layers:
        raise ValueError(
            f"The layers of this {type(backbone).__name__} share the weights of "
            f"{backbone.num_groups} groups, so some of its layers are no such model, got "
            f"{len(layers)} layers. Keep all."
        )
    by_layer = {
        name: [value[i] for i in layers]
        for name, value in config.items()
        if isinstance(value, list) and len(value) == backbone.num_layers
    }
    return {**by_layer, "num_layers": len(layers)}


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
