"""RoFormer, the encoder without a head."""

from typing import Any

import keras

from keras_bert_suite.annotations import Activation, Config, Tensor
from keras_bert_suite.layers import RotaryBlock, TokenPositions, UnplacedEmbeddings
from keras_bert_suite.models.bert_backbone import BertBackbone, get_activation


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class RoFormerBackbone(BertBackbone):
    """A functional RoFormer encoder: BERT's encoder with rotary positions.

    There is no table of positions. The attention layers turn queries and keys by angles in
    proportion to their positions.

    Inputs and outputs are those of `BertBackbone`. RoFormer's encoder has no pooler.
    `pooled_output` is the first layer of its head for texts, with the activation of the encoder.

    Args:
        vocabulary_size, num_layers, num_heads, hidden_dim, intermediate_dim: as for
            `BertBackbone`. The width of a head must be even.
        activation: as for `BertBackbone`.
        max_sequence_length: int, the most tokens in a row.
        rotary_value: bool, whether the values are turned, too.
        **kwargs: other arguments of `BertBackbone`.

    Source: Su et al., 2021 (https://arxiv.org/abs/2104.09864), and ZhuiyiTechnology/roformer.
    """

    #: The sizes of the released models. With their vocabulary of 50,000 words they have 30.1 and
    #: 124.1 million parameters.
    sizes = {
        "small": {"num_layers": 6, "num_heads": 6, "hidden_dim": 384, "intermediate_dim": 1536},
        "base": BertBackbone.sizes["base"],
    }

    def __init__(
        self,
        vocabulary_size: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        intermediate_dim: int,
        activation: Activation = "gelu_erf",
        max_sequence_length: int = 1536,
        rotary_value: bool = False,
        **kwargs: Any,
    ) -> None:
        if hidden_dim // num_heads % 2:
            raise ValueError(
                f"RoFormer turns pairs of dimensions, so the width of a head must be even, got "
                f"hidden_dim={hidden_dim} and num_heads={num_heads}."
            )
        self.rotary_value = rotary_value
        self.pooler_activation = get_activation(activation)
        super().__init__(
            vocabulary_size,
            num_layers,
            num_heads,
            hidden_dim,
            intermediate_dim,
            activation=activation,
            max_sequence_length=max_sequence_length,
            **kwargs,
        )

    def make_embeddings(self, **arguments: Any) -> keras.layers.Layer:
        """Makes the layer of embeddings from the arguments of `BertEmbeddings`."""
        return UnplacedEmbeddings(**arguments)

    def make_block(self, index: int, **arguments: Any) -> keras.layers.Layer:
        """Makes the transformer layer `index` from the arguments of `TransformerBlock`."""
        return RotaryBlock(rotary_value=self.rotary_value, **arguments)

    def encode(self, x: Tensor, **attention: Tensor) -> list[Tensor]:
        """The hidden states of all layers, see `BertBackbone.encode`."""
        positions = TokenPositions(dtype=self.embeddings.dtype_policy, name="token_positions")(x)
        return super().encode(x, positions=positions, **attention)

    def get_config(self) -> Config:
        return {**super().get_config(), "rotary_value": self.rotary_value}
