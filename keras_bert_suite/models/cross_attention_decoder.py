"""A decoder that attends to the output of an encoder."""

from functools import partial
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers.attention.cached_attention import Source
from keras_bert_suite.models.decoder import Decoder, DecoderState, extend_cache, make_cache


class CrossAttentionDecoder(Decoder):
    """The decoder of a `BertEncoderDecoder` with a `MaskedLMHead`."""

    joins_source = False

    def __init__(self, backbone: Any, head: keras.layers.Layer) -> None:
        self.backbone = backbone
        self.encoder = backbone.encoder
        self.head = head

    def connect(self) -> tuple[dict[str, Tensor], Tensor]:
        """The backbone on whole targets, with a head on each of their tokens, P = T."""
        inputs = self.backbone.input
        return inputs, self.head(self.backbone(inputs)["decoder_sequence_output"])

    def start(self, source: dict[str, Tensor], length: int) -> DecoderState:
        """Encodes the sources, and computes their keys and values for each block of the decoder.

        Args, Returns: as for `Decoder.start`.
        """
        encoded = self.backbone.encode_sources(source)
        blocks = self.backbone.decoder.blocks
        mask = source["padding_mask"]
        projected = [block.cross_attention.project_source(encoded) for block in blocks]
        sources = [Source(keys, values, mask) for keys, values in projected]
        cache = make_cache(blocks, ops.shape(mask)[0], length)
        return DecoderState(sources, cache, ops.zeros((), dtype="int32"))

    def step(self, token_ids: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Args, Returns: as for `Decoder.step`."""
        decoder, num_read = self.backbone.decoder, state.num_read
        positions = ops.reshape(num_read, (1, 1))
        hidden = decoder.embeddings(token_ids[:, None], None, positions)
        seen = ops.arange(state.cache[0][0].shape[2])[None] <= num_read
        cache = []
        for block, source, before in zip(decoder.blocks, state.source, state.cache, strict=True):
            attention = block.self_attention
            query, key, value = attention.project(hidden)
            keys, values = extend_cache(before, key, value, num_read)
            cache.append((keys, values))
            attended = attention.merge(attention.attend(query, keys, values, seen))
            cross = partial(_attend_to_sources, block.cross_attention, source)
            hidden = block.finish(hidden, attended, cross)
        return self.head(hidden)[:, 0], DecoderState(state.source, cache, num_read + 1)


def _attend_to_sources(attention: Any, source: Source, hidden: Tensor) -> Tensor:
    """The cross-attention of the newest token of each target, float (B N, 1, H).

    The N targets of a source are the queries of one product, so that its keys are not copied.
    """
    width = hidden.shape[-1]
    hidden = ops.reshape(hidden, (ops.shape(source.keys)[0], -1, width))
    query = attention.project_queries(hidden)
    attended = attention.merge(attention.attend(query, source.keys, source.values, source.mask))
    return ops.reshape(attended, (-1, 1, width))
