"""ALBERT, the encoder without a head."""

from typing import Any

import keras

from keras_bert_suite.annotations import Activation
from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.layers import ProjectedEmbeddings
from keras_bert_suite.models.bert_backbone import BertBackbone


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class AlbertBackbone(BertBackbone):
    """A functional ALBERT encoder: BERT's encoder, whose layers share their weights.

    The embeddings are narrower than the hidden states, and are projected to them. The layers of a
    group are called several times. `num_layers` is the number of these calls, and not the number of
    different layers.

    It has the inputs and outputs of `BertBackbone`. With `output_hidden_states` there are
    `num_layers * num_inner_repetitions + 1` hidden states.

    Args:
        vocabulary_size, num_heads, hidden_dim, intermediate_dim: as for `BertBackbone`.
        num_layers: int, how often a group of layers is called. Consecutive calls belong to the
            same group.
        activation: as for `BertBackbone`.
        dropout: float. Version 2 of ALBERT was pretrained without dropout.
        embedding_dim: int, width of the embedding tables.
        num_groups: int, groups of layers. Groups share no weights.
        num_inner_repetitions: int, layers of a group, which are called one after the other and
            share no weights. The name is KerasHub's.
        **kwargs: other arguments of `BertBackbone`.

    Source: Lan et al., 2019 (https://arxiv.org/abs/1909.11942), and google-research/albert.
    """

    #: The sizes of the paper. With its vocabulary of 30,000 they have 11.7, 17.7, 58.7 and 222.6
    #: million parameters. The paper counts 12, 18, 60 and 235 million.
    sizes = {
        size: {
            "num_layers": num_layers,
            "num_heads": num_heads,
            "hidden_dim": hidden_dim,
            "intermediate_dim": 4 * hidden_dim,
        }
        for size, (num_layers, hidden_dim, num_heads) in {
            "base": (12, 768, 12),
            "large": (24, 1024, 16),
            "xlarge": (24, 2048, 16),
            "xxlarge": (12, 4096, 64),
        }.items()
    }

    sizes_by_layer = ()  # The layers share their weights.

    def __init__(
        self,
        *sizes: int,
        activation: Activation = "gelu_tanh",
        dropout: float = 0.0,
        embedding_dim: int = 128,
        num_groups: int = 1,
        num_inner_repetitions: int = 1,
        **kwargs: Any,
    ) -> None:
        check_integer("num_groups", num_groups, at_least=1)
        check_integer("num_inner_repetitions", num_inner_repetitions, at_least=1)
        self.num_groups = num_groups
        self.num_inner_repetitions = num_inner_repetitions
        super().__init__(
            *sizes, activation=activation, dropout=dropout, embedding_dim=embedding_dim, **kwargs
        )

    def make_embeddings(self, **arguments: Any) -> keras.layers.Layer:
        """Makes the layer of embeddings from the arguments of `BertEmbeddings`."""
        return ProjectedEmbeddings(**arguments)

    def name_blocks(self, num_layers: int) -> list[str]:
        """The names of the transformer layers that own weights: the group, and the layer in it."""
        if self.num_groups > num_layers:
            raise ValueError(
                f"num_groups must be between 1 and num_layers={num_layers}, got {self.num_groups}."
            )
        return [
            f"transformer_layer_{group}_{layer}"
            for group in range(self.num_groups)
            for layer in range(self.num_inner_repetitions)
        ]

    def list_calls(self) -> list[keras.layers.Layer]:
        """The transformer layers in the order in which they are called."""
        size = self.num_inner_repetitions
        groups = share_layers(self.num_layers, self.num_groups)
        return [self.transformer_layers[group * size + i] for group in groups for i in range(size)]


def share_layers(num_layers: int, num_groups: int) -> list[int]:
    """The number of the group of each of `num_layers` layers: about equal shares, in order."""
    # The division of transformers, with its rounding. If the groups are not of equal size, the
    # quotient of integers differs from it for some layers.
    return [int(i / (num_layers / num_groups)) for i in range(num_layers)]
