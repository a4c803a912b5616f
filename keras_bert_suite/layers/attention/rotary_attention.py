"""Self-attention with rotary positions."""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers.attention.rotary_positions import rotate_pairs
from keras_bert_suite.layers.attention.self_attention import SelfAttention
from keras_bert_suite.layers.transformer_block import TransformerBlock


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class RotaryAttention(SelfAttention):
    """Self-attention whose queries and keys are turned by angles in proportion to their positions.

    So the product of a query and a key depends on their distance. It has the kernels of
    `SelfAttention`.

    Args:
        num_heads: int. The width D of a head must be even.
        rotary_value: bool, whether the values are turned, too.
        use_bias: bool, whether the projections have biases.
        **kwargs: other arguments of `SelfAttention`.

    Source: Su et al., 2021 (https://arxiv.org/abs/2104.09864), section 3.2.
    """

    has_even_heads = True

    def __init__(
        self, num_heads: int, rotary_value: bool = False, use_bias: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(num_heads, **kwargs)
        self.rotary_value = rotary_value
        self.use_bias = use_bias

    def place_queries(self, query: Tensor, positions: Tensor | None) -> Tensor:
        """Turns queries by angles in proportion to their positions.

        Args, Returns: as for `SelfAttention.place_queries`.
        """
        return _turn(query, positions)

    def place_keys(
        self, key: Tensor, value: Tensor, positions: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Turns keys, and values if the layer turns them, as `place_queries` turns queries.

        Args, Returns: as for `SelfAttention.place_keys`.
        """
        return _turn(key, positions), _turn(value, positions) if self.rotary_value else value


def _turn(x: Tensor, positions: Tensor | None) -> Tensor:
    """`rotate_pairs` of (B, heads, L, D), by default at the positions 0 to L - 1."""
    if positions is None:
        positions = ops.arange(ops.shape(x)[2], dtype="int32")[None]
    return rotate_pairs(x, positions)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class RotaryBlock(TransformerBlock):
    """`TransformerBlock` with `RotaryAttention`.

    Args:
        num_heads, intermediate_dim: as for `TransformerBlock`.
        rotary_value: as for `RotaryAttention`.
        use_bias: bool, whether the layers have biases.
        norm_type: str, a key of `NORM_TYPES`.
        **kwargs: other arguments of `TransformerBlock`.
    """

    def __init__(
        self,
        num_heads: int,
        intermediate_dim: int,
        rotary_value: bool = False,
        use_bias: bool = True,
        norm_type: str = "layer_norm",
        **kwargs: Any,
    ) -> None:
        self.rotary_value = rotary_value
        self.use_bias = use_bias
        self.norm_type = norm_type
        super().__init__(num_heads, intermediate_dim, **kwargs)

    def make_attention(self, **arguments: Any) -> RotaryAttention:
        """Makes the attention layer from the arguments of `SelfAttention`."""
        return RotaryAttention(rotary_value=self.rotary_value, use_bias=self.use_bias, **arguments)
