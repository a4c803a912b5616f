"""A BERT that writes: the mask of UniLM lets each token of a target see the tokens before it."""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.argument_checks import add_article, with_article
from keras_bert_suite.layers import SelfAttention, TransformerBlock
from keras_bert_suite.layers.attention.cached_attention import Source, attend_to_source_and_targets
from keras_bert_suite.layers.inner_call import call_inner
from keras_bert_suite.models.decoder import Decoder, DecoderState, extend_cache, make_cache
from keras_bert_suite.models.frame_inputs import CONDITION


class UnilmDecoder(Decoder):
    """Source and target in one row of an encoder whose `attention_pattern` is "seq2seq".

    The encoder is a `BertBackbone`, or a subclass with segments whose blocks have the attention of
    `SelfAttention`, such as a `RoFormerBackbone`. Another one is a ValueError.

    Source: Dong et al., 2019 (https://arxiv.org/abs/1905.03197).
    """

    joins_source = True
    #: The pattern that an encoder must have, and the task that has this decoder.
    attention_pattern = "seq2seq"
    task = "Seq2Seq"

    def __init__(self, backbone: Any, head: keras.layers.Layer) -> None:
        self._check_can_decode(backbone)
        self.encoder = backbone
        self.head = head

    def connect(self) -> tuple[dict[str, Tensor], Tensor]:
        """The encoder on whole pairs, with a head at `mask_positions`, int32 (B, P)."""
        positions = keras.Input(shape=(None,), dtype="int32", name="mask_positions")
        encoded = self.encoder(self.encoder.input)["sequence_output"]
        inputs = {**self.encoder.input, "mask_positions": positions}
        return inputs, self.head(encoded, positions)

    def start(self, source: dict[str, Tensor], length: int) -> DecoderState:
        """Computes the keys and values of the sources.

        The last token of a source, [SEP], is left out: it is the first token that the decoder
        reads. Args, Returns: as for `Decoder.start`.
        """
        padding_mask = source["padding_mask"]
        given = {CONDITION: source[CONDITION]} if CONDITION in source else {}
        hidden = self.encoder.embed(source)
        last = ops.sum(ops.cast(padding_mask, "int32"), axis=1) - 1
        is_last = ops.arange(ops.shape(padding_mask)[1]) == last[:, None]
        remembered = (padding_mask != 0) & ~is_last
        blocks = self.encoder.list_calls()
        visible = self.show_source(padding_mask)
        sources = []
        for block in blocks:
            attention = block.self_attention
            query, key, value = attention.project(hidden)
            query = attention.place_queries(query, None)
            key, value = attention.place_keys(key, value, None)
            sources.append(Source(key, value, remembered))
            context = attention.attend(query, key, value, visible)
            hidden = block.finish(hidden, attention.merge(context), **given)
        cache = make_cache(blocks, ops.shape(padding_mask)[0], length)
        return DecoderState((sources, last, *given.values()), cache, ops.zeros((), dtype="int32"))

    def step(self, token_ids: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Args, Returns: as for `Decoder.step`."""
        (sources, last, *given), num_read = state.source, state.num_read
        of_sources = ops.reshape(token_ids, (ops.shape(last)[0], -1))
        positions = ops.reshape(ops.zeros_like(of_sources) + last[:, None], (-1, 1)) + num_read
        token_ids = token_ids[:, None]
        segment_ids = self.find_segments(token_ids, num_read)
        rows = positions + self.encoder.position_offset  # Of the table of positions.
        condition = {"condition": repeat_rows(given[0], of_sources)} if given else {}
        embeddings = self.encoder.embeddings
        hidden = call_inner(
            embeddings, token_ids, segment_ids=segment_ids, positions=rows, **condition
        )
        seen = ops.arange(state.cache[0][0].shape[2]) <= num_read
        cache = []
        for block, source, before in zip(
            self.encoder.list_calls(), sources, state.cache, strict=True
        ):
            attention = block.self_attention
            query, key, value = attention.project(hidden)
            query = attention.place_queries(query, positions)
            key, value = attention.place_keys(key, value, positions)
            keys, values = extend_cache(before, key, value, num_read)
            cache.append((keys, values))
            context = attend_to_source_and_targets(query, source, keys, values, seen)
            hidden = block.finish(hidden, attention.merge(context), **condition)
        logits = call_inner(self.head, hidden)
        return logits[:, 0], DecoderState(state.source, cache, num_read + 1)

    def show_source(self, padding_mask: Tensor) -> Tensor:
        """Which tokens of a source its tokens attend to: all of them, from int (B, L)."""
        return padding_mask

    def find_segments(self, token_ids: Tensor, num_read: Tensor) -> Tensor | None:
        """int32 (B N, 1), the segment of the newest tokens; None for 0."""
        # The last token of the source belongs to the source.
        return ops.zeros_like(token_ids) + ops.cast(num_read > 0, "int32")

    def _check_can_decode(self, backbone: Any) -> None:
        """Checks that a backbone computes the same as this module token by token."""
        pattern, wanted = backbone.attention_pattern, self.attention_pattern
        is_plain = all(
            type(block).call is TransformerBlock.call
            and type(block.self_attention).call is SelfAttention.call
            for block in backbone.transformer_layers
        )
        if not is_plain:
            hashing = " with hashing" if getattr(backbone, "hashing", None) else ""
            raise ValueError(
                f"A {self.task} writes token by token with the attention of a BERT, and that of "
                f"{with_article(backbone)}{hashing} is another. Open the checkpoint of a BERT, "
                f"RoBERTa, ALBERT or ELECTRA with {self.task}.from_preset. An XLNet that was "
                "trained from left to right scores texts by "
                "keras_bert_suite.models.predict_segments."
            )
        if pattern != wanted:
            raise ValueError(
                f"{add_article(self.task, 'A')} needs a BertBackbone with "
                f"attention_pattern={wanted!r}, or a subclass with the same attention, got "
                f"{with_article(backbone)} with {pattern!r}. Open the checkpoint of a BERT with "
                f"{self.task}.from_preset, or make a copy: "
                f"keras_bert_suite.change_pattern(backbone, {wanted!r})."
            )


def repeat_rows(vectors: Tensor, of_sources: Tensor) -> Tensor:
    """The vectors (B, C) of sources for their targets, (B N, C); `of_sources` is any (B, N)."""
    zeros = ops.cast(ops.zeros_like(of_sources), vectors.dtype)[:, :, None]
    return ops.reshape(vectors[:, None] + zeros, (-1, vectors.shape[1]))
