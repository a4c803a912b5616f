"""Layers of documents: a transformer over the vectors of windows, and a random choice of them."""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Shape, Tensor
from keras_bert_suite.layers.attention.rotary_positions import compute_sinusoids
from keras_bert_suite.layers.configured_layer import ConfiguredLayer
from keras_bert_suite.layers.poolings.pooling import MeanPooling
from keras_bert_suite.layers.transformer_block import TransformerBlock


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class WindowTransformer(ConfiguredLayer):
    """Lets the windows of a document attend to each other, and returns the mean of their vectors.

    The document is the mean over its windows of `v + W T(v + p)`. `v` is the vector of a window,
    `p` the sinusoids of its position, `T` transformer blocks, and `W` a linear layer that begins as
    0. So a new layer computes the same as `MeanPooling`, a document of one window keeps its
    vector, and the head of a trained classifier still fits.

    Args:
        num_layers: int.
        num_heads: int, must divide the width H of the vectors.
        intermediate_dim: int, inner width of the feed-forward networks. Defaults to 4 H.
        dropout: float, dropout rate of the blocks, also of their attention probabilities.

    Sources: Pappagari et al., 2019 (https://arxiv.org/abs/1910.10781), section 3.3, for a
    transformer over the vectors of windows; Vaswani et al., 2017
    (https://arxiv.org/abs/1706.03762), section 3.5, for the sinusoids. The sum with the vectors
    themselves, and `W`, are ours.
    """

    def __init__(
        self,
        num_layers: int = 1,
        *,
        num_heads: int = 4,
        intermediate_dim: int | None = None,
        dropout: float = 0.1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.intermediate_dim = intermediate_dim
        self.dropout = dropout
        self.mean = MeanPooling(dtype=self.dtype_policy, name="mean")

    def build(self, vectors_shape: Shape, *_: Shape) -> None:
        hidden_dim = vectors_shape[-1]
        self.blocks = [
            TransformerBlock(
                self.num_heads,
                self.intermediate_dim or 4 * hidden_dim,
                dropout=self.dropout,
                attention_dropout=self.dropout,
                dtype=self.dtype_policy,
                name=f"block_{i}",
            )
            for i in range(self.num_layers)
        ]
        for block in self.blocks:
            block.build(vectors_shape)
        self.output_projection = keras.layers.Dense(
            hidden_dim,
            use_bias=False,
            kernel_initializer="zeros",
            dtype=self.dtype_policy,
            name="output_projection",
        )
        self.output_projection.build(vectors_shape)

    def call(self, vectors: Tensor, padding_mask: Tensor, training: bool | None = None) -> Tensor:
        """Pools the vectors of windows.

        Args:
            vectors: float (B, W, H).
            padding_mask: int or bool (B, W), 0 where a document has no window.
            training: bool, whether dropout is active.

        Returns:
            float (B, H). The mean is computed in float32.
        """
        is_window = ops.cast(padding_mask, "bool")
        vectors = ops.where(is_window[:, :, None], ops.cast(vectors, self.compute_dtype), 0.0)
        positions = compute_sinusoids(ops.arange(ops.shape(vectors)[1]), vectors.shape[-1])
        states = vectors + ops.cast(positions, self.compute_dtype)
        for block in self.blocks:
            states = block(states, is_window, training=training)
        return self.mean(vectors + self.output_projection(states), is_window)

    def compute_output_shape(self, vectors_shape: Shape, *_: Shape) -> Shape:
        return (vectors_shape[0], vectors_shape[-1])


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class WindowSampler(ConfiguredLayer):
    """Keeps a random sample of the windows of each document in training, and all otherwise.

    The windows of a sample keep their order. A document with no more than `num_windows` windows
    keeps all its windows.
    """

    def __init__(self, num_windows: int, *, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.num_windows = num_windows
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def call(self, inputs: dict[str, Tensor], training: bool | None = None) -> dict[str, Tensor]:
        """Chooses windows of a dict of int (B, W, L), in training (B, min(W, `num_windows`), L).

        A window without tokens, whose `padding_mask` is 0, is no window of the document. These
        windows come last.
        """
        if not training:
            return inputs
        is_window = find_windows(inputs["padding_mask"])
        num_rows, num_windows = ops.shape(is_window)
        draws = keras.random.uniform((num_rows, num_windows), seed=self.seed_generator)
        order = ops.argsort(ops.where(is_window, draws, 2.0), axis=1)
        chosen = ops.sort(order[:, : self.num_windows], axis=1)
        indices = chosen + num_windows * ops.arange(num_rows, dtype=chosen.dtype)[:, None]
        return {
            name: ops.take(ops.reshape(x, (-1, ops.shape(x)[2])), indices, axis=0)
            for name, x in inputs.items()
        }


def find_windows(padding_mask: Tensor) -> Tensor:
    """bool (B, W), whether windows have a token, of a mask (B, W, L) that is 0 on padding."""
    return ops.any(ops.cast(padding_mask, "bool"), axis=-1)


class MergeWindows(keras.layers.Layer):
    """Reshapes (B, W, L) to (B * W, L), so that each window is a row of the encoder."""

    def call(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        windows = {
            name: ops.reshape(tensor, (-1, ops.shape(tensor)[2])) for name, tensor in inputs.items()
        }
        # In a row without a token, the attention probabilities of some kernels are NaN, and so
        # would be the gradient. So its first position is unmasked. The vector is not used.
        mask = windows["padding_mask"]
        is_first = ops.arange(ops.shape(mask)[1]) == 0
        is_empty = ops.logical_not(ops.any(mask != 0, axis=1, keepdims=True))
        unmasked = ops.logical_and(is_first, is_empty)
        windows["padding_mask"] = ops.where(unmasked, ops.ones_like(mask), mask)
        return windows
