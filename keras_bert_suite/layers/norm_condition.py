"""The vector of a row on which the scale and the offset of norms depend."""

import dataclasses
from collections.abc import Callable
from typing import Any, Self

import keras

from keras_bert_suite.annotations import Activation, Config, Tensor
from keras_bert_suite.argument_checks import check_integer


@keras.saving.register_keras_serializable(package="keras_bert_suite")
@dataclasses.dataclass(frozen=True)
class NormCondition:
    """What the norms of an encoder read beside the states: a vector for each row, the condition.

    Each norm adds a product of the condition and a matrix to its scale, and another one to its
    offset. Both matrices begin as 0. So an encoder begins with the outputs that it had without a
    condition, and its checkpoint is a good start.

    A class is a vector of zeros and a one. With `hidden_dim` its vector in each norm is learned, as
    by an embedding of the class.

    Attributes:
        dim: int C, the width of the condition.
        hidden_dim: int, the units of a layer without biases between the condition and both
            matrices, of which each norm has one; or None for no such layer.
        activation: of this layer, a callable or Keras' name of one.

    Raises:
        ValueError: if a width is no positive integer, or there is an activation without a layer.

    Source: `LayerNormalization(conditional=True)` of bert4keras, and Su, 2020
    (https://kexue.fm/archives/7124).
    """

    dim: int
    hidden_dim: int | None = None
    activation: Activation = "linear"

    def __post_init__(self) -> None:
        check_integer("dim", self.dim, at_least=1)
        if self.hidden_dim is not None:
            check_integer("hidden_dim", self.hidden_dim, at_least=1)
        if self.hidden_dim is None and self.function is not keras.activations.linear:
            raise ValueError(
                f"activation={self.activation!r} is of a layer that NormCondition has with "
                "hidden_dim. Pass hidden_dim, or leave the activation out."
            )

    @property
    def function(self) -> Callable[[Tensor], Tensor]:
        """The activation."""
        return keras.activations.get(self.activation)

    def get_config(self) -> Config:
        """dict of the arguments, as JSON has them."""
        return {**vars(self), "activation": keras.activations.serialize(self.function)}

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """The settings of a `get_config`."""
        return cls(**config)


def read_condition(norm_condition: Any) -> NormCondition | None:
    """The argument `norm_condition` of a constructor, which is JSON in a saved configuration."""
    if isinstance(norm_condition, dict):
        norm_condition = keras.saving.deserialize_keras_object(norm_condition)
    if norm_condition is not None and not isinstance(norm_condition, NormCondition):
        raise ValueError(
            f"norm_condition must be a NormCondition or None, got {norm_condition!r:.60}. For a "
            "condition of three numbers pass NormCondition(3)."
        )
    return norm_condition
