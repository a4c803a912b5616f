"""Embeddings of the parts of tokens: the characters of a word, the radicals of a character."""

from collections.abc import Sequence
from typing import Any, Self

import keras
import numpy as np
from keras import ops

from keras_bert_suite.annotations import Shape, Tensor
from keras_bert_suite.argument_checks import check_choice, check_integer
from keras_bert_suite.layers.configured_layer import ConfiguredLayer
from keras_bert_suite.layers.inner_call import call_inner

#: How the vector of the parts comes to the embedding of the token.
MERGES = ("add", "concat")


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class PartEmbeddings(ConfiguredLayer):
    """Adds vectors of the parts of tokens to the embeddings of tokens.

    Which parts a token has is a fixed table over the vocabulary. So the token ids stay the only
    input of a model, also in exports. The vector of a token is the mean of the embeddings of its
    parts; or with `filters` the maxima of convolutions over them, as of the characters of a word.
    A token without parts, such as [CLS], has the vector 0.

    With "add", a linear layer projects the vector to the width of the token embedding, and the sum
    is the result. The layer begins as 0, so a pretrained encoder begins with the outputs that it
    had. With "concat", a dense layer projects both vectors together.

    Args:
        parts: list of V lists of int in [0, num_parts): the parts of each token, see
            `spell_tokens` and `read_token_parts`.
        num_parts: int, rows of the table of parts.
        embedding_dim: int, width of the table of parts.
        filters: list of (width, number of filters), or None for the mean.
        merge: "add" or "concat".
        initializer_range: float, standard deviation of the truncated normal.

    Raises:
        ValueError: if a part is not in [0, num_parts), or no token has a part; or if `filters` are
            no pairs of positive integers.

    Source: Kim et al., 2016 (https://arxiv.org/abs/1508.06615), for convolutions over characters;
    Sun et al., 2021, ChineseBERT (https://arxiv.org/abs/2106.16038), for a dense layer over the
    vectors of a character and of its form.
    """

    def __init__(
        self,
        parts: Sequence[Sequence[int]],
        num_parts: int,
        embedding_dim: int = 32,
        filters: Sequence[Sequence[int]] | None = None,
        merge: str = "add",
        initializer_range: float = 0.02,
        **kwargs: Any,
    ) -> None:
        super().__init__(**{"name": "part_embeddings", **kwargs})
        check_integer("num_parts", num_parts, at_least=1)
        check_integer("embedding_dim", embedding_dim, at_least=1)
        check_choice("merge", merge, MERGES)
        self.parts = [list(map(int, row)) for row in parts]
        self.num_parts = num_parts
        self.embedding_dim = embedding_dim
        self.filters = None if filters is None else _read_filters(filters)
        self.merge = merge
        self.initializer_range = initializer_range
        # Each part begins a place of each filter, however long other tokens are.
        widest = max((width for width, _ in self.filters or ()), default=1)
        self._table = _make_table(self.parts, num_parts, widest - 1)

    @property
    def vocabulary_size(self) -> int:
        """int V, the tokens of the table."""
        return len(self.parts)

    def take_tokens(self, token_ids: Sequence[int | None]) -> Self:
        """A layer like this for other tokens: old ids, or None for tokens without parts.

        It has no weights yet.
        """
        parts = [[] if i is None else self.parts[i] for i in token_ids]
        return type(self).from_config({**self.get_config(), "parts": parts})

    def build(self, token_ids_shape: Shape, embedded_shape: Shape) -> None:
        initializer = keras.initializers.TruncatedNormal(stddev=self.initializer_range)
        hidden_dim = embedded_shape[-1]
        self.part_embedding = keras.layers.Embedding(
            self.num_parts,
            self.embedding_dim,
            embeddings_initializer=initializer,
            dtype=self.dtype_policy,
            name="part_embedding",
        )
        self.part_embedding.build()
        self.convolutions = []
        for i, (width, number) in enumerate(self.filters or ()):
            convolution = keras.layers.Conv1D(
                number,
                width,
                kernel_initializer=initializer.clone(),
                dtype=self.dtype_policy,
                name=f"convolution_{i}",
            )
            convolution.build((None, self._table.shape[1], self.embedding_dim))
            self.convolutions.append(convolution)
        width = self.embedding_dim
        if self.filters is not None:
            width = sum(number for _, number in self.filters)
        adds = self.merge == "add"
        self.projection = keras.layers.Dense(
            hidden_dim,
            use_bias=not adds,
            kernel_initializer="zeros" if adds else initializer.clone(),
            dtype=self.dtype_policy,
            name="projection",
        )
        self.projection.build((None, None, width if adds else width + hidden_dim))

    def call(self, token_ids: Tensor, embedded: Tensor) -> Tensor:
        """Merges embeddings of tokens with those of their parts.

        Args:
            token_ids: int32 (B, L), in [0, V).
            embedded: float (B, L, E), the embeddings of the tokens.

        Returns:
            float (B, L, E).
        """
        parts = ops.take(ops.convert_to_tensor(self._table), token_ids, axis=0)
        is_part = ops.cast(parts >= 0, self.compute_dtype)
        vectors = call_inner(self.part_embedding, ops.maximum(parts, 0)) * is_part[..., None]
        if self.filters is None:
            counts = ops.maximum(ops.sum(is_part, axis=-1, keepdims=True), 1.0)
            pooled = ops.sum(vectors, axis=-2) / counts
        else:
            pooled = self._convolve(vectors, is_part)
        if self.merge == "add":
            return embedded + call_inner(self.projection, pooled)
        return call_inner(self.projection, ops.concatenate([embedded, pooled], axis=-1))

    def _convolve(self, vectors: Tensor, is_part: Tensor) -> Tensor:
        """The maximum of each filter (B, L, F) over the places that begin at a part."""
        shape = ops.shape(is_part)
        words = ops.reshape(vectors, (-1, self._table.shape[1], self.embedding_dim))
        begins = ops.reshape(is_part, (-1, self._table.shape[1], 1))
        found = []
        for convolution in self.convolutions:
            x = call_inner(convolution, words)
            x = ops.where(begins[:, : x.shape[1]] > 0, x, 0.0)
            found.append(ops.max(ops.relu(x), axis=1))
        found = ops.concatenate(found, axis=-1)
        return ops.reshape(found, (*shape[:-1], found.shape[-1]))

    def get_build_config(self) -> None:
        """None: the embeddings around this layer build it, by which its weights get their paths."""

    def compute_output_shape(self, token_ids_shape: Shape, embedded_shape: Shape) -> Shape:
        return embedded_shape


