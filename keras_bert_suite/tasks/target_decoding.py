"""Writes targets token by token, by a decoder and a sampler."""

from typing import Any

import keras
import keras_hub
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.models.decoder import Decoder


def find_decoder(backbone: keras_hub.models.Backbone, head: keras.layers.Layer) -> Decoder:
    """The `Decoder` of a backbone with a head on its token embedding."""
    if not hasattr(backbone, "make_decoder"):
        raise ValueError(
            "A Seq2Seq needs a BertBackbone with attention_pattern='seq2seq', or another backbone "
            f"with `make_decoder`, got a {type(backbone).__name__}."
        )
    return backbone.make_decoder(head)


def get_sampler(sampler: Any) -> keras_hub.samplers.Sampler:
    """The sampler of a name, a configuration or a sampler."""
    found = keras_hub.samplers.get(sampler)
    if not isinstance(found, keras_hub.samplers.Sampler):
        raise ValueError(
            f"sampler must be 'greedy', 'beam', 'top_k', 'top_p', 'random' or a sampler of "
            f"KerasHub, got {sampler!r}."
        )
    return found


def write_targets(
    task: Any, source: dict[str, Tensor], targets: Tensor, stop_token_id: int
) -> Tensor:
    """Writes the targets of a batch of sources.

    Args:
        task: `Seq2Seq`.
        source: packed arrays int32 (B, L).
        targets: int32 (B, 1 + T), whose first column is the first token that the decoder reads.
        stop_token_id: int, the token that ends a target.

    Returns:
        int32 (B, 1 + T), `targets` filled in.
    """
    length = targets.shape[1] - 1
    state = task.decoder.start(source, length)
    is_first = ops.arange(1 + length) == 0
    tokenizer = task.preprocessor.tokenizer
    pad_token_id, num_tokens = tokenizer.pad_token_id, tokenizer.vocabulary_size()

    def score_next(targets, cache, index):
        newest = ops.take(targets, index - 1, axis=1)
        before = state._replace(cache=cache, num_read=index - 1)
        logits, after = task.decoder.step(newest, before)
        if logits.shape[-1] > num_tokens:  # Some embeddings have more rows than there are tokens.
            is_token = ops.arange(logits.shape[-1]) < num_tokens
            logits = ops.where(is_token, ops.cast(logits, "float32"), -1e9)
        has_ended = ops.any((targets == stop_token_id) & ~is_first, axis=1)
        return force_padding(logits, has_ended, pad_token_id), None, after.cache

    return task.sampler(
        next=score_next,
        prompt=targets,
        cache=state.cache,
        index=1,
        mask=ops.zeros_like(targets) + ops.cast(is_first, "int32"),
        stop_token_ids=(stop_token_id,),
        model=task,
    )


def force_padding(logits: Tensor, has_ended: Tensor, pad_token_id: int) -> Tensor:
    """float32 (B, V), logits by which a target that has ended continues with padding alone.

    A beam pays nothing for it.
    """
    is_padding = ops.arange(logits.shape[-1]) == pad_token_id
    forced = ops.where(is_padding, 0.0, -1e9)
    return ops.where(has_ended[:, None], forced[None, :], ops.cast(logits, "float32"))
