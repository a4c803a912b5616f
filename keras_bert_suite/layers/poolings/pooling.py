"""Layers that turn the hidden states of a text into one vector."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Shape, Tensor
from keras_bert_suite.layers.configured_layer import ConfiguredLayer


class VectorPooling(ConfiguredLayer):
    """A pooling whose vectors have the width of the hidden states."""

    def compute_output_shape(self, sequence_output_shape: Shape, *_: Shape) -> Shape:
        return (sequence_output_shape[0], sequence_output_shape[-1])


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class MeanPooling(VectorPooling):
    """The mean of the hidden states of the tokens, without padding."""

    def call(self, sequence_output: Tensor, padding_mask: Tensor) -> Tensor:
        """Pools hidden states.

        Args:
            sequence_output: float (B, L, H).
            padding_mask: int or bool (B, L), 0 on padding.

        Returns:
            float (B, H). The sum is computed in float32.
        """
        weights = ops.cast(ops.cast(padding_mask, "bool"), "float32")
        total = ops.sum(ops.cast(sequence_output, "float32") * weights[:, :, None], axis=1)
        # A row without a token has the vector 0.
        number = ops.maximum(ops.sum(weights, axis=1, keepdims=True), 1.0)
        return ops.cast(total / number, self.compute_dtype)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class MaxPooling(VectorPooling):
    """The maximum of each feature over the tokens, without padding."""

    def call(self, sequence_output: Tensor, padding_mask: Tensor) -> Tensor:
        """Pools hidden states. Arguments and result are those of `MeanPooling.call`."""
        is_token = ops.cast(padding_mask, "bool")[:, :, None]
        # It is the lowest number that float16 has, too.
        return ops.max(ops.where(is_token, sequence_output, -65504.0), axis=1)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class FirstTokenPooling(VectorPooling):
    """The hidden state of the first token, BERT's [CLS]."""

    def call(self, sequence_output: Tensor, padding_mask: Tensor) -> Tensor:
        """Pools hidden states. Arguments and result are those of `MeanPooling.call`."""
        return sequence_output[:, 0, :]


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class LastTokenPooling(VectorPooling):
    """The hidden state of the last token that is not padding, XLNet's <cls>."""

    def call(self, sequence_output: Tensor, padding_mask: Tensor) -> Tensor:
        """Pools hidden states. Arguments and result are those of `MeanPooling.call`."""
        # The number of tokens up to a place is largest, for the first time, at the last token.
        counts = ops.cumsum(ops.cast(padding_mask, "int32"), axis=1)
        last = ops.argmax(counts, axis=1)[:, None, None]
        return ops.take_along_axis(sequence_output, last, axis=1)[:, 0, :]


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class FirstLastPooling(MeanPooling):
    """The mean over the tokens of the first and of the last transformer layer's hidden states.

    Source: Su et al., 2021 (https://arxiv.org/abs/2103.15316), section 4.1, "first-last-avg".
    """

    #: A task calls such a layer with the embeddings and the outputs of all transformer layers.
    takes_hidden_states = True

    def call(self, hidden_states: Sequence[Tensor], padding_mask: Tensor) -> Tensor:
        """Pools hidden states.

        Args:
            hidden_states: list of float (B, L, H): the embeddings, and the output of each
                transformer layer.
            padding_mask: int or bool (B, L), 0 on padding.

        Returns:
            float (B, H). The sum is computed in float32.
        """
        first, last = (ops.cast(hidden_states[i], "float32") for i in (1, -1))
        return super().call((first + last) / 2.0, padding_mask)

    def compute_output_shape(self, hidden_states_shape: Sequence[Shape], *_: Shape) -> Shape:
        return (hidden_states_shape[0][0], hidden_states_shape[0][-1])


#: The names of pooling layers, and their classes.
POOLINGS = {
    "mean": MeanPooling,
    "cls": FirstTokenPooling,
    "last": LastTokenPooling,
    "max": MaxPooling,
    "first_last_average": FirstLastPooling,
}

#: The place of the summary token in a row -> the pooling "cls" of its hidden state.
SUMMARY_POOLINGS = {"first": FirstTokenPooling, "last": LastTokenPooling}


def get_pooling(
    pooling: str | Mapping[str, Any] | keras.layers.Layer,
    summary_place: str = "first",
    **kwargs: Any,
) -> keras.layers.Layer:
    """The pooling layer of an argument `pooling`.

    Args:
        pooling: a name in `POOLINGS`, a layer, or the configuration of a layer.
        summary_place: "first" or "last", the token that "cls" pools.
        **kwargs: `dtype` and `name` of a layer that is given by its name.

    Raises:
        ValueError: if there is no such layer.
    """
    if pooling == "cls":
        return SUMMARY_POOLINGS[summary_place](**kwargs)
    if isinstance(pooling, str) and pooling in POOLINGS:
        return POOLINGS[pooling](**kwargs)
    if isinstance(pooling, Mapping):
        return keras.layers.deserialize(dict(pooling))
    if isinstance(pooling, keras.layers.Layer):
        return pooling
    raise ValueError(
        f"pooling must be one of {', '.join(POOLINGS)}, or a layer, got {pooling!r}. The layer is "
        "called with the sequence output (B, L, H) and the padding mask (B, L)."
    )


def take_summary(
    sequence_output: Tensor, padding_mask: Tensor, summary_place: str = "first"
) -> Tensor:
    """Symbolic float (B, H), the hidden state of the summary token of each row.

    Args:
        sequence_output: symbolic float (B, L, H).
        padding_mask: symbolic int (B, L), 0 on padding.
        summary_place: "first" or "last".
    """
    if summary_place == "first":
        return sequence_output[:, 0, :]
    pooling = SUMMARY_POOLINGS[summary_place](dtype=sequence_output.dtype, name="summary")
    return pooling(sequence_output, padding_mask)


def call_pooling(pooling: keras.layers.Layer, states: Any, padding_mask: Tensor) -> Any:
    """Calls a pooling layer with hidden states and the padding mask.

    A layer whose `call` has an argument `mask` gets the mask by this name. So it is with the layers
    of Keras, whose second argument may be another: that of an LSTM is its initial state.
    """
    if "mask" in inspect.signature(pooling.call).parameters:
        return pooling(states, mask=padding_mask)
    return pooling(states, padding_mask)


def name_pooling(layer: keras.layers.Layer) -> str | None:
    """The name of a pooling layer in `POOLINGS`, or None."""
    return next((name for name, kind in POOLINGS.items() if type(layer) is kind), None)
