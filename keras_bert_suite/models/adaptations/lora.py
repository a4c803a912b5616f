"""Low-rank adaptation of dense layers."""

import math
import re
from typing import Any

import keras

from keras_bert_suite.annotations import Patterns
from keras_bert_suite.argument_checks import (
    check_below_one,
    check_flag,
    check_integer,
    check_patterns,
    check_positive,
)
from keras_bert_suite.layers.adapters.adaptable import choose_policy, name_layer, scope_of
from keras_bert_suite.layers.adapters.low_rank import LowRank
from keras_bert_suite.layers.dense import LOW_RANK, Dense
from keras_bert_suite.models.adaptations.adaptation import Adaptation, Made, list_layers, refuse

#: The projections of queries and values. ModernBERT has one layer for all three.
QUERY_AND_VALUE = (r".*/(query|value|query_key_value)",)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class LoRA(Adaptation):
    """Adds to the kernels of some dense layers the product of two narrow matrices.

    A layer computes `x W + b + (alpha / rank) dropout(x) A B`, before its activation. A is drawn, B
    begins with zeros, and the encoder itself stays as it is. The layers are those of attention and
    of feed-forward networks, also under `quantize("int8")`. Of the methods here, take this one
    first: its product is added to the kernels by `merge_adapter`, so that a served model costs
    what it did before.

    The defaults are those of peft.

    Args:
        rank: int, the inner width.
        alpha: float; None for `rank`.
        targets: regular expressions of the whole paths of the dense layers, such as
            `".*/(query|key|value)"` or `".*(intermediate|feedforward_output)"`. Layers that ALBERT
            calls several times have one adapter for all calls.
        dropout: float, dropout rate of the input of the narrow matrices.
        use_rslora: bool, whether the factor is `alpha / sqrt(rank)`, which suits high ranks.

    Raises:
        ValueError: if `rank` or `alpha` is not above 0, `dropout` is not in [0, 1), a target is no
            regular expression, or `use_rslora` is no bool.

    Source: Hu et al., 2021 (https://arxiv.org/abs/2106.09685); for `use_rslora` Kalajdzievski, 2023
    (https://arxiv.org/abs/2312.03732).
    """

    learning_rate = 3e-4

    def __init__(
        self,
        rank: int = 8,
        alpha: float | None = None,
        targets: Patterns = QUERY_AND_VALUE,
        dropout: float = 0.0,
        use_rslora: bool = False,
    ) -> None:
        check_integer("rank", rank, at_least=1)
        check_positive("alpha", rank if alpha is None else alpha)
        check_below_one(dropout=dropout)
        check_flag("use_rslora", use_rslora)
        self.rank = rank
        self.alpha = rank if alpha is None else alpha
        targets = [targets] if isinstance(targets, str) else targets
        check_patterns("targets", targets)
        self.targets = list(targets)
        self.dropout = dropout
        self.use_rslora = use_rslora

    @property
    def scale(self) -> float:
        """float, the factor of the product."""
        return self.alpha / (math.sqrt(self.rank) if self.use_rslora else self.rank)

    def make_layers(self, encoder: Any, name: str) -> list[Made]:
        layers = list_layers(encoder, Dense)
        chosen = [
            layer for layer in layers if any(re.fullmatch(p, layer.path) for p in self.targets)
        ]
        if not chosen:
            names = sorted({re.sub(r"\d+", "{i}", layer.path) for layer in layers})
            if not names:
                raise refuse(self, encoder, "It has no attention and no feed-forward network.")
            raise refuse(
                self,
                encoder,
                f"No dense layer has a path that matches {self.targets}; its layers are "
                f"{', '.join(names)}.",
            )
        double = [layer.path for layer in chosen if getattr(layer, "lora_enabled", False)]
        if double:
            advice = "Open the encoder anew, without enable_lora."
            raise refuse(self, encoder, f"{double[0]} has LoRA of Keras. {advice}")
        made = []
        for layer in chosen:
            low_rank = LowRank(
                layer.units,
                self.rank,
                self.scale,
                self.dropout,
                dtype=choose_policy(layer),
                name=name_layer(LOW_RANK, name),
            )
            with scope_of(layer):
                low_rank.build((None, layer.kernel.shape[0]))
            made.append((layer, LOW_RANK, low_rank))
        return made
