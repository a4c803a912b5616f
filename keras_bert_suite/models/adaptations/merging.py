"""Adds the products of LoRA to the kernels of a copy of an encoder."""

from typing import Any

import keras

from keras_bert_suite.layers.dense import LOW_RANK, Dense
from keras_bert_suite.models.adaptations.adaptation import list_layers
from keras_bert_suite.models.adaptations.bit_fit import BitFit
from keras_bert_suite.models.adaptations.lora import LoRA
from keras_bert_suite.models.weight_copies import copy_all, list_by_path


def merge_encoder(encoder: Any, name: str) -> Any:
    """A copy of an encoder without adapters that computes what it computes with one of them.

    Raises:
        ValueError: if the adapter is no LoRA and no `BitFit`, or if the encoder was quantized.
    """
    adaptation = encoder.adapters[name].adaptation
    if not isinstance(adaptation, (LoRA, BitFit)):
        raise ValueError(
            f"{type(adaptation).__name__} adds layers that no kernel can take. Save the task with "
            "its adapter, by `save_to_preset`, `save_adapter` or an export; or train LoRA."
        )
    quantized = [layer for layer in encoder._flatten_layers() if layer.quantization_mode]
    if quantized:
        raise ValueError(
            f"The kernel of {quantized[0].path} has 8-bit integers, to which no product can be "
            "added. Load the adapter on the base as it was before `quantize`, with any_base=True, "
            "merge, and quantize the copy."
        )
    config = {key: value for key, value in encoder.get_config().items() if key != "adapters"}
    copy = type(encoder).from_config(config)
    copy_all(copy, list_by_path(encoder))
    originals = {layer.path: layer for layer in list_layers(encoder, Dense)}
    for layer in list_layers(copy, Dense):
        low_rank = vars(originals[layer.path]).get("adapters", {}).get((LOW_RANK, name))
        if low_rank is not None:
            total = keras.ops.cast(layer.kernel, "float32") + low_rank.find_sum()
            layer.kernel.assign(keras.ops.cast(total, layer.kernel.dtype))
    return copy
