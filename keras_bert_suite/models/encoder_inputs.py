"""Copies an encoder for other inputs: other tokens, frames in their place, or a condition."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_suite.argument_checks import check_integer, with_article
from keras_bert_suite.layers import NormCondition
from keras_bert_suite.models.resized_encoder import check_unconverted
from keras_bert_suite.models.weight_copies import copy_all, copy_known, list_by_path


def resize_vocabulary(backbone: Any, vocabulary_size: int, seed: int | None) -> Any:
    """See `TextEncoder.resize_vocabulary`."""
    check_integer("vocabulary_size", vocabulary_size)
    check_table(backbone)
    if vocabulary_size < backbone.vocabulary_size:
        raise ValueError(
            f"vocabulary_size must be at least that of this encoder, {backbone.vocabulary_size}, "
            f"got {vocabulary_size}. For fewer tokens, say which: `task.keep_tokens(tokens)`, or "
            "`take_tokens(token_ids)` of an encoder."
        )
    check_unconverted(backbone)
    old = keras.ops.convert_to_tensor(backbone.token_embedding.embeddings)
    shape = (vocabulary_size - old.shape[0], *old.shape[1:])
    draw = keras.initializers.TruncatedNormal(stddev=backbone.initializer_range, seed=seed)
    rows = keras.ops.cast(draw(shape), old.dtype)
    kept = [*range(old.shape[0]), *[None] * shape[0]]
    copy = _copy_with_table(backbone, keras.ops.concatenate([old, rows]), kept)
    if shape[0]:
        copy.mark_resized("resize_vocabulary")
    return copy


def take_tokens(backbone: Any, token_ids: Sequence[int]) -> Any:
    """See `TextEncoder.take_tokens`."""
    check_table(backbone)
    check_unconverted(backbone)
    old = keras.ops.convert_to_tensor(backbone.token_embedding.embeddings)
    rows = keras.ops.take(old, np.array(token_ids, "int32"), axis=0)
    copy = _copy_with_table(backbone, rows, token_ids)
    if [*token_ids] != [*range(old.shape[0])]:
        copy.mark_resized("take_tokens")
    return copy


def copy_for_frames(backbone: Any, frame_dim: int | None) -> Any:
    """See `TextEncoder.for_frames`."""
    if backbone.frame_dim is not None:
        raise ValueError(
            f"This {type(backbone).__name__} reads frames of width {backbone.frame_dim}. Copy an "
            "encoder of tokens, or build a new one with frame_dim."
        )
    check_table(backbone)
    check_unconverted(backbone)
    config = backbone.get_config()
    if "frame_dim" not in config:
        raise ValueError(
            f"{with_article(backbone, 'A')} reads tokens only. Take an encoder with the argument "
            "frame_dim, such as BertBackbone."
        )
    if frame_dim is None:
        frame_dim = backbone.token_embedding.output_dim
    config["frame_dim"] = frame_dim
    if not hasattr(backbone, "encode_sources"):  # The decoder of a BART writes tokens.
        config["vocabulary_size"] = None
    for name in ("part_embeddings", "embedding_rank"):
        if name in config:
            config[name] = None
    copy = type(backbone).from_config(config)
    copy_known(copy, list_by_path(backbone))
    copy.mark_resized("for_frames")
    return copy


def add_condition(backbone: Any, norm_condition: NormCondition) -> Any:
    """See `TextEncoder.add_condition`."""
    check_unconverted(backbone)
    config = backbone.get_config()
    if config.get("norm_condition") is not None:
        raise ValueError(
            f"This {type(backbone).__name__} has a condition, {backbone.norm_condition}."
        )
    if "norm_condition" not in config:
        raise ValueError(
            f"{with_article(backbone, 'A')} takes no norm_condition. Use an encoder with this "
            "argument, such as BertBackbone."
        )
    if backbone.adapters:
        raise ValueError(
            f"The adapters {', '.join(backbone.adapters)} of this {type(backbone).__name__} would "
            "leave the matrices of a condition at 0. Call `add_condition` before `adapt`, which "
            "then trains them, too."
        )
    copy = type(backbone).from_config({**config, "norm_condition": norm_condition})
    values = list_by_path(backbone)
    copy_known(copy, values)
    # An adapter trains and saves what no checkpoint has.
    made = {weight.path for weight in copy.weights} - {*values}
    copy.__dict__["new_paths"] = backbone.new_paths | made
    return copy


def check_table(backbone: Any) -> None:
    """Raises a ValueError if an encoder has no table with a row for each token."""
    if backbone.token_embedding is not None:
        return
    if backbone.frame_dim is not None:
        raise ValueError(
            f"This {type(backbone).__name__} reads frames, so there is no table with a row for "
            "each token. Build an encoder of tokens for it."
        )
    raise ValueError(
        f"This {type(backbone).__name__} reads the characters of its tokens, so there is no "
        "table with a row for each. It reads new tokens as it is."
    )


def _copy_with_table(backbone: Any, embeddings: Any, token_ids: Sequence[int | None]) -> Any:
    """A copy of an encoder with other embeddings of tokens, float (V, H).

    `token_ids` are the V tokens of the encoder that they belong to, None for new tokens.
    """
    config = {**backbone.get_config(), "vocabulary_size": int(embeddings.shape[0])}
    if config.get("part_embeddings") is not None:
        if not hasattr(backbone.part_embeddings, "take_tokens"):
            raise ValueError(
                f"part_embeddings, {with_article(backbone.part_embeddings)}, has no method "
                "take_tokens(token_ids), so the copy would not know its tokens. Add it: it "
                "returns a layer for these tokens, with None for new ones."
            )
        config["part_embeddings"] = backbone.part_embeddings.take_tokens(token_ids)
    copy = type(backbone).from_config(config)
    values = list_by_path(backbone)
    values[copy.token_embedding.embeddings.path] = embeddings
    copy_all(copy, values)
    return copy
