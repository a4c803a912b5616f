"""Self-attention with rotary positions."""

from typing import Any

import keras

from keras_bert_suite.annotations import Config, Tensor
from keras_bert_suite.layers.attention_kernels import attention_probabilities
from keras_bert_suite.layers.rotary_positions import count_positions, rotate_pairs
from keras_bert_suite.layers.self_attention import SelfAttention, expand_attention_mask
from keras_bert_suite.layers.transformer_block import TransformerBlock


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class RotaryAttention(SelfAttention):
    """Self-attention whose queries and keys are turned by angles in proportion to their positions.

    So the product of a query and a key depends on their distance. The kernels are those of
    `SelfAttention`.

    Args:
        num_heads: int. The width D of a head must be even.
        rotary_value: bool, whether the values are turned, too.
        **kwargs: other arguments of `SelfAttention`.

    Source: Su et al., 2021 (https://arxiv.org/abs/2104.09864), section 3.2.
    """

    def __init__(self, num_heads: int, rotary_value: bool = False, **kwargs: Any) -> None:
        super().__init__(num_heads, **kwargs)
        self.rotary_value = rotary_value

    def call(
        self,
        hidden: Tensor,
        attention_mask: Tensor | None = None,
        sequence_offsets: Tensor | None = None,
        training: bool | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Lets each position look at the positions that its mask allows.

        Args:
            hidden: float (B, L, H).
            attention_mask, sequence_offsets: as for `SelfAttention.call`.
            training: bool, whether dropout is active.
            positions: int32 (1, L) or (B, L); None for 0 to L - 1.

        Returns:
            float (B, L, H).
        """
        query, key, value = self.project(hidden)
        positions = count_positions(hidden) if positions is None else positions
        query, key = rotate_pairs(query, positions), rotate_pairs(key, positions)
        if self.rotary_value:
            value = rotate_pairs(value, positions)
        context = self.attend(query, key, value, attention_mask, sequence_offsets, training)
        return self.merge(context)

    def compute_probabilities(self, hidden: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """As `SelfAttention.compute_probabilities`, of tokens at the positions 0 to L - 1."""
        query, key, _ = self.project(hidden)
        query, key = (rotate_pairs(x, count_positions(hidden)) for x in (query, key))
        return attention_probabilities(query, key, expand_attention_mask(attention_mask))

    def get_config(self) -> Config:
        return {**super().get_config(), "rotary_value": self.rotary_value}


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class RotaryBlock(TransformerBlock):
    """`TransformerBlock` with `RotaryAttention`.

    Args:
        num_heads, intermediate_dim: as for `TransformerBlock`.
        rotary_value: as for `RotaryAttention`.
        **kwargs: other arguments of `TransformerBlock`.
    """

    def __init__(
        self, num_heads: int, intermediate_dim: int, rotary_value: bool = False, **kwargs: Any
    ) -> None:
        self.rotary_value = rotary_value
        super().__init__(num_heads, intermediate_dim, **kwargs)

    def make_attention(self, **arguments: Any) -> RotaryAttention:
        """Makes the attention layer from the arguments of `SelfAttention`."""
        return RotaryAttention(rotary_value=self.rotary_value, **arguments)

    def get_config(self) -> Config:
        return {**super().get_config(), "rotary_value": self.rotary_value}
