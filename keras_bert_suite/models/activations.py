"""The activation functions that encoders know by name."""

from collections.abc import Callable

import keras

from keras_bert_suite.annotations import Activation, Tensor
from keras_bert_suite.layers import gelu_erf, gelu_tanh

#: The names of activation functions in checkpoints, and the functions.
ACTIVATIONS = {
    "gelu": gelu_erf,
    "gelu_erf": gelu_erf,
    "gelu_new": gelu_tanh,
    "gelu_tanh": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "relu": keras.activations.relu,
    "tanh": keras.activations.tanh,
    "silu": keras.activations.silu,
    "swish": keras.activations.silu,
}


def get_activation(
    activation: Activation, argument: str = "activation"
) -> Callable[[Tensor], Tensor]:
    """The function of a name of `ACTIVATIONS`, of a name of Keras, or of a function.

    `argument` is the name of the argument in the error.
    """
    if isinstance(activation, str) and activation in ACTIVATIONS:
        return ACTIVATIONS[activation]
    try:
        if activation is not None:
            return keras.activations.get(activation)
    except ValueError:
        pass
    raise ValueError(
        f"{argument} must be a callable or one of {', '.join(ACTIVATIONS)}, got {activation!r}."
    )
