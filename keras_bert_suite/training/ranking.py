"""The loss and the metric of lists of candidates."""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Config, Dtype, Tensor
from keras_bert_suite.argument_checks import check_choice, check_integer
from keras_bert_suite.training.losses import TokenMeanLoss

#: A score after which no candidate comes.
_LAST = -1e12


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class RankingLoss(TokenMeanLoss):
    """How far the scores of lists of candidates are from their relevance, the mean over the lists.

    - "listwise": the cross-entropy of a softmax over the scores of a list. The wanted shares are
      the relevances, divided by their sum.
    - "pairwise": log(1 + exp(s_j - s_i)), the mean over the pairs of a list in which candidate i is
      more relevant than j (RankNet).
    - "pointwise": the binary cross-entropy of each candidate, the mean over the list. A relevance
      above 1 counts as 1. The sigmoid of a score is then a probability.

    A list without a relevant candidate, or with equal ones in "pairwise", does not count.

    `y_true` float (B, K), the relevance, at least 0; negative after the last candidate of a list.
    `y_pred` float (B, K), scores. `sample_weight` float (B,) or (B, 1), or None.

    Args:
        kind: "listwise", "pairwise" or "pointwise".
        name, reduction, dtype: as for `TokenMeanLoss`.

    Sources: Bruch et al., 2019 (https://doi.org/10.1145/3341981.3344221), "listwise"; Burges et
    al., 2005 (https://doi.org/10.1145/1102351.1102363), "pairwise"; Nogueira and Cho, 2019
    (https://arxiv.org/abs/1901.04085), "pointwise".
    """

    default_name = "ranking_loss"

    def __init__(
        self,
        kind: str = "listwise",
        name: str | None = None,
        reduction: str = "sum_over_batch_size",
        dtype: Dtype | None = None,
    ) -> None:
        check_choice("kind", kind, ("listwise", "pairwise", "pointwise"))
        super().__init__(name, reduction, dtype)
        self.kind = kind

    def __call__(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        return super().__call__(y_true, y_pred, self._count(y_true, sample_weight))

    def measure(self, y_true: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        return super().measure(y_true, self._count(y_true, sample_weight))

    def _count(self, y_true: Tensor, sample_weight: Tensor | None) -> Tensor:
        """float32 (B,), the weight of each list."""
        counts = ops.cast(ops.any(self._weigh(y_true) > 0, axis=-1), "float32")
        if sample_weight is None:
            return counts
        return counts * ops.reshape(ops.cast(sample_weight, "float32"), (-1,))

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """float32 (B,), the loss of each list."""
        losses, weights = self._compare(y_true, y_pred), self._weigh(y_true)
        return _divide(ops.sum(weights * losses, axis=-1), ops.sum(weights, axis=-1))

    def _weigh(self, y_true: Tensor) -> Any:
        """float32 (B, N), the weights of the N comparisons of each list."""
        relevance = ops.cast(y_true, "float32")
        if self.kind == "listwise":
            return ops.maximum(relevance, 0.0)
        is_candidate = relevance >= 0
        if self.kind == "pointwise":
            return ops.cast(is_candidate, "float32")
        is_above = relevance[:, :, None] > relevance[:, None, :]
        is_pair = ops.cast(ops.logical_and(is_above, is_candidate[:, None, :]), "float32")
        return ops.reshape(is_pair, (-1, ops.shape(y_true)[1] ** 2))

    def _compare(self, y_true: Tensor, y_pred: Tensor) -> Any:
        """float32 (B, N), the losses of the N comparisons of each list."""
        relevance, scores = (ops.cast(x, "float32") for x in (y_true, y_pred))
        if self.kind == "listwise":
            return -ops.log_softmax(ops.where(relevance >= 0, scores, _LAST), axis=-1)
        if self.kind == "pointwise":
            wanted = ops.clip(relevance, 0.0, 1.0)
            return ops.binary_crossentropy(wanted, scores, from_logits=True)
        losses = ops.softplus(scores[:, None, :] - scores[:, :, None])
        return ops.reshape(losses, (-1, ops.shape(scores)[1] ** 2))

    def get_config(self) -> Config:
        return {**super().get_config(), "kind": self.kind}


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class NDCG(keras.metrics.Mean):
    """nDCG at k: how early the relevant candidates of a list come, from 0 to 1.

    Formula: see `score_rankings`. Lists without a relevant candidate do not count.

    `y_true`, `y_pred`, `sample_weight`: as for `RankingLoss`.

    Args:
        top_k: int, k.
        name, dtype: as in Keras.
    """

    _direction = "up"  # By which callbacks know that more is better.

    def __init__(self, top_k: int = 10, name: str = "ndcg", dtype: Dtype | None = None) -> None:
        check_integer("top_k", top_k, at_least=1)
        super().__init__(name=name, dtype=dtype)
        self.top_k = top_k

    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        relevance = ops.cast(y_true, self.dtype)
        scores = ops.where(relevance >= 0, ops.cast(y_pred, self.dtype), _LAST)
        gains = ops.maximum(relevance, 0.0)
        found = self._discount(ops.take_along_axis(gains, ops.argsort(-scores, axis=-1), axis=-1))
        best = self._discount(-ops.sort(-gains, axis=-1))
        weights = ops.cast(best > 0, self.dtype)
        if sample_weight is not None:
            weights *= ops.reshape(ops.cast(sample_weight, self.dtype), (-1,))
        super().update_state(_divide(found, best), weights)

    def _discount(self, gains: Tensor) -> Tensor:
        """(B,), the discounted sum of the first k gains (B, K) of a ranking."""
        gains = gains[:, : self.top_k]
        ranks = ops.cast(ops.arange(1, ops.shape(gains)[1] + 1), self.dtype)
        return ops.sum(gains / ops.log2(ranks + 1.0), axis=-1)

    def get_config(self) -> Config:
        return {**super().get_config(), "top_k": self.top_k}


def _divide(x: Any, y: Any) -> Any:
    """x / y, and 0 where y is 0."""
    return x / ops.where(y > 0, y, 1.0)
