"""DistilBERT, the encoder without a head."""

from typing import Any

import keras

from keras_bert_suite.annotations import Activation
from keras_bert_suite.models.bert_backbone import BertBackbone


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class DistilBertBackbone(BertBackbone):
    """A functional DistilBERT encoder: BERT's encoder without segments, with half the layers.

    Inputs, a dictionary: `token_ids` and `padding_mask`, each int32 (B, L); the mask is 1 on
    tokens and 0 on padding. It has the outputs of `BertBackbone`. `pooled_output` is the first
    layer of DistilBERT's heads for texts and for choices, a ReLU layer over the first position.

    Args:
        vocabulary_size, num_layers, num_heads, hidden_dim, intermediate_dim: as for
            `BertBackbone`.
        activation: as for `BertBackbone`.
        num_segments: int, rows of the segment embedding. With more than 0, as no DistilBERT has,
            every token is in segment 0.
        **kwargs: other arguments of `BertBackbone`.

    Source: Sanh et al., 2019 (https://arxiv.org/abs/1910.01108).
    """

    #: The base size has 66.4 million parameters with the uncased vocabulary of 30,522, without the
    #: pooler.
    sizes = {"base": {**BertBackbone.sizes["base"], "num_layers": 6}}
    input_names = ("token_ids", "padding_mask")
    pooler_activation = "relu"

    def __init__(
        self, *sizes: int, activation: Activation = "gelu_erf", num_segments: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(*sizes, activation=activation, num_segments=num_segments, **kwargs)
