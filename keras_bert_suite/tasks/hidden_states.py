"""The outputs of all transformer layers of a backbone."""

import keras
import keras_hub

from keras_bert_suite.annotations import Tensor


def encode_layers(backbone: keras_hub.models.Backbone) -> list[Tensor]:
    """Calls a backbone on its own inputs.

    Args:
        backbone: `BertBackbone`, or a KerasHub text encoder with `transformer_layers`.

    Returns:
        list of symbolic (B, L, H), the output of each transformer layer.

    Raises:
        ValueError: if the backbone does not name its layers.
    """
    layers = getattr(backbone, "transformer_layers", None)
    if not layers:
        raise ValueError(
            f"A {type(backbone).__name__} does not name its transformer layers, so their outputs "
            "cannot be pooled. Choose a pooling of the last layer, such as pooling='mean'."
        )
    outputs = [layer.output for layer in layers]
    # Some layers of KerasHub return a tuple, with the hidden states first.
    outputs = [output[0] if isinstance(output, (list, tuple)) else output for output in outputs]
    return keras.Model(backbone.input, outputs, name="layer_outputs")(backbone.input)
