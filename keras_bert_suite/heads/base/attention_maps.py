"""Computes the hidden states and the attention probabilities of an encoder for texts."""

import functools
from collections.abc import Mapping
from typing import Any

import keras
import keras_hub
import numpy as np
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.layers import (
    GLOBAL_ARGUMENT,
    BartBlock,
    ModernBertBlock,
    TransformerBlock,
    VisibleTokens,
)
from keras_bert_suite.layers.adapters.adaptable import find_acting
from keras_bert_suite.layers.attention.attention_patterns import ARRAYS_READ
from keras_bert_suite.layers.companions import hand_on
from keras_bert_suite.models import LongformerBackbone, XLNetBackbone
from keras_bert_suite.models.encoder import Encoder


def encode_with_attention(
    backbone: keras_hub.models.Backbone, inputs: dict[str, Tensor]
) -> dict[str, list[np.ndarray]]:
    """Computes the hidden states and the attention probabilities of all layers, without dropout.

    Args:
        backbone: a backbone of this package, or a KerasHub text encoder whose layers are
            KerasHub's `TransformerEncoder`, such as its BERT, RoBERTa, DistilBERT, ALBERT and
            ELECTRA.
        inputs: packed arrays int32 (B, L), such as a task's `preprocessor(texts)`. For a Longformer
            `global_attention_mask` may be among them.

    Returns:
        dict of two lists of float32 NumPy arrays:

        - `hidden_states`: the embeddings and the output of each layer, (B, L, H);
        - `attentions`: for each layer (B, heads, L, L), how much a position (third axis) attends to
          each position (last axis). The last axis is 0 on padding. It sums to 1, or to less with
          `PrefixTuning`, whose prefix gets the rest.

    Raises:
        ValueError: if the layers are of another kind, such as DeBERTa's, if `inputs` are not the
            packed arrays of the backbone, if it is an XLNet with a memory or with two streams, or
            if its adapter is `PromptTuning`.

    Example:
    ```python
    packed = classifier.preprocessor(["a gripping, funny film"])
    maps = encode_with_attention(classifier.backbone, packed)["attentions"]
    ```
    """
    encoder = Encoder.of(backbone)
    _check_prompts(backbone)
    layers = encoder.make_layer_model()
    measure = [_find_measure(layer, backbone) for layer in encoder.list_calls()]
    if not measure:
        raise ValueError(
            f"{with_article(backbone, 'A')} names no transformer layers, so it has no attention "
            "probabilities."
        )
    names = list(backbone.input)
    if not isinstance(inputs, Mapping) or not set(names) <= set(inputs):
        raise ValueError(
            f"inputs must be a dict of the packed arrays {', '.join(names)}, got {inputs!r:.40}. "
            "Pack texts with the preprocessor of a task, task.preprocessor(texts)."
        )
    if isinstance(backbone, LongformerBackbone) and GLOBAL_ARGUMENT in inputs:
        names.append(GLOBAL_ARGUMENT)
    tensors = {name: ops.convert_to_tensor(inputs[name]) for name in names}
    packed = {name: tensors[name] for name in backbone.input}
    with hand_on({name: tensors[name] for name in tensors.keys() - packed.keys()}):
        states = layers(packed, training=False)
    mask = find_mask(backbone, tensors)
    if isinstance(backbone, XLNetBackbone):
        pairs = backbone.compare_tokens(states[0], tensors)
        measure = [functools.partial(attend, **pairs) for attend in measure]
    attentions = [attend(state, mask) for attend, state in zip(measure, states[:-1], strict=True)]
    return {"hidden_states": _to_arrays(states), "attentions": _to_arrays(attentions)}


def _check_prompts(backbone: Any) -> None:
    acting = find_acting()
    name = getattr(backbone, "adapter", None) if acting is None else acting.name
    find_length = getattr(backbone, "find_prompt_length", None)
    if name is not None and find_length is not None and find_length(name):
        raise ValueError(
            f"The adapter {name!r} has prompts before the tokens, and the maps are of tokens "
            "alone, without the attention to prompts. Measure a task without them."
        )


def find_mask(backbone: keras_hub.models.Backbone, inputs: dict[str, Tensor]) -> Any:
    """The padding mask (B, L), or (B, L, L) if the backbone hides tokens from each other.

    For a Longformer it is the rows with their global tokens.
    """
    if isinstance(backbone, LongformerBackbone):
        return backbone.global_token_marker(
            inputs.get("token_ids", inputs["padding_mask"]),
            inputs["padding_mask"],
            global_attention_mask=inputs.get(GLOBAL_ARGUMENT),
        )
    if getattr(backbone, "hashing", None) is not None:
        return inputs["padding_mask"]
    pattern = Encoder.of(backbone).attention_pattern
    return VisibleTokens(pattern)(inputs["padding_mask"], inputs.get(ARRAYS_READ.get(pattern, "")))


def _find_measure(layer: keras.layers.Layer, backbone: keras_hub.models.Backbone) -> Any:
    """The function from hidden states and their mask to the probabilities of a layer."""
    # A block of a decoder reads its text behind its last token, and an encoder.
    if isinstance(layer, TransformerBlock) and not isinstance(layer, BartBlock):
        return layer.self_attention.compute_probabilities
    if isinstance(layer, ModernBertBlock):
        return layer.compute_probabilities
    if isinstance(layer, keras_hub.layers.TransformerEncoder):
        return lambda states, mask: layer(
            states, padding_mask=mask, training=False, return_attention_scores=True
        )[1]
    raise ValueError(
        f"The {type(layer).__name__} of {with_article(backbone)} does not give its attention "
        "probabilities. Wanted a backbone of this package, or an encoder of KerasHub's "
        "TransformerEncoder layers."
    )


def _to_arrays(tensors):
    return [ops.convert_to_numpy(ops.cast(tensor, "float32")) for tensor in tensors]
