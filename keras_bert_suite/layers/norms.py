"""A norm without a mean and without weights, and the choice between norms."""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers.configured_layer import ShapeKeepingLayer


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class RootMeanSquareNorm(ShapeKeepingLayer):
    """Divides each vector by the root of the mean of its squares. It has no weights.

    Args:
        epsilon: float, added to the mean of the squares.

    Source: Zhang and Sennrich, 2019 (https://arxiv.org/abs/1910.07467), without their gain, as in
    ZhuiyiTechnology/roformer-v2.
    """

    def __init__(self, epsilon: float = 1e-12, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def call(self, x: Tensor) -> Tensor:
        """float (..., H) -> float (..., H) in the same dtype. The norm is computed in float32."""
        wide = ops.cast(x, "float32")
        squares = ops.mean(ops.square(wide), axis=-1, keepdims=True)
        return ops.cast(wide * ops.rsqrt(squares + self.epsilon), x.dtype)


#: The class of each type of norm.
NORM_TYPES: dict[str, type[keras.layers.Layer]] = {
    "layer_norm": keras.layers.LayerNormalization,
    "rms_norm": RootMeanSquareNorm,
}


def make_norm(
    owner: keras.layers.Layer,
    name: str,
    epsilon: float,
    norm_type: str = "layer_norm",
    center: bool = True,
) -> keras.layers.Layer:
    """Makes a norm of another layer, in the dtype of that layer.

    Args:
        owner: the layer around it.
        name: str.
        epsilon: float.
        norm_type: str, a key of `NORM_TYPES`.
        center: bool, whether a norm with weights has a bias.

    Raises:
        ValueError: if there is no such type.
    """
    if norm_type not in NORM_TYPES:
        raise ValueError(f"norm_type must be one of {', '.join(NORM_TYPES)}, got {norm_type!r}.")
    arguments = {} if center else {"center": False}
    norm = NORM_TYPES[norm_type]
    return norm(epsilon=epsilon, dtype=owner.dtype_policy, name=name, **arguments)
