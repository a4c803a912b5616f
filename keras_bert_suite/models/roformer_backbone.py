"""RoFormer, the encoder without a head."""

from typing import Any

import keras

from keras_bert_suite.annotations import Activation
from keras_bert_suite.layers import RotaryBlock, UnplacedEmbeddings
from keras_bert_suite.models.activations import get_activation
from keras_bert_suite.models.bert_backbone import BertBackbone


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class RoFormerBackbone(BertBackbone):
    """A functional RoFormer encoder: BERT's encoder with rotary positions.

    There is no table of positions. The attention layers rotate queries and keys by angles in
    proportion to their positions.

    RoFormerV2 is `RoFormerBackbone(..., activation="relu", use_bias=False, norm_type="rms_norm")`.

    It has the inputs and outputs of `BertBackbone`. RoFormer's encoder has no pooler.
    `pooled_output` is the first layer of its head for texts, with the activation of the encoder.

    Args:
        vocabulary_size, num_layers, num_heads, hidden_dim, intermediate_dim: as for
            `BertBackbone`. The width of a head must be even.
        activation: as for `BertBackbone`.
        max_sequence_length: int, the maximum sequence length; None for rows of any length.
        rotary_value: bool, whether the values are rotated, too.
        use_bias: bool, whether the layers of the blocks have biases. The projection of embeddings
            and the pooler always have.
        norm_type: str, "layer_norm", or "rms_norm" for norms without a mean and without weights.
        **kwargs: other arguments of `BertBackbone`.

    Source: Su et al., 2021 (https://arxiv.org/abs/2104.09864), ZhuiyiTechnology/roformer and
    ZhuiyiTechnology/roformer-v2.
    """

    #: The sizes of the released models. With their vocabulary of 50,000 words they have 30.0 and
    #: 124.1 million parameters. RoFormerV2 has these sizes, and the size of BERT's large model.
    sizes = {
        "small": {"num_layers": 6, "num_heads": 6, "hidden_dim": 384, "intermediate_dim": 1536},
        "base": BertBackbone.sizes["base"],
        "large": BertBackbone.sizes["large"],
    }
    blocks_take_positions = True

    def __init__(
        self,
        *sizes: int,
        activation: Activation = "gelu_erf",
        max_sequence_length: int | None = 1536,
        rotary_value: bool = False,
        use_bias: bool = True,
        norm_type: str = "layer_norm",
        **kwargs: Any,
    ) -> None:
        self.rotary_value = rotary_value
        self.use_bias = use_bias
        self.norm_type = norm_type
        self.pooler_activation = get_activation(activation)
        if norm_type == "rms_norm":
            # Its head for masked tokens is the product with the token embedding alone.
            self.token_transform = keras.layers.Identity(
                dtype=kwargs.get("dtype"), name="token_transform"
            )
        super().__init__(
            *sizes, activation=activation, max_sequence_length=max_sequence_length, **kwargs
        )

    def make_embeddings(self, **arguments: Any) -> keras.layers.Layer:
        """Makes the layer of embeddings from the arguments of `BertEmbeddings`."""
        return UnplacedEmbeddings(norm_type=self.norm_type, **arguments)

    def make_block(self, index: int, **arguments: Any) -> keras.layers.Layer:
        """Makes the transformer layer `index` from the arguments of `TransformerBlock`."""
        return RotaryBlock(
            rotary_value=self.rotary_value,
            use_bias=self.use_bias,
            norm_type=self.norm_type,
            **arguments,
        )
