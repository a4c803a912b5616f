"""Compares the outputs of two passes over a batch, whatever the task predicts."""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.replicas import sum_over_replicas
from keras_bert_suite.training.divergences import Divergence
from keras_bert_suite.training.loss_shares import mean_over_rows
from keras_bert_suite.training.techniques.technique import Batch, advise


class OutputComparison:
    """The divergence of the predictions of a task, as one number for a batch.

    It is a mean over the rows, whatever their weights. For labels of tokens it is a mean over the
    tokens, by their weights. If a row has several predictions, such as the first and the last token
    of an answer, their mean counts. `find_divergence` of the task says what a divergence is.

    Args:
        model: the task.
        technique: the `Technique`, for the message.
        other: a task of the same kind whose outputs are those of `p`; None for `model` itself. Of
            several outputs, the one that `model.taught_output` names is compared.

    Raises:
        ValueError: if a task has several outputs, or outputs without a divergence.
    """

    def __init__(self, model: Any, technique: Any, other: Any = None) -> None:
        self.output = None if other is None else model.taught_output
        if self.output is not None:
            self.divergence = Divergence.of_form(model.find_output_form(self.output))
        else:
            self.divergence = model.find_divergence()
            if other is not None and self.divergence is not None and self.divergence.between:
                self.divergence = self.divergence.between(other)
        if self.divergence is None:
            raise ValueError(
                f"{type(technique).__name__} compares the predictions of two passes, and "
                f"{with_article(model)} has several outputs, or outputs that are no predictions. "
                f"{advise(model)}"
            )

    def one_way(self, batch: Batch, p: Any, q: Any, reduction: str = "mean") -> Tensor:
        """float32 scalar, KL(p || q). Its sum over the replicas is that of the batch.

        `p` and `q` are outputs of the model. `reduction` is "mean" or "sum".
        """
        return self._reduce(self.divergence.one_way, batch, p, q, reduction)

    def symmetric(self, batch: Batch, p: Any, q: Any, reduction: str = "mean") -> Tensor:
        """float32 scalar, KL(p || q) + KL(q || p); see `one_way`."""
        return self._reduce(self.divergence.symmetric, batch, p, q, reduction)

    def _reduce(self, compare: Any, batch: Batch, p: Any, q: Any, reduction: str) -> Tensor:
        y, weights, p, q = map(self._take_only, (batch.y, batch.sample_weight, p, q))
        found = ops.cast(compare(y, p, q), "float32")
        if self.divergence.of_tokens:
            weights = ops.ones_like(found) if weights is None else ops.cast(weights, "float32")
            total = ops.sum(found * ops.reshape(weights, ops.shape(found)))
            if reduction == "sum":
                return total
            return total / (sum_over_replicas(ops.sum(weights)) + 1e-5)
        if len(found.shape) > 1:
            found = ops.mean(found, axis=tuple(range(1, len(found.shape))))
        return ops.sum(found) if reduction == "sum" else mean_over_rows(found)

    def _take_only(self, part: Any) -> Any:
        """The only tensor of a structure, or that of the output; None for None."""
        if part is None:
            return None
        if self.output is not None:
            return part.get(self.output)
        (tensor,) = keras.tree.flatten(part)
        return tensor
