"""Two activation functions that are both called GELU."""

import math

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor


@keras.saving.register_keras_serializable(package="keras_bert_suite")
def gelu_erf(x: Tensor) -> Tensor:
    """x * Phi(x), exact. Hugging Face's `hidden_act="gelu"`.

    Source: Hendrycks and Gimpel, 2016 (https://arxiv.org/abs/1606.08415).
    """
    if keras.config.backend() == "tensorflow" and x.dtype != "float64":
        # `tf.nn.gelu` computes 1 - erf, which takes twice as long on a CPU. And TensorFlow joins
        # these ops to the product before them. Its erf of 16 bits is several times as slow.
        wide = ops.cast(x, "float32")
        return ops.cast(0.5 * wide * (1.0 + ops.erf(wide * math.sqrt(0.5))), x.dtype)
    return ops.gelu(x, approximate=False)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
def gelu_tanh(x: Tensor) -> Tensor:
    """The tanh approximation, which Google trained BERT with. Hugging Face's `gelu_new`."""
    return ops.gelu(x, approximate=True)