def _read_filters(filters: Any) -> list[list[int]]:
    """The argument `filters` as JSON has it."""
    pairs = [[*pair] if isinstance(pair, (list, tuple)) else [] for pair in filters]
    if not pairs or any(len(pair) != 2 or not _are_sizes(pair) for pair in pairs):
        raise ValueError(
            "filters must be pairs of positive integers, width and number of filters, such as "
            f"[(1, 8), (2, 8)], or None for the mean of the parts, got {filters!r}."
        )
    return pairs


def _are_sizes(numbers: Sequence[Any]) -> bool:
    return all(isinstance(number, int) and number > 0 for number in numbers)


def _make_table(parts: Sequence[Sequence[int]], num_parts: int, room: int) -> np.ndarray:
    """int32 (V, W), the parts of each token, -1 after the last, at least `room` times."""
    longest = max(map(len, parts), default=0)
    if not longest:
        raise ValueError(f"No token of {len(parts)} has a part. Pass the parts of some tokens.")
    table = np.full((len(parts), longest + room), -1, "int32")
    for token, row in enumerate(parts):
        if row and not 0 <= min(row) <= max(row) < num_parts:
            raise ValueError(
                f"The parts of token {token} must be in [0, {num_parts}), the num_parts, got {row}."
            )
        table[token, : len(row)] = row
    return table
