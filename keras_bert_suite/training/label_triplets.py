"""Losses of text embedders that make triplets of the labels of a batch."""

from typing import Literal

import keras
from keras import ops

from keras_bert_suite.annotations import Config, Dtype, Tensor
from keras_bert_suite.argument_checks import check_choice, check_integer, check_positive
from keras_bert_suite.replicas import count_replicas, gather_rows
from keras_bert_suite.training.embedding_losses import EmbeddingLoss, normalize


class LabelTriplet(EmbeddingLoss):
    """The base of losses on single texts with a label each.

    Two texts of a batch with the same label are an anchor and its positive, and a text with another
    label is a negative. `y_true` int (B,), `y_pred` float (B, 1, H). If replicas share a batch, the
    texts of all replicas are compared. A weight of a row is the weight of its triplets as anchor.
    """

    num_texts = (1, 1)
    takes_labels = True

    def __init__(
        self, distance: str, rows_per_label: int, name: str, dtype: Dtype | None = None
    ) -> None:
        check_choice("distance", distance, ("cosine", "euclidean"))
        check_integer("rows_per_label", rows_per_label, at_least=2)
        super().__init__(name, dtype)
        self.distance = distance
        self.rows_per_label = rows_per_label

    def compares_rows(self, num_texts: int) -> bool:
        return True

    def compare(self, y_true: Tensor, y_pred: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The distances of the B anchors of a replica from the N texts of the batch.

        Returns:
            tuple (float32 (B, N); bool (B, N), whether the text is a positive of the anchor; bool
            (B, N), whether it is a negative).
        """
        vectors = y_pred[:, 0]
        labels = ops.cast(y_true, "int32")
        others, first = gather_rows(vectors)
        all_labels, _ = gather_rows(labels)
        measure = _euclidean_distances if self.distance == "euclidean" else _cosine_distances
        own = ops.arange(ops.shape(vectors)[0], dtype="int32") + first
        is_own = own[:, None] == ops.arange(ops.shape(others)[0], dtype="int32")[None, :]
        is_equal = labels[:, None] == all_labels[None, :]
        is_positive = ops.logical_and(is_equal, ops.logical_not(is_own))
        return measure(vectors, others), is_positive, ops.logical_not(is_equal)

    def get_config(self) -> Config:
        config = super().get_config()
        return {**config, "distance": self.distance, "rows_per_label": self.rows_per_label}


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class BatchAllTriplet(LabelTriplet):
    """All triplets that the labels of a batch allow: it learns from texts with a class each.

    The loss is the mean of max(d(anchor, positive) - d(anchor, negative) + margin, 0) over the
    triplets for which it is above 0. The triplets of a batch take B^3 numbers: 64 MB for 256 rows.
    Take it before `BatchHardTriplet` where labels are noisy.

    Args:
        margin: float above 0, in the unit of the distance.
        distance: "cosine", which is 1 - cosine similarity; or "euclidean".
        rows_per_label: int, at least 2, how many rows of a label `fit` puts into a batch together,
            if the rows are in memory. `batch_size` must be a multiple of it, and at least twice
            as large.
        name, dtype: as in Keras.

    Source: Hermans et al., 2017 (https://arxiv.org/abs/1703.07737), section 2, "Batch All"; the
    mean leaves zeros out, as their L_BA with non-zero averaging.
    """

    def __init__(
        self,
        margin: float = 0.5,
        distance: str = "cosine",
        rows_per_label: int = 2,
        name: str = "batch_all_triplet",
        dtype: Dtype | None = None,
    ) -> None:
        check_positive("margin", margin)
        super().__init__(distance, rows_per_label, name, dtype)
        self.margin = margin

    def __call__(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        distances, is_positive, is_negative = self.compare(y_true, ops.cast(y_pred, "float32"))
        losses = distances[:, :, None] - distances[:, None, :] + self.margin
        is_triplet = ops.logical_and(is_positive[:, :, None], is_negative[:, None, :])
        losses = ops.where(is_triplet, ops.maximum(losses, 0.0), 0.0)
        is_active = ops.cast(losses > 1e-16, "float32")
        if sample_weight is not None:
            losses = losses * ops.cast(sample_weight, "float32")[:, None, None]
        sums = ops.stack([ops.sum(losses), ops.sum(is_active)])[None]
        # A replica has the anchors of its own rows, and the mean is over those of all replicas.
        total, number = ops.unstack(ops.sum(gather_rows(sums)[0], axis=0), num=2)
        loss = total / ops.maximum(ops.stop_gradient(number), 1.0)
        is_whole = keras.config.backend() == "jax" or count_replicas() == 1
        return loss if is_whole else loss / count_replicas()

    def get_config(self) -> Config:
        return {**super().get_config(), "margin": self.margin}


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class BatchHardTriplet(LabelTriplet):
    """The farthest positive and the nearest negative of each text of a batch.

    The loss of a row is max(d(anchor, positive) - d(anchor, negative) + margin, 0), or with the
    soft margin log(1 + exp(d(anchor, positive) - d(anchor, negative))). A row without a positive or
    without a negative in its batch has the loss 0: sentence-transformers compares it with itself.

    Args:
        margin: float above 0, in the unit of the distance; or "soft".
        distance, rows_per_label, name, dtype: as for `BatchAllTriplet`. More rows of a label make
            the positives harder.

    Source: Hermans et al., 2017 (https://arxiv.org/abs/1703.07737), section 2, "Batch Hard".
    """

    def __init__(
        self,
        margin: float | Literal["soft"] = 0.5,
        distance: str = "cosine",
        rows_per_label: int = 2,
        name: str = "batch_hard_triplet",
        dtype: Dtype | None = None,
    ) -> None:
        if margin != "soft":
            check_positive("margin", margin)
        super().__init__(distance, rows_per_label, name, dtype)
        self.margin = margin

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """float32 (B,), the losses of anchors."""
        distances, is_positive, is_negative = self.compare(y_true, y_pred)
        farthest = ops.max(ops.where(is_positive, distances, -1e9), axis=1)
        nearest = ops.min(ops.where(is_negative, distances, 1e9), axis=1)
        both = ops.logical_and(ops.any(is_positive, axis=1), ops.any(is_negative, axis=1))
        # Without the second `where`, the gradient of what is left out would be NaN.
        gaps = ops.where(both, farthest - nearest, 0.0)
        if self.margin == "soft":
            losses = ops.softplus(gaps)
        else:
            losses = ops.maximum(gaps + self.margin, 0.0)
        return ops.where(both, losses, 0.0)

    def get_config(self) -> Config:
        return {**super().get_config(), "margin": self.margin}


def _cosine_distances(a: Tensor, b: Tensor) -> Tensor:
    """float (B, N), of vectors (B, H) and (N, H)."""
    return 1.0 - ops.matmul(normalize(a), ops.transpose(normalize(b)))


def _euclidean_distances(a: Tensor, b: Tensor) -> Tensor:
    """float (B, N), of vectors (B, H) and (N, H)."""
    squares = [ops.sum(ops.square(x), axis=-1) for x in (a, b)]
    products = ops.matmul(a, ops.transpose(b))
    # The square root of 0 would have no gradient.
    near = squares[0][:, None] - 2.0 * products + squares[1][None, :]
    return ops.sqrt(ops.maximum(near, 1e-24))
