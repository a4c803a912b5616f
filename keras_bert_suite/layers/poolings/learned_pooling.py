"""Layers with weights that turn the hidden states of a text into one vector."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Dtype, Shape, Tensor
from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.layers.configured_layer import ConfiguredLayer
from keras_bert_suite.layers.poolings.pooling import VectorPooling, call_pooling, get_pooling


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class AttentionPooling(VectorPooling):
    """A weighted mean of the hidden states of the tokens, with learned weights.

    The weight of a token is softmax(v . tanh(W h + b)) over the tokens of its text.

    Args:
        units: int, the width of W. Defaults to the width H of the hidden states.

    Source: Lin et al., 2017 (https://arxiv.org/abs/1703.03130), section 2.1, with one hop and a
    bias.
    """

    def __init__(self, units: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units = units

    def build(self, sequence_shape: Shape) -> None:
        units = self.units or sequence_shape[-1]
        self.hidden = keras.layers.Dense(
            units, activation="tanh", dtype=self.dtype_policy, name="hidden"
        )
        self.score = keras.layers.Dense(1, use_bias=False, dtype=self.dtype_policy, name="score")
        self.hidden.build(sequence_shape)
        self.score.build((*sequence_shape[:-1], units))

    def call(self, sequence_output: Tensor, padding_mask: Tensor) -> Tensor:
        """Pools hidden states.

        Args:
            sequence_output: float (B, L, H).
            padding_mask: int or bool (B, L), 0 on padding.

        Returns:
            float (B, H). The sum is computed in float32. A row without a token has the vector 0.
        """
        is_token = ops.cast(padding_mask, "bool")
        scores = ops.cast(self.score(self.hidden(sequence_output))[:, :, 0], "float32")
        weights = ops.softmax(ops.where(is_token, scores, -1e30), axis=-1)
        weights = ops.where(is_token, weights, 0.0)
        # Padding may hold any number, and 0 times NaN is NaN.
        states = ops.where(is_token[:, :, None], ops.cast(sequence_output, "float32"), 0.0)
        return ops.cast(ops.sum(states * weights[:, :, None], axis=1), self.compute_dtype)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ConvolutionPooling(ConfiguredLayer):
    """Convolutions over the tokens, and the maximum of each filter over the text.

    A filter that reaches beyond the end of a text sees zeros there.

    Args:
        filters: int F, filters of each width.
        widths: tuple of int, how many tokens the filters see.

    Source: Kim, 2014 (https://arxiv.org/abs/1408.5882), section 2.
    """

    def __init__(
        self, filters: int = 100, *, widths: Sequence[int] = (2, 3, 4, 5), **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if not widths or min(widths) < 1:
            raise ValueError(f"widths must be one or more ints of at least 1, got {widths!r}.")
        self.filters = filters
        self.widths = tuple(widths)

    def build(self, sequence_shape: Shape) -> None:
        self.convolutions = [
            keras.layers.Conv1D(
                self.filters, width, activation="relu", dtype=self.dtype_policy, name=f"width_{i}"
            )
            for i, width in enumerate(self.widths)
        ]
        for convolution in self.convolutions:
            convolution.build(sequence_shape)

    def call(self, sequence_output: Tensor, padding_mask: Tensor) -> Tensor:
        """Pools hidden states.

        Args:
            sequence_output: float (B, L, H).
            padding_mask: int or bool (B, L), 0 on padding.

        Returns:
            float (B, F * number of widths). A row without a token has the vector 0.
        """
        is_token = ops.cast(padding_mask, "bool")[:, :, None]
        states = ops.where(is_token, ops.cast(sequence_output, self.compute_dtype), 0.0)
        pooled = []
        for width, convolution in zip(self.widths, self.convolutions, strict=True):
            found = convolution(ops.pad(states, [[0, 0], [0, width - 1], [0, 0]]))
            # Filters that begin on padding do not count. No output of a ReLU is below 0.
            pooled.append(ops.max(ops.where(is_token, found, 0.0), axis=1))
        return ops.concatenate(pooled, axis=-1)

    def compute_output_shape(self, sequence_output_shape: Shape, *_: Shape) -> Shape:
        return (sequence_output_shape[0], self.filters * len(self.widths))


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class _OrthogonalMatrix(keras.initializers.Orthogonal):
    """Drawn in float32, because PyTorch and TensorFlow factorize no matrices of 16 bits."""

    def __call__(self, shape: Shape, dtype: Dtype | None = None) -> Tensor:
        return ops.cast(super().__call__(shape, dtype="float32"), dtype or keras.config.floatx())


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class BiLSTMPooling(ConfiguredLayer):
    """The last states of two LSTMs: one reads the text forwards, the other backwards.

    Args:
        units: int, width of each LSTM. Defaults to half the width H of the hidden states.

    Source: Graves and Schmidhuber, 2005 (https://doi.org/10.1016/j.neunet.2005.06.042).
    """

    def __init__(self, units: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units = units

    def build(self, sequence_shape: Shape) -> None:
        units = self.units or sequence_shape[-1] // 2
        lstm = keras.layers.LSTM(
            units, recurrent_initializer=_OrthogonalMatrix(), dtype=self.dtype_policy
        )
        self.lstm = keras.layers.Bidirectional(lstm, dtype=self.dtype_policy, name="lstm")
        self.lstm.build(sequence_shape)

    def call(
        self, sequence_output: Tensor, padding_mask: Tensor, training: bool | None = None
    ) -> Tensor:
        """Pools hidden states.

        Args:
            sequence_output: float (B, L, H).
            padding_mask: int or bool (B, L), 0 on padding.
            training: bool.

        Returns:
            float (B, 2 * units). A row without a token has the vector 0.
        """
        states = ops.cast(sequence_output, self.compute_dtype)
        return self.lstm(states, mask=ops.cast(padding_mask, "bool"), training=training)

    def compute_output_shape(self, sequence_output_shape: Shape, *_: Shape) -> Shape:
        return (sequence_output_shape[0], 2 * (self.units or sequence_output_shape[-1] // 2))


class _PooledLayers(ConfiguredLayer):
    """Makes one sequence (B, L, P) of all hidden states, and may pool it by an inner layer."""

    takes_hidden_states = True

    def __init__(
        self, pooling: str | Mapping[str, Any] | keras.layers.Layer | None = "mean", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if pooling is not None:
            pooling = get_pooling(pooling, dtype=self.dtype_policy.name, name="pooling")
        self.pooling = pooling
        if getattr(self.pooling, "takes_hidden_states", False):
            raise ValueError(
                f"The pooling of {with_article(self)} is called with one sequence, and "
                f"{with_article(self.pooling)} takes all hidden states. Choose a layer such as "
                "MeanPooling()."
            )

    def call(self, hidden_states: Sequence[Tensor], padding_mask: Tensor) -> Tensor:
        """Pools hidden states (B, L, H): the embeddings, and the output of each transformer layer.

        The result is (B, P), from `pooling`, or without a pooling the sequence (B, L, P).
        """
        combined = self.combine(hidden_states)
        if self.pooling is None:
            return combined
        return call_pooling(self.pooling, combined, padding_mask)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ScalarMix(_PooledLayers):
    """A learned mean of the embeddings and of all layers, pooled: scale * sum of softmax(w)_j h_j.

    Args:
        pooling: as for `get_pooling`: a name, or a layer that is called with the mean (B, L, H)
            and the padding mask (B, L). None returns the mean itself, for the `head_layers` of a
            task on tokens.

    Source: Peters et al., 2018, ELMo (https://arxiv.org/abs/1802.05365), equation 1.
    """

    def build(self, hidden_states_shape: Sequence[Shape]) -> None:
        self.layer_weights = self.add_weight(
            shape=(len(hidden_states_shape),), initializer="zeros", name="layer_weights"
        )
        self.scale = self.add_weight(shape=(), initializer="ones", name="scale")

    def combine(self, hidden_states: Sequence[Tensor]) -> Tensor:
        """float (B, L, H), the learned mean. It is computed in float32."""
        weights = ops.softmax(ops.cast(self.layer_weights, "float32"))
        mixed = sum(
            weights[i] * ops.cast(states, "float32") for i, states in enumerate(hidden_states)
        )
        return ops.cast(ops.cast(self.scale, "float32") * mixed, self.compute_dtype)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class LastLayers(_PooledLayers):
    """The outputs of the last layers, side by side, pooled.

    Args:
        num_layers: int n, how many layers.
        pooling: as for `get_pooling`: a name, or a layer that is called with the outputs
            (B, L, n H) and the padding mask (B, L). None returns the outputs themselves, for the
            `head_layers` of a task on tokens.

    Source: Devlin et al., 2018 (https://arxiv.org/abs/1810.04805), section 5.3, "Concat Last Four
    Hidden".
    """

    def __init__(
        self,
        num_layers: int = 4,
        *,
        pooling: str | Mapping[str, Any] | keras.layers.Layer | None = "mean",
        **kwargs: Any,
    ) -> None:
        super().__init__(pooling, **kwargs)
        self.num_layers = num_layers

    def build(self, hidden_states_shape: Sequence[Shape]) -> None:
        available = len(hidden_states_shape) - 1
        if not 1 <= self.num_layers <= available:
            raise ValueError(
                f"num_layers must be from 1 to {available}, the number of layers of the backbone, "
                f"got {self.num_layers}."
            )

    def combine(self, hidden_states: Sequence[Tensor]) -> Tensor:
        """float (B, L, n H), the first of the layers first."""
        return ops.concatenate(list(hidden_states[-self.num_layers :]), axis=-1)
