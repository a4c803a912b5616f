"""A product of two narrow matrices that is added to a dense layer."""

import math
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Shape, Tensor
from keras_bert_suite.layers.configured_layer import ConfiguredLayer
from keras_bert_suite.layers.dropout import Dropout
from keras_bert_suite.layers.eager_pass import read_weight
from keras_bert_suite.layers.inner_call import call_inner


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class LowRank(ConfiguredLayer):
    """`scale * dropout(x) A B`, the addition of LoRA to the output of a dense layer.

    A is (I, rank), drawn as PyTorch draws the kernel of a dense layer. B is (rank, O) and begins
    with zeros, so that the layer adds nothing at first.

    Args:
        units: int O, of the dense layer.
        rank: int.
        scale: float.
        dropout: float, dropout rate of the input.

    Source: Hu et al., 2021 (https://arxiv.org/abs/2106.09685), section 4.1.
    """

    def __init__(
        self, units: int, rank: int, scale: float, dropout: float = 0.0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.units = units
        self.rank = rank
        self.scale = scale
        self.dropout = dropout
        self.input_dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, input_shape: Shape) -> None:
        limit = 1 / math.sqrt(input_shape[-1])
        draw = keras.initializers.RandomUniform(-limit, limit)
        self.a = self.add_weight((input_shape[-1], self.rank), draw, name="a")
        self.b = self.add_weight((self.rank, self.units), "zeros", name="b")

    def call(self, x: Tensor, training: bool | None = None) -> Tensor:
        """float (..., I) -> (..., O). `training` says whether dropout is active."""
        if training and self.dropout:
            x = call_inner(self.input_dropout, x, training=True)
        a, b = (ops.cast(read_weight(weight), x.dtype) for weight in (self.a, self.b))
        return ops.matmul(ops.matmul(x, a), b) * self.scale

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (*input_shape[:-1], self.units)

    def find_sum(self) -> Tensor:
        """float (I, O), what merging adds to the kernel of the dense layer."""
        return ops.matmul(ops.cast(self.a, "float32"), ops.cast(self.b, "float32")) * self.scale
