"""All that an embedder does after its encoder, as one pooling."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Shape, Tensor
from keras_bert_suite.layers.configured_layer import ConfiguredLayer
from keras_bert_suite.layers.poolings.pooling import call_pooling, get_pooling


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class EmbeddingPooling(ConfiguredLayer):
    """A pooling, and the layers, the length and the cut that a `TextEmbedder` has after it.

    So a classifier reads the vectors that the embedder makes; see `fit_few_shot`.

    Args:
        pooling, dense_layers, normalize, dimensions: as for `TextEmbedder`.
    """

    def __init__(
        self,
        pooling: Any = "mean",
        dense_layers: Sequence[Mapping[str, Any] | keras.layers.Layer] = (),
        normalize: bool = True,
        dimensions: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.pooling = get_pooling(pooling, dtype=self.dtype_policy.name)
        self.takes_hidden_states = getattr(self.pooling, "takes_hidden_states", False)
        self.dense_layers = [
            keras.layers.deserialize(dict(layer)) if isinstance(layer, Mapping) else layer
            for layer in dense_layers
        ]
        self.normalize = normalize
        self.dimensions = dimensions

    def build(self, states_shape: Any, padding_mask_shape: Shape | None = None) -> None:
        if not self.pooling.built:
            self.pooling.build(states_shape)
        shape = self.pooling.compute_output_shape(states_shape, padding_mask_shape)
        for layer in self.dense_layers:
            if not layer.built:
                layer.build(shape)
            shape = layer.compute_output_shape(shape)

    def call(self, states: Any, padding_mask: Tensor) -> Tensor:
        """Pools hidden states, float (B, L, H) or a list of them, with the mask (B, L).

        The result is float32 (B, P), of the length 1 if `normalize`.
        """
        vectors = call_pooling(self.pooling, states, padding_mask)
        for layer in self.dense_layers:
            vectors = layer(vectors)
        vectors = ops.cast(vectors, "float32")
        if self.normalize:
            squares = ops.sum(ops.square(vectors), axis=-1, keepdims=True)
            # The vector 0 stays as it is.
            vectors = vectors * ops.rsqrt(ops.maximum(squares, 1e-24))
        return vectors if self.dimensions is None else vectors[:, : self.dimensions]

    def compute_output_shape(
        self, states_shape: Any, padding_mask_shape: Shape | None = None
    ) -> Shape:
        shape = self.pooling.compute_output_shape(states_shape, padding_mask_shape)
        for layer in self.dense_layers:
            shape = layer.compute_output_shape(shape)
        width = shape[-1]
        cut = width if self.dimensions is None else min(self.dimensions, width)
        return (*shape[:-1], cut)
