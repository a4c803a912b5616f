"""What Keras' own layers compute, as functions of tensors under PyTorch; see `find_call`."""

from collections.abc import Callable
from typing import Any

import keras

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers.eager_pass import read_weight


def _bind_dense(layer: keras.layers.Dense) -> Callable[..., Tensor] | None:
    """`layer.call` with the weights as they are now; None with LoRA."""
    if layer.lora_enabled:
        return None
    kernel, bias = read_weight(layer.kernel), read_weight(layer.bias)
    activation = layer.activation or keras.activations.linear

    def call(inputs: Tensor, training: bool | None = None) -> Tensor:
        outputs = inputs @ kernel
        return activation(outputs if bias is None else outputs + bias)

    return call


def _bind_table(layer: keras.layers.Embedding) -> Callable[..., Tensor] | None:
    """`layer.call` with the table as it is now; None with LoRA, a mask, or rounded rows."""
    is_rounded = layer.compute_dtype != layer.variable_dtype
    if layer.lora_enabled or layer.mask_zero or is_rounded:
        return None
    import torch

    table, look_up = read_weight(layer.embeddings), torch.nn.functional.embedding

    def call(inputs: Tensor, **reverse: bool) -> Tensor:
        return layer.call(inputs, **reverse) if reverse else look_up(inputs, table)

    return call


#: Class of Keras -> the function that binds its layers.
BINDERS: dict[type, Callable[[Any], Callable[..., Tensor] | None]] = {
    keras.layers.Dense: _bind_dense,
    keras.layers.Embedding: _bind_table,
    keras.layers.ReversibleEmbedding: _bind_table,
}
