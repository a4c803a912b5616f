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
    if keras.config.backend() == "tensorflow" and x.dtype == "float32":
        # `tf.nn.gelu` computes 1 - erf, which takes twice as long on a CPU. And TensorFlow joins
        # these ops to the product before them.
        return 0.5 * x * (1.0 + ops.erf(x * math.sqrt(0.5)))
    return ops.gelu(x, approximate=False)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
def gelu_tanh(x: Tensor) -> Tensor:
    """The tanh approximation, which Google trained BERT with. Hugging Face's `gelu_new`."""
    return ops.gelu(x, approximate=True)
