"""What the blocks of XLNet read beside the states: distances, masks, segments and memory."""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers.attention.attention_patterns import mask_by_ranks
from keras_bert_suite.layers.attention.sequence_layout import Layout
from keras_bert_suite.layers.companions import CompanionReader
from keras_bert_suite.layers.configured_layer import ConfiguredLayer
from keras_bert_suite.layers.dropout import Dropout
from keras_bert_suite.layers.inner_call import call_inner


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class RelativeSinusoids(CompanionReader, ConfiguredLayer):
    """Sinusoids of all distances between a query and a key, with dropout.

    The first H / 2 columns are sines, the others cosines. All rows of a batch, and all blocks, have
    one dropout of them, as in Transformer-XL. The code of XLNet draws it for each row.

    Args:
        dropout: float.
        clamp_length: int, the distance from which on tokens are equally far; None for no such
            distance.

    Source: Dai et al., 2019 (https://arxiv.org/abs/1901.02860), section 3.3.
    """

    def __init__(
        self, dropout: float = 0.1, clamp_length: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.dropout = dropout
        self.clamp_length = clamp_length
        self.sinusoid_dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def call(
        self,
        hidden: Tensor,
        memory: Tensor | None = None,
        is_reversed: Tensor | None = None,
        training: bool | None = None,
        sequence_layout: Layout | None = None,
    ) -> Tensor:
        """The sinusoids of the distances S - 1 to -L, with S = M + L.

        Args:
            hidden: float (B, L, H). Tokens of packed rows that see each other are as far from each
                other as in their own row.
            memory: float (B, N, M, H) or None. Its shape is read.
            is_reversed: int (B, 1), 1 for rows whose tokens are in reverse order. Their distances
                have the other sign. None for no such row.
            training: bool, whether dropout is active.
            sequence_layout: `SequenceLayout` or None.

        Returns:
            float (1, L + S, H), or (B, L + S, H) with `is_reversed`.

        Raises:
            ValueError: if packed rows come with a memory, or with rows in reverse order; or if the
                memory is that of another number of rows.
        """
        if memory is not None:
            _check_rows(hidden, memory)
        if sequence_layout is not None and not (memory is None and is_reversed is None):
            raise ValueError(
                "Packed rows have no memory and no order of their own. Leave `sequence_layout` "
                "out, or build the backbone without `memory_length` and `reversed_rows`."
            )
        length, width = ops.shape(hidden)[1], hidden.shape[-1]
        num_keys = length if memory is None else length + ops.shape(memory)[2]
        distances = num_keys - 1 - ops.arange(length + num_keys, dtype="int32")
        if self.clamp_length is not None:
            distances = ops.clip(distances, -self.clamp_length, self.clamp_length)
        distances = distances[None]
        if is_reversed is not None:
            distances = ops.where(is_reversed != 0, -distances, distances)
        rates = 10000.0 ** (-ops.arange(0, width, 2, dtype="float32") / width)
        angles = ops.expand_dims(ops.cast(distances, "float32"), -1) * rates
        sinusoids = ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=-1)
        sinusoids = ops.cast(sinusoids, self.compute_dtype)
        return call_inner(self.sinusoid_dropout, sinusoids, training=training)

    def compute_output_spec(
        self, hidden: Tensor, memory: Tensor | None = None, is_reversed: Tensor | None = None
    ) -> keras.KerasTensor:
        return keras.KerasTensor((None, None, hidden.shape[-1]), dtype=self.compute_dtype)


