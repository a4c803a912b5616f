"""Narrow feed-forward networks within the blocks of an encoder."""

from typing import Any

import keras

from keras_bert_suite.annotations import Activation
from keras_bert_suite.argument_checks import check_integer, check_positive
from keras_bert_suite.layers.activations import gelu_tanh
from keras_bert_suite.layers.adapters.adaptable import choose_policy, name_layer, scope_of
from keras_bert_suite.layers.adapters.adaptable_block import (
    FEEDFORWARD,
    SELF_ATTENTION,
    AdaptableBlock,
    name_bottleneck,
)
from keras_bert_suite.layers.adapters.bottleneck import Bottleneck
from keras_bert_suite.models.adaptations.adaptation import Adaptation, Made, list_layers, refuse


class _BottleneckAdapters(Adaptation):
    """Adds a `Bottleneck` to some sublayers of each block."""

    #: The sublayers, and whether the bottleneck reads their norm.
    sublayers: tuple[str, ...]
    reads_norm: bool
    activation: Any
    initializer_range: float

    def choose_width(self, hidden_dim: int) -> int:
        """The inner width for hidden states of a width."""
        raise NotImplementedError

    def make_layers(self, encoder: Any, name: str) -> list[Made]:
        blocks = list_layers(encoder, AdaptableBlock)
        if not blocks:
            raise refuse(self, encoder, "It has no transformer blocks.")
        hidden_dim, made = encoder.hidden_dim, []
        for block in blocks:
            for sublayer in self.sublayers:
                kind = name_bottleneck(sublayer)
                bottleneck = Bottleneck(
                    self.choose_width(hidden_dim),
                    self.activation,
                    self.reads_norm,
                    self.initializer_range,
                    dtype=choose_policy(block),
                    name=name_layer(kind, name),
                )
                with scope_of(block):
                    bottleneck.build((None, None, hidden_dim))
                made.append((block, kind, bottleneck))
        return made


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class HoulsbyAdapters(_BottleneckAdapters):
    """Adds a narrow feed-forward network after both sublayers of each block, and trains all norms.

    See `Bottleneck` for the formula. A step of training is faster than full training, and a served
    model is a little slower than without. The defaults are those of its authors.

    Args:
        bottleneck_dim: int, the inner width.
        activation: callable, or Keras' name of one.
        initializer_range: float, standard deviation of the truncated normal of both kernels. A
            small one begins near the encoder itself.

    Source: Houlsby et al., 2019 (https://arxiv.org/abs/1902.00751), and
    google-research/adapter-bert.
    """

    trained = (r".*norm/(gamma|beta)",)
    learning_rate = 3e-4
    sublayers = (SELF_ATTENTION, FEEDFORWARD)
    reads_norm = False

    def __init__(
        self,
        bottleneck_dim: int = 64,
        activation: Activation = gelu_tanh,
        initializer_range: float = 1e-3,
    ) -> None:
        check_integer("bottleneck_dim", bottleneck_dim, at_least=1)
        check_positive("initializer_range", initializer_range)
        self.bottleneck_dim = bottleneck_dim
        self.activation = keras.activations.serialize(keras.activations.get(activation))
        self.initializer_range = initializer_range

    def choose_width(self, hidden_dim: int) -> int:
        return self.bottleneck_dim


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class PfeifferAdapters(_BottleneckAdapters):
    """Adds a narrow feed-forward network after the feed-forward network of each block.

    See `Bottleneck` for the formula. It has half the layers of `HoulsbyAdapters`, and trains no
    norm, so that several of them go on one encoder. The defaults are those of `SeqBnConfig` of the
    library adapters.

    Args:
        reduction: int, by which the width of the hidden states is divided for the inner width.
        activation: callable, or Keras' name of one.
        initializer_range: float, standard deviation of the truncated normal of both kernels.

    Source: Pfeiffer et al., 2020 (https://arxiv.org/abs/2005.00247).
    """

    learning_rate = 1e-4
    sublayers = (FEEDFORWARD,)
    reads_norm = True

    def __init__(
        self,
        reduction: int = 16,
        activation: Activation = "relu",
        initializer_range: float = 0.02,
    ) -> None:
        check_integer("reduction", reduction, at_least=1)
        check_positive("initializer_range", initializer_range)
        self.reduction = reduction
        self.activation = keras.activations.serialize(keras.activations.get(activation))
        self.initializer_range = initializer_range

    def choose_width(self, hidden_dim: int) -> int:
        return max(1, hidden_dim // self.reduction)
