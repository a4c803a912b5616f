"""Writes targets token by token after sources that are encoded once."""

from typing import Any

import keras
import keras_hub
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers import SelfAttention, TransformerBlock
from keras_bert_suite.layers.attention.cached_attention import Source, attend_to_source_and_targets
from keras_bert_suite.models import BertBackbone


def check_can_decode(backbone: keras_hub.models.Backbone) -> None:
    """Checks that a backbone has the layers which this module calls one by one."""
    blocks = getattr(backbone, "transformer_layers", [])
    is_plain = (
        type(backbone) is BertBackbone
        and all(type(block) is TransformerBlock for block in blocks)
        and all(type(block.self_attention) is SelfAttention for block in blocks)
    )
    if not is_plain or backbone.attention_pattern != "seq2seq":
        pattern = getattr(backbone, "attention_pattern", "no attention_pattern")
        raise ValueError(
            "A Seq2Seq needs a BertBackbone with attention_pattern='seq2seq', got a "
            f"{type(backbone).__name__} with {pattern!r}. Open the checkpoint of a BERT with "
            "Seq2Seq.from_preset, or pass attention_pattern='seq2seq' to a BertBackbone."
        )


def get_sampler(sampler: Any) -> keras_hub.samplers.Sampler:
    """The sampler of a name, a configuration or a sampler."""
    found = keras_hub.samplers.get(sampler)
    if not isinstance(found, keras_hub.samplers.Sampler):
        raise ValueError(
            f"sampler must be 'greedy', 'beam', 'top_k', 'top_p', 'random' or a sampler of "
            f"KerasHub, got {sampler!r}."
        )
    return found


def encode_sources(backbone: BertBackbone, packed: dict[str, Tensor]) -> list[Source]:
    """Computes the keys and values of a batch of sources, a `Source` for each layer.

    `packed` are int32 (B, L). The last token of a source, [SEP], is left out: it is the first token
    that the decoder reads.
    """
    padding_mask = packed["padding_mask"]
    hidden = backbone.embed(packed)
    is_last = ops.arange(ops.shape(padding_mask)[1]) == count_tokens(padding_mask)[:, None] - 1
    remembered = (padding_mask != 0) & ~is_last
    sources = []
    for block in backbone.transformer_layers:
        attention = block.self_attention
        query, key, value = attention.project(hidden)
        sources.append(Source(key, value, remembered))
        context = attention.attend(query, key, value, padding_mask)
        hidden = block.finish(hidden, attention.merge(context))
    return sources


def count_tokens(padding_mask: Tensor) -> Tensor:
    """int (B, L) -> int32 (B,), the number of tokens of each row."""
    return ops.sum(ops.cast(padding_mask, "int32"), axis=1)


def make_cache(backbone: BertBackbone, num_rows: Any, length: int) -> list[tuple[Tensor, Tensor]]:
    """Empty keys and values (B, heads, T, D) of the tokens of targets, for each layer."""
    head_dim = backbone.hidden_dim // backbone.num_heads
    shape = (num_rows, backbone.num_heads, length, head_dim)
    empty = ops.zeros(shape, dtype=backbone.compute_dtype)
    return [(empty, empty) for _ in backbone.transformer_layers]


def decode_token(
    backbone: BertBackbone,
    masked_lm: keras.layers.Layer,
    sources: list[Source],
    first_positions: Tensor,
    token_ids: Tensor,
    place: Tensor,
    cache: list[tuple[Tensor, Tensor]],
) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
    """Scores the token that follows a token of each target.

    Args:
        backbone: `BertBackbone`.
        masked_lm: `MaskedLMHead`.
        sources: list of `Source` of B sources.
        first_positions: int32 (B,), the position of the first token that the decoder reads.
        token_ids: int32 (B N,), the newest token of each of N targets of a source.
        place: int32 scalar, its place in the target, 0 for the last token of the source.
        cache: keys and values (B N, heads, T, D) of the targets, for each layer.

    Returns:
        tuple (float (B N, V), logits; the cache with the keys and values of the token).
    """
    of_sources = ops.reshape(token_ids, (ops.shape(first_positions)[0], -1))
    positions = ops.reshape(ops.zeros_like(of_sources) + first_positions[:, None], (-1, 1)) + place
    token_ids = token_ids[:, None]
    # The last token of the source belongs to the source.
    segment_ids = ops.zeros_like(token_ids) + ops.cast(place > 0, "int32")
    hidden = backbone.embeddings(token_ids, segment_ids, positions)
    seen = ops.arange(cache[0][0].shape[2]) <= place
    updated = []
    for block, source, (keys, values) in zip(
        backbone.transformer_layers, sources, cache, strict=True
    ):
        attention = block.self_attention
        query, key, value = attention.project(hidden)
        keys = ops.slice_update(keys, (0, 0, place, 0), key)
        values = ops.slice_update(values, (0, 0, place, 0), value)
        updated.append((keys, values))
        context = attend_to_source_and_targets(query, source, keys, values, seen)
        hidden = block.finish(hidden, attention.merge(context))
    logits = masked_lm(hidden, ops.zeros_like(token_ids))
    return logits[:, 0], updated


def force_padding(logits: Tensor, has_ended: Tensor, pad_token_id: int) -> Tensor:
    """float32 (B, V), logits by which a target that has ended continues with padding alone.

    A beam pays nothing for it.
    """
    is_padding = ops.arange(logits.shape[-1]) == pad_token_id
    forced = ops.where(is_padding, 0.0, -1e9)
    return ops.where(has_ended[:, None], forced[None, :], ops.cast(logits, "float32"))