def _check_rows(hidden: Tensor, memory: Tensor) -> None:
    """Raises ValueError if states (B, L, H) and a memory (B, N, M, H) differ in their rows."""
    rows, kept = hidden.shape[0], memory.shape[0]
    if None not in (rows, kept) and rows != kept:
        raise ValueError(
            f"Wanted a memory of {rows} rows, got a memory of the shape {tuple(memory.shape)}. Row "
            "i of a batch goes with row i of the memory: carry it from the batch before, or begin "
            f"with zeros of the shape ({rows}, {memory.shape[1]}, M, {memory.shape[3]})."
        )


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class DifferentSegments(CompanionReader, ConfiguredLayer):
    """Whether a query and a key are in different segments. A memory is in segment 0."""

    def call(
        self,
        segment_ids: Tensor,
        memory: Tensor | None = None,
        positions: Tensor | None = None,
        sequence_layout: Layout | None = None,
    ) -> Tensor:
        """int (B, L) -> bool (B, L, S), or (B, P, S) of the queries at int `positions` (B, P).

        `memory` is float (B, N, M, H), of which the shape is read, or None; S is M + L.
        """
        if sequence_layout is not None:
            segment_ids = sequence_layout.pack(segment_ids)
        queries = keys = segment_ids
        if positions is not None:
            queries = ops.take_along_axis(segment_ids, positions, axis=1)
        if memory is not None:
            shape = (ops.shape(keys)[0], ops.shape(memory)[2])
            keys = ops.concatenate([ops.zeros(shape, keys.dtype), keys], axis=1)
        return queries[:, :, None] != keys[:, None, :]

    def compute_output_spec(
        self, segment_ids: Tensor, memory: Tensor | None = None, positions: Tensor | None = None
    ) -> keras.KerasTensor:
        queries = segment_ids if positions is None else positions
        return keras.KerasTensor((*queries.shape, None), dtype="bool")


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class PermutedTokens(CompanionReader, ConfiguredLayer):
    """Which tokens a token sees in the order of a permutation, in one of two streams.

    Source: Yang et al., 2019 (https://arxiv.org/abs/1906.08237), section 2.3.
    """

    def call(
        self,
        padding_mask: Tensor,
        query_ranks: Tensor,
        key_ranks: Tensor,
        positions: Tensor | None = None,
        sequence_layout: Layout | None = None,
    ) -> Tensor:
        """The mask of a stream.

        A token sees the tokens whose rank as a key is below its own rank as a query.

        Args:
            padding_mask, query_ranks, key_ranks: int (B, L).
            positions: int (B, P), the places of the query stream; None for the content stream,
                where each token also sees itself.
            sequence_layout: `SequenceLayout` or None.

        Returns:
            bool (B, L, L), or (B, P, L) with `positions`.

        Raises:
            ValueError: if the rows are packed.
        """
        if sequence_layout is not None:
            raise ValueError(
                "Rows with `query_ranks` and `mask_positions` cannot be packed. Leave "
                "`sequence_layout` out."
            )
        places = ops.arange(ops.shape(padding_mask)[1], dtype="int32")
        if positions is not None:
            query_ranks = ops.take_along_axis(query_ranks, positions, axis=1)
        visible = mask_by_ranks(query_ranks, key_ranks, strict=True)
        if positions is None:
            visible = visible | (places[:, None] == places)[None]
        return visible & (padding_mask != 0)[:, None, :]

    def compute_output_spec(
        self,
        padding_mask: Tensor,
        query_ranks: Tensor,
        key_ranks: Tensor,
        positions: Tensor | None = None,
    ) -> keras.KerasTensor:
        queries = padding_mask if positions is None else positions
        return keras.KerasTensor((*queries.shape, padding_mask.shape[1]), dtype="bool")


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class VisibleMemory(ConfiguredLayer):
    """Lets each token see the memory, too.

    Args:
        same_length: bool, whether a token sees no further back than M tokens, so that all tokens
            of a row from left to right see equally many. The first token sees the whole memory.
    """

    def __init__(self, same_length: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.same_length = same_length

    def call(self, attention_mask: Tensor, memory: Tensor) -> Tensor:
        """A mask of the tokens of a row -> one of the memory and these tokens.

        Args:
            attention_mask: int or bool, (B, L) or (B, Q, L).
            memory: float (B, N, M, H), of which the shape is read.

        Returns:
            bool (B, M + L) or (B, Q, M + L).
        """
        mask = ops.cast(attention_mask, "bool")
        past = ops.shape(memory)[2]
        mask = ops.concatenate([ops.ones((*ops.shape(mask)[:-1], past), "bool"), mask], axis=-1)
        if not self.same_length:
            return mask
        queries, keys = (ops.arange(ops.shape(mask)[axis], dtype="int32") for axis in (1, 2))
        return mask & (keys >= queries[:, None])[None]

    def compute_output_spec(self, attention_mask: Tensor, memory: Tensor) -> keras.KerasTensor:
        return keras.KerasTensor((*attention_mask.shape[:-1], None), dtype="bool")


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class NextMemory(ConfiguredLayer):
    """The memory of the next segment of each row: the last states that went into the blocks.

    Args:
        memory_length: int, how many states are kept.
        reuse_length: int, how many states of a row are taken, from its first on; None for all. The
            next row of XLNet's pretraining repeats the others.

    Source: Dai et al., 2019 (https://arxiv.org/abs/1901.02860), section 3.2.
    """

    def __init__(self, memory_length: int, reuse_length: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.autocast = False  # The memory stays in float32.
        self.memory_length = memory_length
        self.reuse_length = reuse_length

    def call(self, memory: Tensor, *states: Tensor) -> Tensor:
        """float (B, N, M, H), and N of float (B, L, H), -> float (B, N, M', H).

        M' is `memory_length`, or fewer if there are not so many. No gradient flows through it.
        """
        new = ops.stack([state[:, : self.reuse_length] for state in states], axis=1)
        kept = ops.concatenate([memory, ops.cast(new, memory.dtype)], axis=2)
        return ops.stop_gradient(kept[:, :, -self.memory_length :])

    def compute_output_spec(self, memory: Tensor, *states: Tensor) -> keras.KerasTensor:
        return keras.KerasTensor((*memory.shape[:2], None, memory.shape[3]), dtype=memory.dtype)
