"""Copies an encoder without some of its heads and feed-forward units, or with factors of a table.

A head is some columns of the matrices of queries, keys and values, and as many rows of the matrix
after them. A unit is a column of one matrix of the feed-forward network, and a row of the other.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_suite.annotations import Config
from keras_bert_suite.argument_checks import check_integer, check_list, with_article
from keras_bert_suite.models.encoder_inputs import check_table
from keras_bert_suite.models.resized_encoder import check_unconverted
from keras_bert_suite.models.weight_copies import copy_weight, list_by_path

#: The arguments of a backbone for the numbers of parts of each layer.
HEADS, UNITS = "heads_by_layer", "intermediate_by_layer"

#: The weights of a layer that have such parts, each with their axis.
_WEIGHTS = {
    HEADS: (
        *((f"self_attention/{name}/kernel", 1) for name in ("query", "key", "value")),
        *((f"self_attention/{name}/bias", 0) for name in ("query", "key", "value")),
        ("self_attention/output_projection/kernel", 0),
    ),
    UNITS: (("intermediate/kernel", 1), ("intermediate/bias", 0), ("feedforward_output/kernel", 0)),
}


def keep_heads(backbone: Any, heads: Sequence[Sequence[int]]) -> Any:
    """See `TextEncoder.keep_heads`."""
    check_prunable(backbone, HEADS)
    heads = _check_parts("heads", heads, count_heads(backbone))
    width = backbone.hidden_dim // backbone.num_heads
    counts = [len(kept) for kept in heads]
    is_whole = counts == [backbone.num_heads] * len(counts)
    places = [(np.array(kept)[:, None] * width + np.arange(width)).ravel() for kept in heads]
    return _take_parts(backbone, HEADS, places, {"heads_by_layer": None if is_whole else counts})


def keep_units(backbone: Any, units: Sequence[Sequence[int]]) -> Any:
    """See `TextEncoder.keep_units`."""
    check_prunable(backbone, UNITS)
    units = _check_parts("units", units, count_units(backbone))
    counts = [len(kept) for kept in units]
    sizes = {
        "intermediate_dim": max(counts),
        "intermediate_by_layer": None if len(set(counts)) == 1 else counts,
    }
    return _take_parts(backbone, UNITS, [np.array(kept) for kept in units], sizes)


def count_heads(backbone: Any) -> list[int]:
    """The heads of each layer."""
    return backbone.heads_by_layer or [backbone.num_heads] * backbone.num_layers


def count_units(backbone: Any) -> list[int]:
    """The feed-forward units of each layer."""
    return backbone.intermediate_by_layer or [backbone.intermediate_dim] * backbone.num_layers


def read_sizes(name: str, sizes: Any, num_layers: int, largest: int) -> list[int] | None:
    """A list with a size for each layer, at most `largest`; None for the same in each."""
    if sizes is None:
        return None
    check_list(name, sizes, "integers, one for each layer")
    sizes = list(sizes)
    for size in sizes:
        check_integer(f"each of {name}", size, at_least=1)
    if len(sizes) != num_layers or max(sizes) > largest:
        raise ValueError(
            f"{name} must have {num_layers} integers, one for each layer, of at most {largest}, "
            f"got {sizes}."
        )
    return [int(size) for size in sizes]


def list_sizes(backbone: Any, index: int) -> dict[str, int]:
    """The arguments of `TransformerBlock` that are sizes of layer `index`."""
    sizes = {"num_heads": backbone.num_heads, "intermediate_dim": backbone.intermediate_dim}
    if backbone.heads_by_layer is not None:
        sizes["num_heads"] = backbone.heads_by_layer[index]
        sizes["head_dim"] = backbone.hidden_dim // backbone.num_heads
    if backbone.intermediate_by_layer is not None:
        sizes["intermediate_dim"] = backbone.intermediate_by_layer[index]
    return sizes


def check_layers_differ(backbone: Any) -> None:
    """Raises a ValueError if there are sizes by layer that the layers do not take."""
    for name in (HEADS, UNITS):
        sizes = getattr(backbone, name)
        if sizes is not None and not takes_sizes(backbone, name):
            raise ValueError(
                f"The layers of this {type(backbone).__name__} are of one size, got "
                f"{name}={sizes}. Leave it out."
            )


def takes_sizes(backbone: Any, argument: str) -> bool:
    """Whether the layers of an encoder take sizes of their own; arguments as `check_prunable`."""
    is_hashed = argument == HEADS and getattr(backbone, "hashing", None) is not None
    return argument in getattr(backbone, "sizes_by_layer", ()) and not is_hashed


def check_prunable(backbone: Any, argument: str) -> None:
    """Raises a ValueError if an encoder takes no sizes by layer, or holds more than its weights.

    Args:
        backbone: `TextEncoder`.
        argument: str, "heads_by_layer" or "intermediate_by_layer".
    """
    parts = "heads" if argument == HEADS else "feed-forward units"
    if not takes_sizes(backbone, argument):
        raise ValueError(
            f"The {parts} of {with_article(backbone)} cannot be removed. Layers of BERT, RoBERTa, "
            "DistilBERT, ELECTRA, ERNIE, NEZHA and RoFormer can lose them."
        )
    check_unconverted(backbone)
    _check_unadapted(backbone)


def factorize_embeddings(backbone: Any, rank: int) -> Any:
    """See `TextEncoder.factorize_embeddings`."""
    check_table(backbone)
    _check_factorizable(backbone)
    table = _read(backbone.token_embedding.embeddings)
    check_integer("rank", rank, at_least=1)
    if rank > min(table.shape):
        raise ValueError(
            f"rank must be at most {min(table.shape)}, the smaller size of the table "
            f"{table.shape}, got {rank}."
        )
    left, values, right = np.linalg.svd(table, full_matrices=False)
    # Both factors have a root of the singular values, so that a step changes them alike.
    roots = np.sqrt(values[:rank])
    copy = type(backbone).from_config({**backbone.get_config(), "embedding_rank": int(rank)})
    _copy_equal(backbone, copy)
    copy.token_embedding.embeddings.assign(left[:, :rank] * roots)
    copy.token_embedding.factor.assign(roots[:, None] * right[:rank])
    return copy


def _check_factorizable(backbone: Any) -> None:
    if "embedding_rank" not in backbone.get_config():
        raise ValueError(
            f"The table of {with_article(backbone)} cannot be factorised. Take an encoder such as "
            "BertBackbone."
        )
    if backbone.embedding_rank is not None:
        raise ValueError(
            f"The table has the rank {backbone.embedding_rank} already. Call `to_full_size()` "
            "first, for factors of another rank."
        )
    check_unconverted(backbone)
    _check_unadapted(backbone)


def to_full_size(backbone: Any) -> Any:
    """See `TextEncoder.to_full_size`."""
    check_unconverted(backbone)
    _check_unadapted(backbone)
    config = backbone.get_config()
    reduced = [name for name in (HEADS, UNITS, "embedding_rank") if name in config]
    whole = type(backbone).from_config({**config, **dict.fromkeys(reduced)})
    _copy_equal(backbone, whole)
    for kind in _WEIGHTS:
        if config.get(kind) is not None:
            layers = range(backbone.num_layers)
            for old, new, axis, _ in _pair_weights(backbone, whole, kind, layers):
                held = _read(old)
                room = [(0, 0)] * held.ndim
                room[axis] = (0, new.shape[axis] - held.shape[axis])
                new.assign(np.pad(held, room))
    if config.get("embedding_rank") is not None:
        factors = backbone.token_embedding
        whole.token_embedding.embeddings.assign(_read(factors.embeddings) @ _read(factors.factor))
    return whole


def _check_unadapted(backbone: Any) -> None:
    if backbone.adapters:
        raise ValueError(
            f"The adapters {', '.join(backbone.adapters)} of this {type(backbone).__name__} are "
            "for its matrices as they are. Copy it without them first: `merge_adapter`."
        )


def _check_parts(name: str, parts: Any, counts: list[int]) -> list[list[int]]:
    """The parts that stay of each layer, lists of int in order."""
    check_list(name, parts, "a list of integers for each layer")
    parts = [sorted(map(int, kept)) for kept in parts]
    for kept, count in zip(parts, counts, strict=False):
        if not kept or len({*kept}) < len(kept) or kept[0] < 0 or kept[-1] >= count:
            raise ValueError(
                f"A layer keeps some of its {count} {name}, 0 to {count - 1}, each once and at "
                f"least one, got {kept}. To remove a whole layer, call `keep_layers`."
            )
    if len(parts) != len(counts):
        raise ValueError(f"{name} must have a list for each of {len(counts)} layers, got {parts}.")
    return parts


def _take_parts(backbone: Any, kind: Any, places: list[Any], sizes: Config) -> Any:
    copy = type(backbone).from_config({**backbone.get_config(), **sizes})
    _copy_equal(backbone, copy)
    for old, new, axis, kept in _pair_weights(backbone, copy, kind, places):
        new.assign(np.take(_read(old), kept, axis=axis))
    return copy


def _pair_weights(old: Any, new: Any, kind: Any, places: Any) -> Iterator[tuple[Any, ...]]:
    """(weight, its copy, axis of the parts, place) for each weight of each layer."""
    own, copied = list_by_path(old), list_by_path(new)
    for block, place in zip(old.transformer_layers, places, strict=True):
        for name, axis in _WEIGHTS[kind]:
            path = f"{block.path}/{name}"
            if path in own:  # A RoFormerV2 has no biases.
                yield own[path], copied[path], axis, place


def _copy_equal(old: Any, new: Any) -> None:
    """Copies the weights that have the same path and shape."""
    values = list_by_path(old)
    for weight in new.weights:
        value = values.get(weight.path)
        if value is not None and value.shape == weight.shape:
            copy_weight(weight, value)


def _read(weight: Any) -> np.ndarray:
    return keras.ops.convert_to_numpy(keras.ops.cast(weight, "float32"))
