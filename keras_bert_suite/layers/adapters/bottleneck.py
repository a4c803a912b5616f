"""A narrow feed-forward network that is added to a sublayer of a transformer block."""

from collections.abc import Callable
from typing import Any

import keras

from keras_bert_suite.annotations import Activation, Shape, Tensor
from keras_bert_suite.layers.configured_layer import ShapeKeepingLayer
from keras_bert_suite.layers.dense import make_dense
from keras_bert_suite.layers.inner_call import call_inner


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class Bottleneck(ShapeKeepingLayer):
    """`W2 activation(W1 x + b1) + b2`, and the end of a sublayer that has it.

    With s the output of the sublayer after dropout, h its input, and N its norm, the end of the
    sublayer is, instead of N(h + s):

    - N(h + s + bottleneck(s)), as Houlsby et al. have it;
    - with `reads_norm` N(h + s + bottleneck(N(h + s))), as Pfeiffer et al. have it. The norm is
      computed twice, with the same weights.

    A sublayer with its norm before it has no N, or N(x) = x.

    Args:
        bottleneck_dim: int, the inner width.
        activation: callable, or Keras' name of one.
        reads_norm: bool.
        initializer_range: float, standard deviation of the truncated normal of both kernels.

    Source: Houlsby et al., 2019 (https://arxiv.org/abs/1902.00751), section 2.1, and
    google-research/adapter-bert; Pfeiffer et al., 2020 (https://arxiv.org/abs/2005.00247), and
    `SeqBnConfig` of adapters.
    """

    def __init__(
        self,
        bottleneck_dim: int,
        activation: Activation,
        reads_norm: bool = False,
        initializer_range: float = 1e-3,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.bottleneck_dim = bottleneck_dim
        self.activation = keras.activations.get(activation)
        self.reads_norm = reads_norm
        self.initializer_range = initializer_range

    def build(self, shape: Shape) -> None:
        width, stddev = self.bottleneck_dim, self.initializer_range
        self.down = make_dense(self, width, "down", shape, stddev, activation=self.activation)
        self.up = make_dense(self, shape[-1], "up", (*shape[:-1], width), stddev)

    def call(self, x: Tensor, training: bool | None = None) -> Tensor:
        """float (B, L, H) -> (B, L, H), without the residual."""
        return call_inner(self.up, call_inner(self.down, x, training=training), training=training)

    def close(
        self,
        hidden: Tensor,
        output: Tensor,
        normalize: Callable[[Tensor], Tensor],
        training: bool | None = None,
    ) -> Tensor:
        """The end of a sublayer, see the class.

        Args:
            hidden: float (B, L, H), h.
            output: float (B, L, H), s.
            normalize: function of float (B, L, H), N.
            training: bool, whether gradients will be taken.

        Returns:
            float (B, L, H).
        """
        both = hidden + output
        read = normalize(both) if self.reads_norm else output
        return normalize(both + call_inner(self, read, training=training))
