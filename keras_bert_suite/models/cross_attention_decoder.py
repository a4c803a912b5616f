"""A decoder that attends to an encoder: its layers on whole targets, and token by token."""

from functools import partial
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Shape, Tensor
from keras_bert_suite.layers.attention.attention_patterns import mask_by_ranks, rank_by_place
from keras_bert_suite.layers.attention.cached_attention import Source
from keras_bert_suite.layers.inner_call import call_inner
from keras_bert_suite.models.decoder import Decoder, DecoderState, extend_cache, make_cache
from keras_bert_suite.models.encoder import take_states


class DecoderLayers(keras.layers.Layer):
    """The embeddings and blocks of a decoder, on whole targets.

    Args:
        embeddings: layer from token ids to (B, T, H), which takes `positions` that count from 0.
        blocks: list of `TransformerBlock` with cross-attention.
        final_norm: norm of the output of the last block; None for no norm.
    """

    def __init__(
        self,
        embeddings: keras.layers.Layer,
        blocks: list[keras.layers.Layer],
        final_norm: keras.layers.Layer | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.embeddings = embeddings
        self.blocks = blocks
        self.final_norm = final_norm

    def build(self, token_ids_shape: Shape, *_: Shape) -> None:
        hidden_shape = (*token_ids_shape, self.embeddings.hidden_dim)
        shapes = [(self.embeddings, token_ids_shape)]
        shapes += [(layer, hidden_shape) for layer in (*self.blocks, self.final_norm) if layer]
        for layer, shape in shapes:
            if not layer.built:  # Layers of another model are built.
                layer.build(shape)

    def call(
        self,
        token_ids: Tensor,
        padding_mask: Tensor,
        encoder_sequence: Tensor,
        encoder_padding_mask: Tensor,
        positions: Tensor | None = None,
        read_positions: Tensor | None = None,
        training: bool | None = None,
    ) -> list[Tensor]:
        """The embeddings and the output of each block.

        Args:
            token_ids, padding_mask: int32 (B, T).
            encoder_sequence: float (B, L, H).
            encoder_padding_mask: int32 (B, L).
            positions: int32 (B, T), the positions of the tokens; None counts them from 0.
            read_positions: int32 (B, Q), the tokens that the last block computes, each from its
                keys and values of all tokens before it; None for all.
            training: bool, whether dropout is active.

        Returns:
            list of float (B, T, H), the last one (B, Q, H) with `read_positions`. It is normalised
            by `final_norm`.
        """
        states = [self.embeddings(token_ids, positions=positions, training=training)]
        is_token = (padding_mask != 0)[:, None, :]
        seen = mask_by_ranks(rank_by_place(token_ids)) & is_token
        arguments = {
            "encoder_sequence": encoder_sequence,
            "encoder_padding_mask": encoder_padding_mask,
            "training": training,
        }
        for block in self.blocks:
            hidden = states[-1]
            if read_positions is not None and block is self.blocks[-1]:
                arguments["source"] = block.prepare(hidden)
                hidden = take_states(hidden, read_positions)
                before = (
                    ops.arange(ops.shape(token_ids)[1])[None, None] <= read_positions[:, :, None]
                )
                seen = before & is_token
            states.append(block(hidden, seen, **arguments))
        return [*states[:-1], self.finish(states[-1])]

    def finish(self, hidden: Tensor) -> Tensor:
        """Applies what follows the last block of the decoder: float (B, T, H) -> the same."""
        return hidden if self.final_norm is None else self.final_norm(hidden)

    def compute_output_spec(
        self,
        token_ids: Tensor,
        padding_mask: Tensor,
        encoder_sequence: Tensor,
        *_: Tensor,
        read_positions: Tensor | None = None,
    ) -> list[keras.KerasTensor]:
        shapes = [token_ids.shape] * (1 + len(self.blocks))
        if read_positions is not None:
            shapes[-1] = read_positions.shape
        width = self.embeddings.hidden_dim
        return [keras.KerasTensor((*shape, width), dtype=self.compute_dtype) for shape in shapes]


class CrossAttentionDecoder(Decoder):
    """The decoder of a backbone with `DecoderLayers`, with a `MaskedLMHead`.

    Args:
        backbone: backbone whose `decoder` is `DecoderLayers`. It has `encode_sources`, from the
            packed arrays of sources to float (B, L, H), and `connect_pairs`.
        encoder: functional model, as for `Decoder`.
        head: layer from float (B, T, H) to logits (B, T, V).
        starts_with_end: bool, as for `Decoder`.
    """

    joins_source = False

    def __init__(
        self,
        backbone: Any,
        encoder: keras.Model,
        head: keras.layers.Layer,
        starts_with_end: bool = False,
    ) -> None:
        self.backbone = backbone
        self.encoder = encoder
        self.head = head
        self.starts_with_end = starts_with_end

    def connect(self) -> tuple[dict[str, Tensor], Tensor]:
        """The backbone on whole targets, with a head on each of their tokens, P = T."""
        inputs, hidden = self.backbone.connect_pairs()
        return inputs, self.head(hidden)

    def connect_parts(self) -> tuple[dict[str, Tensor], Tensor]:
        """The same, with the positions of the tokens that the decoder reads."""
        inputs, _ = self.backbone.connect_pairs()
        positions = keras.Input(shape=(None,), dtype="int32", name="decoder_positions")
        encoded = self.backbone.encode_sources({n: inputs[n] for n in self.encoder.input})
        target = [inputs[name] for name in ("decoder_token_ids", "decoder_padding_mask")]
        states = self.backbone.decoder(*target, encoded, inputs["padding_mask"], positions)
        return {**inputs, "decoder_positions": positions}, self.head(states[-1])

    def start(self, source: dict[str, Tensor], length: int) -> DecoderState:
        """Encodes the sources, and computes their keys and values for each block of the decoder."""
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
        hidden = call_inner(decoder.embeddings, token_ids[:, None], positions=positions)
        seen = ops.arange(state.cache[0][0].shape[2])[None] <= num_read
        cache = []
        for block, source, before in zip(decoder.blocks, state.source, state.cache, strict=True):
            attention = block.self_attention
            query, key, value = attention.project(block.prepare(hidden))
            keys, values = extend_cache(before, key, value, num_read)
            cache.append((keys, values))
            attended = attention.merge(attention.attend(query, keys, values, seen))
            cross = partial(_attend_to_sources, block.cross_attention, source)
            hidden = block.finish(hidden, attended, cross)
        logits = call_inner(self.head, decoder.finish(hidden))
        return logits[:, 0], DecoderState(state.source, cache, num_read + 1)


def _attend_to_sources(attention: Any, source: Source, hidden: Tensor) -> Tensor:
    """The cross-attention of the newest token of each target, float (B N, 1, H).

    The N targets of a source are the queries of one product, so that its keys are not copied.
    """
    width = hidden.shape[-1]
    if hidden.shape[0] is not None and hidden.shape[0] == source.keys.shape[0]:
        query = attention.project_queries(hidden)
        return attention.merge(attention.attend(query, source.keys, source.values, source.mask))
    hidden = ops.reshape(hidden, (ops.shape(source.keys)[0], -1, width))
    query = attention.project_queries(hidden)
    attended = attention.merge(attention.attend(query, source.keys, source.values, source.mask))
    return ops.reshape(attended, (-1, 1, width))
