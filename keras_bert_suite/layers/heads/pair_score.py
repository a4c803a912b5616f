"""A learned score of two vectors."""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Activation, Shape, Tensor
from keras_bert_suite.layers.configured_layer import ConfiguredLayer
from keras_bert_suite.layers.dropout import Dropout


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class PairScore(ConfiguredLayer):
    """Scores vectors u and v by a small network on (u, v, |u - v|, u * v).

    One hidden layer and one output. Unlike a cosine, the score has an order: that of (u, v) is not
    that of (v, u).

    Args:
        hidden_dim: int, the width of the hidden layer.
        activation: of the hidden layer.
        dropout: float, dropout rate before both layers.

    Source: Conneau et al., 2017, InferSent (https://arxiv.org/abs/1705.02364), section 3.1, without
    its softmax.
    """

    def __init__(
        self,
        hidden_dim: int = 128,
        activation: Activation = "gelu",
        dropout: float = 0.1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.hidden_dim = hidden_dim
        self.activation = keras.activations.get(activation)
        self.dropout = dropout
        policy = self.dtype_policy
        self.hidden = keras.layers.Dense(hidden_dim, self.activation, dtype=policy, name="hidden")
        self.score = keras.layers.Dense(1, dtype=policy, name="score")
        self.input_dropout = Dropout(dropout, dtype=policy, name="input_dropout")
        self.hidden_dropout = Dropout(dropout, dtype=policy, name="hidden_dropout")

    def build(self, first_shape: Shape, second_shape: Shape) -> None:
        self.hidden.build((None, 4 * first_shape[-1]))
        self.score.build((None, self.hidden_dim))

    def call(self, first: Tensor, second: Tensor, training: bool | None = None) -> Tensor:
        """Scores pairs.

        Args:
            first: float (..., H), u.
            second: float (..., H), v, of the shape of `first` or broadcast with it.
            training: bool.

        Returns:
            float (...), logits.
        """
        first, second = first + ops.zeros_like(second), second + ops.zeros_like(first)
        parts = [first, second, ops.abs(first - second), first * second]
        vectors = self.input_dropout(ops.concatenate(parts, axis=-1), training=training)
        vectors = self.hidden_dropout(self.hidden(vectors), training=training)
        return self.score(vectors)[..., 0]

    def compute_output_shape(self, first_shape: Shape, second_shape: Shape) -> Shape:
        return tuple(
            other if own == 1 else own
            for own, other in zip(first_shape[:-1], second_shape[:-1], strict=True)
        )
