"""NEZHA, the encoder without a head."""

from typing import Any

import keras

from keras_bert_suite.annotations import Activation
from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.layers import RelativeBlock, UnplacedEmbeddings
from keras_bert_suite.models.bert_backbone import BertBackbone


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class NezhaBackbone(BertBackbone):
    """A functional NEZHA encoder: BERT's encoder with functional relative positions.

    There is no table of positions. In the attention layers, keys and values depend on how far they
    are from the query, see `RelativeAttention`.

    It has the inputs and outputs of `BertBackbone`.

    Args:
        vocabulary_size, num_layers, num_heads, hidden_dim, intermediate_dim: as for
            `BertBackbone`. The width of a head must be even.
        activation: as for `BertBackbone`.
        max_relative_position: int, the distance from which on tokens are equally far.
        **kwargs: other arguments of `BertBackbone`.

    Source: Wei et al., 2019 (https://arxiv.org/abs/1909.00204), and huawei-noah's NEZHA.
    """

    #: The sizes of the released models. With the vocabulary of 21,128 of BERT's Chinese model they
    #: have 101.9 and 325.0 million parameters.
    sizes = {size: BertBackbone.sizes[size] for size in ("base", "large")}
    blocks_take_positions = True

    def __init__(
        self,
        *sizes: int,
        activation: Activation = "gelu_erf",
        max_relative_position: int = 64,
        **kwargs: Any,
    ) -> None:
        check_integer("max_relative_position", max_relative_position, at_least=1)
        self.max_relative_position = max_relative_position
        super().__init__(*sizes, activation=activation, **kwargs)

    def make_embeddings(self, **arguments: Any) -> keras.layers.Layer:
        """Makes the layer of embeddings from the arguments of `BertEmbeddings`."""
        return UnplacedEmbeddings(**arguments)

    def make_block(self, index: int, **arguments: Any) -> keras.layers.Layer:
        """Makes the transformer layer `index` from the arguments of `TransformerBlock`."""
        return RelativeBlock(max_relative_position=self.max_relative_position, **arguments)
