"""The demands of a `Seq2Seq` or `CausalLM` on its backbone: a model that writes token by token."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.argument_checks import with_article


class DecoderState(NamedTuple):
    """The memory of a decoder between two tokens.

    Attributes:
        source: tensors of B sources. No step changes them, and the targets of a source share them.
        cache: tensors (B N, ...) of N targets of each source. A sampler may reorder their rows.
        num_read: int32 scalar, how many tokens of each target were read.
    """

    source: Any
    cache: Any
    num_read: Tensor


class Decoder(ABC):
    """Reads a batch of sources once, and then a token of each target at a time.

    A backbone has a method `make_decoder(head)` that returns its decoder. With this object a new
    kind of decoder brings all that `Seq2Seq` needs of it. The method `make_causal_decoder(head)` is
    for a `CausalLM`: the source is the text that is continued, and `joins_source` is True.

    Attributes:
        encoder: functional model whose inputs are the packed arrays of the sources.
        joins_source: bool, whether a target stands in the row of its source. Then the first token
            that the decoder reads is the last token of the source. Else it is the token that begins
            a row.
        starts_with_end: bool, whether the first token that the decoder reads is the one that ends a
            row. Then a target begins with the token that begins a row, as in BART.
    """

    encoder: keras.Model
    joins_source: bool
    starts_with_end: bool = False

    @abstractmethod
    def connect(self) -> tuple[dict[str, Tensor], Tensor]:
        """The model that scores whole targets, for training.

        Returns:
            tuple (inputs by name, logits float (B, P, V)), symbolic.
        """

    def connect_parts(self) -> tuple[dict[str, Tensor], Tensor]:
        """The same for parts of targets.

        A further input is `decoder_positions`, int32 (B, T): the positions of the tokens that the
        decoder reads. A decoder without such a model raises a ValueError.
        """
        raise ValueError(
            f"{with_article(self, 'A')} reads targets from their first token on, and no parts of "
            "them. Use an encoder-decoder, such as a BertEncoderDecoder."
        )

    @abstractmethod
    def start(self, source: dict[str, Tensor], length: int) -> DecoderState:
        """Reads a batch of sources.

        Args:
            source: dict of int32 (B, L), the inputs of `encoder`.
            length: int T, the most tokens of a target that will be read.

        Returns:
            `DecoderState` of B targets, of which no token was read.
        """

    @abstractmethod
    def step(self, token_ids: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Reads the next token of each target, and scores the token that follows it.

        Args:
            token_ids: int32 (B N,), the tokens of the N targets of a source one after the other.
            state: `DecoderState` of these targets. Its cache may be written over.

        Returns:
            tuple (float (B N, V), logits; the new state).
        """


def make_cache(blocks: list[Any], num_rows: Any, length: int) -> list[tuple[Tensor, Tensor]]:
    """Empty keys and values (B, heads, T, D) of the tokens of targets, for each built block."""
    cache = []
    for block in blocks:
        attention = block.self_attention
        width = attention.query.units // attention.num_heads
        shape = (num_rows, attention.num_heads, length, width)
        keys, values = (ops.zeros(shape, dtype=attention.compute_dtype) for _ in range(2))
        cache.append((keys, values))
    return cache


def extend_cache(
    cache: tuple[Tensor, Tensor], key: Tensor, value: Tensor, num_read: Tensor
) -> tuple[Tensor, Tensor]:
    """Writes the key and the value (B, heads, 1, D) of a token after the `num_read` tokens.

    Under PyTorch, without gradients, they are written into the cache itself.
    """
    keys, values = cache
    if keras.config.backend() == "torch":
        # Keras' `slice_update` makes an index of each number that it writes.
        import torch

        place = num_read.reshape(1).long()
        # The beams of one source may be views of one row.
        if torch.is_grad_enabled() or not keys.is_contiguous():
            return keys.index_copy(2, place, key), values.index_copy(2, place, value)
        return keys.index_copy_(2, place, key), values.index_copy_(2, place, value)
    start = (0, 0, num_read, 0)
    return ops.slice_update(keys, start, key), ops.slice_update(values, start, value)
