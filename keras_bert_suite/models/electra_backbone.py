"""ELECTRA, the encoder without a head: discriminator and generator."""

from typing import Any

import keras

from keras_bert_suite.annotations import Activation
from keras_bert_suite.layers import gelu_erf
from keras_bert_suite.models.bert_backbone import BertBackbone


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ElectraBackbone(BertBackbone):
    """A functional ELECTRA encoder: BERT's encoder, whose embeddings may be narrower.

    It has the inputs and outputs of `BertBackbone`. ELECTRA's encoder has no pooler.
    `pooled_output` is the first layer of its heads for texts and for choices, a GELU layer over the
    first position.

    Discriminator and generator are the same kind of encoder, of different sizes.
    `ElectraPretrainer` trains a discriminator together with a generator.

    Args:
        vocabulary_size, num_layers, num_heads, hidden_dim, intermediate_dim: as for
            `BertBackbone`.
        activation: as for `BertBackbone`.
        embedding_dim: as for `BertBackbone`. The small discriminator has 128.
        **kwargs: other arguments of `BertBackbone`.

    Source: Clark et al., 2020 (https://arxiv.org/abs/2003.10555).
    """

    #: "small", "base" and "large" are the sizes of the discriminators. With the uncased vocabulary
    #: of 30,522 they have 13.5, 108.9 and 334.1 million parameters, without the pooler. The other
    #: sizes are BERT's.
    sizes = {
        **BertBackbone.sizes,
        "small": {
            "num_layers": 12,
            "num_heads": 4,
            "hidden_dim": 256,
            "intermediate_dim": 1024,
            "embedding_dim": 128,
        },
    }
    pooler_activation = staticmethod(gelu_erf)
    #: The activation of the generator's head for masked tokens, whatever activation the encoder
    #: has.
    masked_lm_activation = staticmethod(gelu_erf)

    def __init__(self, *sizes: int, activation: Activation = "gelu_erf", **kwargs: Any) -> None:
        super().__init__(*sizes, activation=activation, **kwargs)
