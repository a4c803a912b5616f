"""Blocks of sublayers with residuals, each of which may have an adapter."""

from functools import partial
from typing import Any

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers.adapters.adaptable import Adaptable
from keras_bert_suite.layers.norms import call_norm

#: The sublayers of a block that take a `Bottleneck`.
SELF_ATTENTION, FEEDFORWARD = "self_attention", "feedforward"


class AdaptableBlock(Adaptable):
    """A block whose sublayers end with `close`."""

    def close(
        self,
        sublayer: str,
        hidden: Tensor,
        output: Tensor,
        norm: Any = None,
        training: bool | None = None,
        condition: Tensor | None = None,
    ) -> Tensor:
        """Residual and norm of a sublayer, with its `Bottleneck` if the adapter that acts has one.

        Args:
            sublayer: `SELF_ATTENTION` or `FEEDFORWARD`.
            hidden: float (B, L, H), the input of the sublayer.
            output: float (B, L, H), its output after dropout.
            norm: the norm after the residual; None for none.
            training: bool, whether gradients will be taken.
            condition: float (B, C), of a norm that has one.

        Returns:
            float (B, L, H).
        """
        normalize = _keep if norm is None else partial(call_norm, norm, condition=condition)
        bottleneck = self.find_adapter(name_bottleneck(sublayer))
        if bottleneck is None:
            return normalize(hidden + output)
        return bottleneck.close(hidden, output, normalize, training)


def name_bottleneck(sublayer: str) -> str:
    """The kind of adapter that a sublayer takes."""
    return f"{sublayer}_bottleneck"


def _keep(x: Tensor) -> Tensor:
    return x
