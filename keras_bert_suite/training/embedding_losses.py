"""Losses of text embedders."""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Config, Dtype, Tensor
from keras_bert_suite.argument_checks import check_choice, check_finite, check_positive
from keras_bert_suite.replicas import count_replicas, gather_rows
from keras_bert_suite.training.loss_shares import mean_over_rows


class EmbeddingLoss(keras.losses.Loss):
    """The base of the losses of a `TextEmbedder`.

    `y_pred` float (B, S, H), the vectors of the S texts of each row. `y_true` is float (B,), the
    scores of the rows; float (B, S - 1), the scores of the texts after the first; float (B, H), the
    vectors that the rows shall have; int (B,), the numbers of the labels; or for a loss without any
    of them int (B, S), numbers of the texts. Equal texts have equal numbers, and -1 is no text.
    `sample_weight` float (B,) or None.

    Args:
        name: str.
        dtype: as in Keras.
    """

    #: The minimum and the maximum number of texts of a row. None is no limit.
    num_texts: tuple[int, int | None] = (2, 2)
    #: Whether each row has a score, or scores.
    takes_scores = False
    #: Whether a row has a score for each text after the first, and not one for the row.
    scores_texts = False
    #: Whether each row has a vector in the place of a score.
    takes_vectors = False
    #: Whether each row has a label, of which only equality counts.
    takes_labels = False
    #: Whether a text without others is its own positive, and is encoded twice.
    pairs_texts = False
    #: Whether `fit` puts rows that share a text into different batches.
    distinct_texts = False
    #: With labels, how many rows of a label `fit` puts into a batch together; None for any.
    rows_per_label: int | None = None
    #: The loss is the share of a replica in the loss of the batch, see `share_loss`.
    is_shared = True

    def __init__(self, name: str, dtype: Dtype | None = None) -> None:
        super().__init__(name=name, dtype=dtype)

    def check_rows(self, num_texts: int, has_scores: bool) -> None:
        """Raises a ValueError if the loss takes no such rows."""
        least, most = self.num_texts
        if num_texts < least or (most is not None and num_texts > most):
            wanted = f"{least}" if most == least else f"at least {least}"
            raise ValueError(
                f"{type(self).__name__} takes rows of {wanted} texts, got rows of {num_texts}. "
                "Pass the columns as a tuple, such as (first_texts, second_texts)."
            )
        wanted = "labels" if self.takes_labels else "scores"
        needed = self.takes_scores or self.takes_labels
        if has_scores != needed:
            raise ValueError(
                f"{type(self).__name__} takes rows {'with' if needed else 'without'} {wanted}. "
                "CoSENT() and CosineRegression() take pairs with scores as `y`, BatchAllTriplet() "
                "and BatchHardTriplet() single texts with labels, MarginMSE() and "
                "DistilledScores() a query and its candidates with a score for each candidate, "
                "InBatchNegatives() rows that all match, VectorRegression() rows with vectors."
            )

    def count_texts(self, y_true: Any, num_vectors: Any) -> Any:
        """The texts of a row, S, of a batch with B S vectors and this `y_true`."""
        if len(y_true.shape) == 2:
            return ops.shape(y_true)[1] + int(self.scores_texts)
        return self.num_texts[0]

    def check_width(self, width: int) -> None:
        """Raises a ValueError if vectors of this width have too few numbers for the loss."""

    def check_gaps(self) -> None:
        """Raises a ValueError if all rows must have the same number of texts."""
        raise ValueError(
            f"{type(self).__name__} takes rows of the same number of texts. Rows with different "
            "numbers of negatives are for InBatchNegatives()."
        )

    def compares_rows(self, num_texts: int) -> bool:
        """Whether rows of `num_texts` texts learn only from the other rows of their batch."""
        return False

    def check_scores(self, scores: Any) -> None:
        """Checks the scores of rows in memory, float32 (N,)."""

    def __call__(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        # Keras would also convert the numbers of texts to floats.
        losses = self.call(y_true, ops.cast(y_pred, "float32"))
        if sample_weight is None:
            return mean_over_rows(losses)
        # Keras' "sum_over_batch_size" divides by the number of rows, and not by the weights.
        return mean_over_rows(losses * ops.cast(sample_weight, losses.dtype))

    def get_config(self) -> Config:
        config = super().get_config()
        del config["reduction"]
        return config


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class InBatchNegatives(EmbeddingLoss):
    """Each anchor must find its positive among all positives and negatives of the batch.

    The rows are (anchor, positive), or (anchor, positive, negative, ...) with hard negatives. The
    loss of a row is the cross-entropy of a softmax over cosine similarities, divided by the
    temperature. It is also known as InfoNCE and as MultipleNegativesRankingLoss, whose `scale` is
    1 / `temperature`.

    A row of one text is also the positive. The encoder sees the text twice, with two dropout masks.
    This is SimCSE without labels; rows with hard negatives are SimCSE with labels. An encoder
    without dropout is refused: both vectors would be equal.

    A text of another row is no negative if it equals the row's own anchor or positive, and the
    positive of another row is no negative if both rows have the same anchor. If replicas share a
    batch, the anchors of a replica look among the texts of all replicas. Rows may have different
    numbers of negatives.

    Args:
        temperature: float above 0.
        distinct_texts: bool, whether `fit` puts rows in memory that share a text into different
            batches, as `NO_DUPLICATES` of sentence-transformers does. So each row keeps all
            negatives of its batch. The rows of a batch are then not of similar length.
        name, dtype: as in Keras.

    Sources: van den Oord et al., 2018 (https://arxiv.org/abs/1807.03748), section 2.3; Gao et al.,
    2021, SimCSE (https://arxiv.org/abs/2104.08821), sections 3 and 4.
    """

    num_texts = (1, None)
    pairs_texts = True

    def __init__(
        self,
        temperature: float = 0.05,
        distinct_texts: bool = False,
        name: str = "in_batch_negatives",
        dtype: Dtype | None = None,
    ) -> None:
        check_positive("temperature", temperature)
        super().__init__(name, dtype)
        self.temperature = temperature
        self.distinct_texts = distinct_texts

    def check_gaps(self) -> None:
        """Rows may have fewer negatives than others."""

    def compares_rows(self, num_texts: int) -> bool:
        return num_texts < 3  # Further texts are negatives of the row itself.

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """float32 (B,), the losses of rows of at least two texts."""
        anchors, (all_texts, first) = y_pred[:, 0], gather_rows(y_pred)
        candidates = _list_candidates(all_texts)
        cosines = ops.matmul(normalize(anchors), ops.transpose(normalize(candidates)))
        # The positives of all rows come first.
        own = ops.arange(ops.shape(anchors)[0], dtype="int32") + first
        is_own = own[:, None] == ops.arange(ops.shape(candidates)[0], dtype="int32")[None, :]
        numbers = gather_rows(y_true)[0]
        texts = _list_candidates(numbers[:, :, None])[:, 0][None, :]
        is_equal = ops.logical_or(texts == y_true[:, :1], texts == y_true[:, 1:2])
        same_anchor = y_true[:, :1] == numbers[:, 0][None, :]
        further = ops.zeros_like(is_own[:, ops.shape(numbers)[0] :])
        is_equal = ops.logical_or(is_equal, ops.concatenate([same_anchor, further], axis=1))
        is_left_out = ops.logical_and(is_equal, ops.logical_not(is_own))
        is_left_out = ops.logical_or(is_left_out, texts < 0)
        logits = ops.where(is_left_out, -1e9, cosines / self.temperature)
        positives = ops.sum(ops.where(is_own, logits, 0.0), axis=1)
        return ops.logsumexp(logits, axis=1) - positives

    def get_config(self) -> Config:
        config = super().get_config()
        return {**config, "temperature": self.temperature, "distinct_texts": self.distinct_texts}


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class CosineRegression(EmbeddingLoss):
    """The squared difference between the cosine similarity of a pair and its score.

    The rows are pairs of texts with a score in [-1, 1].

    Args:
        name, dtype: as in Keras.

    Source: Reimers and Gurevych, 2019, Sentence-BERT (https://arxiv.org/abs/1908.10084),
    section 3, "Regression Objective Function".
    """

    takes_scores = True

    def __init__(self, name: str = "cosine_regression", dtype: Dtype | None = None) -> None:
        super().__init__(name, dtype)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """float32 (B,), the losses of pairs."""
        return ops.square(measure_cosines(y_pred[:, 0], y_pred[:, 1]) - ops.cast(y_true, "float32"))

    def check_scores(self, scores: Any) -> None:
        wrong = abs(scores) > 1
        if wrong.any():
            row = int(wrong.argmax())
            raise ValueError(
                f"CosineRegression takes scores in [-1, 1], the range of a cosine, got "
                f"{scores[row]} at row {row}. Scale the scores, for example from 0-5 by dividing "
                "them by 5; or compile with CoSENT(), which only reads their order."
            )


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class VectorRegression(EmbeddingLoss):
    """The squared distance of the vector of a text from a given vector, such as a teacher's.

    The rows are single texts with a vector (H,) each, and the embedder becomes a smaller copy of
    its teacher. Or they are a text and its translations, with the teacher's vector of the text, and
    the embedder learns further languages. The loss of a row is the mean over its texts and the H
    numbers.

    The vectors of `predict` have length 1 if the embedder normalizes them: take a teacher and a
    student that agree in this.

    Args:
        name, dtype: as in Keras.

    Example:
    ```python
    student = teacher.keep_layers([0, 2, 4])
    student.compile(loss=kbs.VectorRegression())
    student.fit(texts, teacher.predict(texts))
    ```

    Source: Reimers and Gurevych, 2020 (https://arxiv.org/abs/2004.09813), equation 1; `MSELoss` of
    sentence-transformers.
    """

    num_texts = (1, None)
    takes_scores = True
    takes_vectors = True

    def __init__(self, name: str = "vector_regression", dtype: Dtype | None = None) -> None:
        super().__init__(name, dtype)

    def count_texts(self, y_true: Any, num_vectors: Any) -> Any:
        """A vector to learn does not say how many texts its row has."""
        num_rows = ops.shape(y_true)[0]
        # A replica may have no rows.
        least_one = max if isinstance(num_rows, int) else ops.maximum
        return num_vectors // least_one(num_rows, 1)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """float32 (B,), the losses of rows."""
        differences = y_pred - ops.cast(y_true, "float32")[:, None]
        return ops.mean(ops.square(differences), axis=(1, 2))


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class CoSENT(EmbeddingLoss):
    """Pairs with a higher score should have a higher cosine similarity.

    The rows are pairs of texts with a score of any range. Only the order of the scores of a batch
    counts. The loss of a batch is log(1 + sum exp(scale (cos_j - cos_i))), over all rows i and j
    where i has the higher score. With sample weights, the term of i and j is multiplied by the
    product of both weights, so that a weight of 2 has the effect of a second copy of the row.

    Args:
        scale: float above 0.
        name, dtype: as in Keras.

    Source: Su, 2022, CoSENT (https://kexue.fm/archives/8847); Huang et al., 2024
    (https://doi.org/10.1109/TASLP.2024.3402087).
    """

    takes_scores = True

    def __init__(
        self, scale: float = 20.0, name: str = "cosent", dtype: Dtype | None = None
    ) -> None:
        check_positive("scale", scale)
        super().__init__(name, dtype)
        self.scale = scale

    def compares_rows(self, num_texts: int) -> bool:
        return True

    def __call__(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        y_pred = ops.cast(y_pred, "float32")
        cosines, _ = gather_rows(measure_cosines(y_pred[:, 0], y_pred[:, 1]) * self.scale)
        y_true, _ = gather_rows(y_true)
        terms = cosines[None, :] - cosines[:, None]
        if sample_weight is not None:
            weights, _ = gather_rows(ops.cast(sample_weight, "float32"))
            # The logarithm of 0 would have no gradient.
            terms = terms + ops.log(ops.maximum(weights[:, None] * weights[None, :], 1e-30))
        terms = ops.where(y_true[:, None] > y_true[None, :], terms, -1e9)
        # The 0 is the logarithm of the 1 in the sum.
        terms = ops.concatenate([ops.zeros((1,)), ops.reshape(terms, (-1,))])
        loss = ops.logsumexp(terms)
        # Each replica has the loss of the whole batch, and the sum over them shall be this loss.
        is_whole = keras.config.backend() == "jax" or count_replicas() == 1
        return loss if is_whole else loss / count_replicas()

    def get_config(self) -> Config:
        return {**super().get_config(), "scale": self.scale}


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class Triplet(EmbeddingLoss):
    """The anchor must be nearer to the positive than to the negative, by a margin.

    The rows are (anchor, positive, negative).

    Args:
        margin: a finite float, in the unit of the distance.
        distance: "cosine", which is 1 - cosine similarity; or "euclidean".
        name, dtype: as in Keras.

    Source: Reimers and Gurevych, 2019, Sentence-BERT (https://arxiv.org/abs/1908.10084),
    section 3, "Triplet Objective Function". There the distance is Euclidean and the margin 1.
    """

    num_texts = (3, 3)

    def __init__(
        self,
        margin: float = 0.5,
        distance: str = "cosine",
        name: str = "triplet",
        dtype: Dtype | None = None,
    ) -> None:
        check_finite("margin", margin)
        check_choice("distance", distance, ("cosine", "euclidean"))
        super().__init__(name, dtype)
        self.margin = margin
        self.distance = distance

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """float32 (B,), the losses of triplets."""
        measure = _euclidean_distances if self.distance == "euclidean" else _cosine_distances
        near = measure(y_pred[:, 0], y_pred[:, 1])
        far = measure(y_pred[:, 0], y_pred[:, 2])
        return ops.maximum(near - far + self.margin, 0.0)

    def get_config(self) -> Config:
        return {**super().get_config(), "margin": self.margin, "distance": self.distance}


def normalize(vectors: Tensor) -> Tensor:
    """Vectors (..., H) of length 1. The vector 0 stays as it is."""
    vectors = ops.convert_to_tensor(vectors)
    squares = ops.sum(ops.square(vectors), axis=-1, keepdims=True)
    return vectors * ops.rsqrt(ops.maximum(squares, 1e-24))


def measure_cosines(a: Tensor, b: Tensor) -> Tensor:
    """float (B,), the cosine similarities of vectors (B, H)."""
    return ops.sum(normalize(a) * normalize(b), axis=-1)


def _cosine_distances(a: Tensor, b: Tensor) -> Tensor:
    return 1.0 - measure_cosines(a, b)


def _euclidean_distances(a: Tensor, b: Tensor) -> Tensor:
    # The square root of 0 would have no gradient.
    return ops.sqrt(ops.maximum(ops.sum(ops.square(a - b), axis=-1), 1e-24))


def _list_candidates(texts: Tensor) -> Tensor:
    """All texts except the anchors, of texts (B, S, ...): first the second text of each row."""
    rest = ops.moveaxis(texts[:, 1:], 1, 0)
    return ops.reshape(rest, (-1, texts.shape[-1]))
