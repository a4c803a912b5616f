"""A dense layer with as few passes over memory as the backend allows."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Shape, Tensor
from keras_bert_suite.layers.activations import gelu_erf, gelu_tanh
from keras_bert_suite.layers.adapters.adaptable import Adaptable, find_acting
from keras_bert_suite.layers.attention.attention_kernels import is_jax_on_cpu
from keras_bert_suite.layers.eager_pass import read_weight
from keras_bert_suite.layers.inner_call import call_inner
from keras_bert_suite.layers.torch_products import bind_linear, linear

#: The kind of adapter that a dense layer takes.
LOW_RANK = "low_rank"

#: PyTorch's names for the two functions.
GELU_APPROXIMATIONS = {gelu_erf: "none", gelu_tanh: "tanh"}


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class Dense(Adaptable, keras.layers.Dense):
    """Keras' dense layer, computed as one product of two matrices that adds the bias itself.

    Keras multiplies (B, L, I) with (I, units), and then adds the bias, which reads and writes the
    output once more.

    - PyTorch and TensorFlow have an op for the product with the bias. TensorFlow's op also computes
      an activation, such as `gelu_erf`, if nothing else reads its input, as outside of training.
    - JAX' compiler joins the product and the bias by itself. But it copies both sides of a product
      over two axes, as the gradient of the kernel would be. So the inputs become a matrix first.
    - On a CPU, JAX multiplies bfloat16 fast only if the result is float32. So outside of training
      the result is float32.

    Weights, LoRA and quantization: see `keras.layers.Dense`. A `LowRank` that is added by
    `add_adapter` adds its output before the activation.
    """

    is_rounded_together = True

    def quantize(self, mode: Any = None, type_check: bool = True, config: Any = None) -> None:
        """As Keras' layer, which by default refuses its subclasses."""
        super().quantize(mode, type_check=False, config=config)

    def call(self, inputs: Tensor, training: bool | None = None) -> Tensor:
        """`activation(inputs @ kernel + bias)`: float (..., I) -> (..., units).

        `training` says whether gradients will be taken.
        """
        low_rank = self.find_adapter(LOW_RANK)
        if low_rank is not None:
            return self._add(low_rank, inputs, training)
        return self._compute(inputs, training, self.activation)

    def bind(self) -> Callable[..., Tensor] | None:
        """`call` under PyTorch with the weights as they are now; None with an adapter or LoRA."""
        if "adapters" in vars(self) or self.lora_enabled or type(self).call is not Dense.call:
            return None
        kernel, bias = read_weight(self._kernel), read_weight(self.bias)
        gelu = GELU_APPROXIMATIONS.get(self.activation)
        product = bind_linear(kernel, bias, gelu)
        activation = keras.activations.linear if gelu else self.activation
        if activation is keras.activations.linear:
            return lambda inputs, training=None: product(inputs)
        return lambda inputs, training=None: activation(product(inputs))

    def quantized_call(self, inputs: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """As Keras' layer, with a `LowRank` of the adapter that acts."""
        low_rank = self.find_adapter(LOW_RANK)
        if low_rank is None:
            return super().quantized_call(inputs, *args, **kwargs)
        return self._add(low_rank, inputs, kwargs.get("training"))

    def _add(self, low_rank: Any, inputs: Tensor, training: bool | None) -> Tensor:
        """The layer with the output of a `LowRank`, for which the activation waits."""
        acting = find_acting()
        if training is None and acting is not None:
            training = acting.training
        if self.quantization_mode is None:
            outputs = self._compute(inputs, training, None)
        else:
            bare: Any = object.__new__(type(self))  # The layer itself, without its activation.
            bare.__dict__.update(self.__dict__, activation=None)
            outputs = keras.layers.Dense.quantized_call(bare, inputs, training=training)
        added = call_inner(low_rank, ops.cast(inputs, self.compute_dtype), training=training)
        outputs = outputs + ops.cast(added, outputs.dtype)
        return outputs if self.activation is None else self.activation(outputs)

    def _compute(self, inputs: Tensor, training: bool | None, activation: Any) -> Tensor:
        backend = keras.config.backend()
        activation = activation or keras.activations.linear
        if backend == "torch":
            # The property asks for all kinds of quantization, which have other calls than this.
            kernel = read_weight(self.kernel if self.lora_enabled else self._kernel)
            bias = read_weight(self.bias)
            if activation in GELU_APPROXIMATIONS:
                return linear(inputs, kernel, bias, gelu=GELU_APPROXIMATIONS[activation])
            return activation(linear(inputs, kernel, bias))
        kernel = ops.convert_to_tensor(self.kernel)
        bias = None if self.bias is None else ops.convert_to_tensor(self.bias)
        rows = ops.reshape(inputs, (-1, inputs.shape[-1]))
        if backend == "tensorflow":
            import tensorflow as tf

            outputs = tf.matmul(rows, kernel)
            outputs = outputs if bias is None else tf.nn.bias_add(outputs, bias)
        elif not training and rows.dtype == "bfloat16" and is_jax_on_cpu():
            import jax.numpy as jnp

            # Of the products of a gradient only one is faster this way.
            outputs = jnp.matmul(rows, kernel, preferred_element_type="float32")
            outputs = outputs if bias is None else outputs + bias
        else:
            outputs = ops.matmul(rows, kernel)
            outputs = outputs if bias is None else outputs + bias
        outputs = ops.cast(activation(outputs), rows.dtype)
        return ops.reshape(outputs, (*ops.shape(inputs)[:-1], self.units))


def make_dense(
    owner: keras.layers.Layer,
    units: int,
    name: str,
    input_shape: Shape,
    stddev: float,
    **arguments: Any,
) -> Dense:
    """Makes and builds a dense layer of another layer, in the dtype of that layer.

    The kernel is a truncated normal of standard deviation `stddev`.
    """
    dense = Dense(
        units,
        kernel_initializer=keras.initializers.TruncatedNormal(stddev=stddev),
        dtype=owner.dtype_policy,
        name=name,
        **arguments,
    )
    dense.build(input_shape)
    return dense
