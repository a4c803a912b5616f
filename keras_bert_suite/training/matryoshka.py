"""A loss on the first numbers of vectors, so that they can be cut."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Config, Dtype, Tensor
from keras_bert_suite.argument_checks import check_integer, check_list, check_positive
from keras_bert_suite.training.embedding_losses import EmbeddingLoss, normalize


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class Matryoshka(EmbeddingLoss):
    """Another loss, on the first numbers of each vector, for several numbers of them.

    So the vectors may be cut afterwards: with `TextEmbedder(..., dimensions=64)` an index takes an
    eighth of the memory of 512 numbers. The loss is the weighted sum of the other loss on vectors
    that are cut and normalized. Name the full width among the dimensions, or it is not trained.

    Args:
        loss: another `EmbeddingLoss`, such as `InBatchNegatives()`. Rows are as this loss takes
            them.
        dimensions: different ints, at most the width of the vectors.
        weights: numbers above 0, one for each of the dimensions; None for 1 each.
        name, dtype: as in Keras.

    Source: Kusupati et al., 2022 (https://arxiv.org/abs/2205.13147), equation 1. Vectors are
    normalized after the cut, as by `MatryoshkaLoss` of sentence-transformers.
    """

    def __init__(
        self,
        loss: EmbeddingLoss | Mapping[str, Any],
        dimensions: Sequence[int],
        weights: Sequence[float] | None = None,
        name: str = "matryoshka",
        dtype: Dtype | None = None,
    ) -> None:
        opened: Any = keras.losses.deserialize(dict(loss)) if isinstance(loss, Mapping) else loss
        if not isinstance(opened, EmbeddingLoss) or isinstance(opened, Matryoshka):
            raise ValueError(
                "Matryoshka takes a loss of this package that compares vectors, such as "
                f"InBatchNegatives(), got {opened!r}."
            )
        if opened.takes_vectors:
            raise ValueError(
                f"Matryoshka cuts vectors, and {type(opened).__name__} compares them with whole "
                "ones. Train with it alone, and cut the vectors after a PCA."
            )
        check_list("dimensions", dimensions, "integers")
        dimensions = list(dimensions)
        for number in dimensions:
            check_integer("dimensions", number, at_least=1)
        if not dimensions or len(set(dimensions)) < len(dimensions):
            raise ValueError(f"dimensions must be different ints, at least one, got {dimensions}.")
        if weights is not None:
            check_list("weights", weights, "numbers above 0")
        weights = [1.0] * len(dimensions) if weights is None else list(weights)
        for weight in weights:
            check_positive("weights", weight)
        if len(weights) != len(dimensions):
            raise ValueError(
                f"Wanted a weight for each of {len(dimensions)} dimensions, got {len(weights)}."
            )
        super().__init__(name, dtype)
        self.loss, self.dimensions, self.weights = opened, dimensions, weights
        for fact in _FACTS:
            setattr(self, fact, getattr(opened, fact))

    def check_rows(self, num_texts: int, has_scores: bool) -> None:
        self.loss.check_rows(num_texts, has_scores)

    def check_gaps(self) -> None:
        self.loss.check_gaps()

    def check_scores(self, scores: Any) -> None:
        self.loss.check_scores(scores)

    def compares_rows(self, num_texts: int) -> bool:
        return self.loss.compares_rows(num_texts)

    def check_width(self, width: int) -> None:
        if max(self.dimensions) > width:
            raise ValueError(
                f"Matryoshka trains the first {max(self.dimensions)} numbers of a vector, and the "
                f"vectors of this embedder have {width}. Choose dimensions up to {width}."
            )

    def __call__(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        y_pred = ops.cast(y_pred, "float32")
        losses = [
            weight * self.loss(y_true, normalize(y_pred[..., :number]), sample_weight)
            for number, weight in zip(self.dimensions, self.weights, strict=True)
        ]
        return sum(losses[1:], losses[0])

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            "loss": keras.losses.serialize(self.loss),
            "dimensions": self.dimensions,
            "weights": self.weights,
        }


#: What the data of an embedder asks its loss for.
_FACTS = (
    *("num_texts", "takes_scores", "scores_texts", "takes_labels", "pairs_texts"),
    *("distinct_texts", "rows_per_label"),
)
