"""Losses of text embedders that learn the scores of a cross-encoder."""

import keras
from keras import ops

from keras_bert_suite.annotations import Config, Dtype, Tensor
from keras_bert_suite.argument_checks import check_choice, check_positive
from keras_bert_suite.training.embedding_losses import EmbeddingLoss, measure_cosines


class TeacherLoss(EmbeddingLoss):
    """The base of losses on a query and its candidates, with a teacher's score for each candidate.

    The rows are (query, positive, negative, ...), S >= 3 texts, as many in each row. `y_true` float
    (B, S - 1), the scores of a teacher, such as `np.stack([ranker.predict((queries, texts)) for
    texts in (positives, negatives)], axis=1)`. `y_pred` float (B, S, H).
    """

    num_texts = (3, None)
    takes_scores = True
    scores_texts = True

    def __init__(self, similarity: str, name: str, dtype: Dtype | None = None) -> None:
        check_choice("similarity", similarity, ("dot", "cosine"))
        super().__init__(name, dtype)
        self.similarity = similarity

    def score(self, y_pred: Tensor) -> Tensor:
        """float32 (B, S - 1), the student's scores of the candidates."""
        queries, candidates = y_pred[:, :1], y_pred[:, 1:]
        if self.similarity == "cosine":
            return measure_cosines(queries, candidates)
        return ops.sum(queries * candidates, axis=-1)

    def get_config(self) -> Config:
        return {**super().get_config(), "similarity": self.similarity}


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class MarginMSE(TeacherLoss):
    """The embedder learns by how much a teacher prefers the positive of a query to its negatives.

    The loss of a row is the mean, over its negatives, of the squared difference between both
    margins: score of the positive - score of the negative. A teacher's logits differ by 10 and
    more, while products of vectors of length 1 differ by 2 at most: make the embedder with
    `normalize=False`, or scale the teacher's scores.

    Args:
        similarity: "dot", the product of both vectors; or "cosine".
        name, dtype: as in Keras.

    Source: Hofstätter et al., 2020 (https://arxiv.org/abs/2010.02666), equation 5.
    """

    def __init__(
        self, similarity: str = "dot", name: str = "margin_mse", dtype: Dtype | None = None
    ) -> None:
        super().__init__(similarity, name, dtype)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """float32 (B,), the losses of rows."""
        own, wanted = self.score(y_pred), ops.cast(y_true, "float32")
        margins, wanted = own[:, :1] - own[:, 1:], wanted[:, :1] - wanted[:, 1:]
        return ops.mean(ops.square(margins - wanted), axis=-1)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class DistilledScores(TeacherLoss):
    """The embedder learns the probabilities that a teacher gives the candidates of a query.

    The loss of a row is KL(teacher || student), of softmaxes over the candidates, times the square
    of the student's temperature. It takes the order and the distances of the teacher's scores, and
    not their size. The candidates need not begin with a positive.

    Args:
        temperature: float above 0, by which the student's scores are divided. Products of vectors
            of length 1 need a low one, such as 0.05.
        teacher_temperature: float above 0, by which the teacher's scores are divided; None for
            `temperature`.
        similarity: "dot", the product of both vectors; or "cosine".
        name, dtype: as in Keras.

    Source: Hinton et al., 2015 (https://arxiv.org/abs/1503.02531), section 2; Lin et al., 2020
    (https://arxiv.org/abs/2010.11386), section 4; `DistillKLDivLoss` of sentence-transformers.
    """

    def __init__(
        self,
        temperature: float = 1.0,
        teacher_temperature: float | None = None,
        similarity: str = "dot",
        name: str = "distilled_scores",
        dtype: Dtype | None = None,
    ) -> None:
        check_positive("temperature", temperature)
        if teacher_temperature is not None:
            check_positive("teacher_temperature", teacher_temperature)
        super().__init__(similarity, name, dtype)
        self.temperature = temperature
        self.teacher_temperature = teacher_temperature

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """float32 (B,), the losses of rows."""
        teacher = ops.cast(y_true, "float32") / (self.teacher_temperature or self.temperature)
        wanted = ops.log_softmax(teacher, axis=-1)
        found = ops.log_softmax(self.score(y_pred) / self.temperature, axis=-1)
        losses = ops.sum(ops.exp(wanted) * (wanted - found), axis=-1)
        return losses * self.temperature**2

    def get_config(self) -> Config:
        own = {"temperature": self.temperature, "teacher_temperature": self.teacher_temperature}
        return {**super().get_config(), **own}
