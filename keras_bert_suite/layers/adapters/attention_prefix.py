"""Learned keys and values that stand before those of an attention layer."""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers.configured_layer import ConfiguredLayer
from keras_bert_suite.layers.eager_pass import read_weight


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class PrefixVectors(ConfiguredLayer):
    """The keys and values of a prefix for several attention layers, made by one small network.

    A table (P, H) goes through `tanh(table W1 + b1) W2 + b2`, whose outputs are the keys and the
    values (P, H) of each layer. Without a `bottleneck_dim` they are weights themselves.

    Args:
        length: int P, the number of keys.
        num_layers: int, attention layers.
        hidden_dim: int H.
        bottleneck_dim: int, inner width of the network; None for no network.
        initializer_range: float, standard deviation of the normal of the weights.

    Source: Li and Liang, 2021 (https://arxiv.org/abs/2101.00190), section 4.3.
    """

    def __init__(
        self,
        length: int,
        num_layers: int,
        hidden_dim: int,
        bottleneck_dim: int | None = 512,
        initializer_range: float = 0.02,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.length = length
        self.num_layers = num_layers
        self.hidden_dim = hidden_dim
        self.bottleneck_dim = bottleneck_dim
        self.initializer_range = initializer_range

    def build(self, shape: Any = None) -> None:
        draw = keras.initializers.RandomNormal(stddev=self.initializer_range)
        rows, layers = (self.length, self.hidden_dim), (self.num_layers, 2, self.hidden_dim)
        if self.bottleneck_dim is None:
            self.vectors = self.add_weight((self.length, *layers), draw, name="vectors")
        else:
            width = self.bottleneck_dim
            self.table = self.add_weight(rows, draw, name="table")
            self.down_kernel = self.add_weight((self.hidden_dim, width), draw, name="down_kernel")
            self.down_bias = self.add_weight((width,), "zeros", name="down_bias")
            self.up_kernel = self.add_weight((width, *layers), draw, name="up_kernel")
            self.up_bias = self.add_weight(layers, "zeros", name="up_bias")
        self.built = True

    def find_pair(self, index: int) -> tuple[Tensor, Tensor]:
        """Keys and values of the attention layer `index`, two of float32 (P, H)."""
        if self.bottleneck_dim is None:
            both = _read(self.vectors)[:, index]
        else:
            inner = ops.tanh(
                ops.matmul(_read(self.table), _read(self.down_kernel)) + _read(self.down_bias)
            )
            kernel = _read(self.up_kernel)[:, index]
            flat = ops.matmul(inner, ops.reshape(kernel, (self.bottleneck_dim, -1)))
            both = ops.reshape(flat, (self.length, 2, -1)) + _read(self.up_bias)[index]
        return both[:, 0], both[:, 1]


class AttentionPrefix(keras.layers.Layer):
    """The prefix of one attention layer.

    Args:
        vectors: `PrefixVectors`, of all attention layers.
        index: int, which of them this one is.
    """

    def __init__(self, vectors: PrefixVectors, index: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.vectors = vectors
        self.index = index
        self.built = True

    def prepend(
        self, key: Tensor, value: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Puts the prefix before keys and values. Each query sees all of it.

        Args:
            key, value: float (B, heads, S, D).
            mask: bool, broadcastable to (B, heads, L, S), or None.

        Returns:
            keys and values, float (B, heads, P + S, D), and the mask with P + S keys.
        """
        batch, heads, keys, width = ops.shape(key)
        pair = []
        for own, x in zip(self.vectors.find_pair(self.index), (key, value), strict=True):
            split = ops.swapaxes(ops.reshape(own, (-1, heads, width)), 0, 1)
            rows = ops.broadcast_to(ops.cast(split, x.dtype)[None], (batch, *split.shape))
            pair.append(ops.concatenate([rows, x], axis=2))
        if mask is not None:
            shape = ops.shape(mask)
            mask = ops.broadcast_to(mask, (*shape[:3], keys))
            seen = ops.ones((*shape[:3], self.vectors.length), "bool")
            mask = ops.concatenate([seen, mask], axis=-1)
        return pair[0], pair[1], mask


def _read(weight: Any) -> Tensor:
    return ops.cast(read_weight(weight), "float32")
