"""Embeddings of words that are made of their characters."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Activation, Shape, Tensor
from keras_bert_suite.layers.configured_layer import ConfiguredLayer

#: The released models' filters, (width, number) each.
ELMO_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class CharacterEmbeddings(ConfiguredLayer):
    """Convolutions over the characters of a word, the maximum of each filter, and highways.

    A highway layer is `g * relu(x W + b) + (1 - g) * x` with the gate `g = sigmoid(x V + c)`. A
    projection follows, unless there are as many filters as `output_dim`.

    Args:
        output_dim: int P.
        filters: list of (width, number of filters).
        embedding_dim: int, width of the table of characters.
        num_highways: int, highway layers.
        activation: "relu" or "tanh", after the maximum.
        num_characters: int, rows of the table. Character i has the row i - 1, and character 0 has
            zeros.
        max_characters: int W, the characters of a word, with padding.

    Raises:
        ValueError: if a filter is wider than a word.

    Source: Peters et al., 2018 (https://arxiv.org/abs/1802.05365), and allenai/bilm-tf, model.py;
    Kim et al., 2016 (https://arxiv.org/abs/1508.06615).
    """

    def __init__(
        self,
        output_dim: int,
        filters: Sequence[Sequence[int]] = ELMO_FILTERS,
        embedding_dim: int = 16,
        num_highways: int = 2,
        activation: Activation = "relu",
        num_characters: int = 261,
        max_characters: int = 50,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        widest = max(width for width, _ in filters)
        if widest > max_characters:
            raise ValueError(
                f"A filter of width {widest} is wider than a word of max_characters="
                f"{max_characters}. Leave such filters out, or allow longer words."
            )
        self.output_dim = output_dim
        self.filters = [tuple(filter) for filter in filters]
        self.embedding_dim = embedding_dim
        self.num_highways = num_highways
        self.activation = keras.activations.get(activation)
        self.num_characters = num_characters
        self.max_characters = max_characters

    @property
    def num_filters(self) -> int:
        """int, the filters of all widths together."""
        return sum(number for _, number in self.filters)

    def build(self, character_ids_shape: Shape) -> None:
        num_filters, one_row = self.num_filters, (None, self.num_filters)
        self.character_embedding = keras.layers.Embedding(
            self.num_characters,
            self.embedding_dim,
            embeddings_initializer=keras.initializers.RandomUniform(-1.0, 1.0),
            dtype=self.dtype_policy,
            name="character_embedding",
        )
        self.character_embedding.build((None, None))
        self.convolutions = []
        for i, (width, number) in enumerate(self.filters):
            convolution = keras.layers.Conv1D(
                number,
                width,
                kernel_initializer=keras.initializers.RandomUniform(-0.05, 0.05),
                dtype=self.dtype_policy,
                name=f"convolution_{i}",
            )
            convolution.build((None, self.max_characters, self.embedding_dim))
            self.convolutions.append(convolution)
        self.carries = [
            self._make_dense(num_filters, f"highway_{i}_carry", "sigmoid", bias=-2.0)
            for i in range(self.num_highways)
        ]
        self.transforms = [
            self._make_dense(num_filters, f"highway_{i}_transform", "relu")
            for i in range(self.num_highways)
        ]
        self.projection: Any = None
        if num_filters != self.output_dim:
            self.projection = self._make_dense(self.output_dim, "projection")
        for layer in (*self.carries, *self.transforms, self.projection):
            if layer is not None:
                layer.build(one_row)

    def _make_dense(
        self, units: int, name: str, activation: str | None = None, bias: float = 0.0
    ) -> keras.layers.Dense:
        return keras.layers.Dense(
            units,
            activation=activation,
            kernel_initializer=keras.initializers.RandomNormal(stddev=self.num_filters**-0.5),
            bias_initializer=keras.initializers.Constant(bias),
            dtype=self.dtype_policy,
            name=name,
        )

    def call(self, character_ids: Tensor) -> Tensor:
        """Embeds words.

        Args:
            character_ids: int32 (B, L, W), the characters of each word, in [0, num_characters].
                All characters of padding are 0.

        Returns:
            float (B, L, P).
        """
        is_character = (character_ids > 0)[..., None]
        characters = self.character_embedding(ops.maximum(character_ids, 1) - 1)
        characters = ops.where(is_character, characters, 0.0)
        words = ops.reshape(characters, (-1, self.max_characters, self.embedding_dim))
        if keras.backend.backend() == "tensorflow":
            # A convolution of no words would have the channels of its input, so one word is added.
            words = ops.pad(words, ((0, 1), (0, 0), (0, 0)))
        found = [ops.max(convolution(words), axis=1) for convolution in self.convolutions]
        x = self.activation(ops.concatenate(found, axis=-1))
        if keras.backend.backend() == "tensorflow":
            x = x[:-1]
        for carry, transform in zip(self.carries, self.transforms, strict=True):
            gate = carry(x)
            x = gate * transform(x) + (1.0 - gate) * x
        if self.projection is not None:
            x = self.projection(x)
        return ops.reshape(x, (*ops.shape(character_ids)[:2], self.output_dim))

    def compute_output_shape(self, character_ids_shape: Shape) -> Shape:
        return (*character_ids_shape[:2], self.output_dim)
