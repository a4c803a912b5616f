"""Adversarial training with embeddings that are moved once."""

from collections.abc import Callable
from typing import Any

import keras

from keras_bert_suite.argument_checks import check_positive
from keras_bert_suite.training.techniques.row_lengths import scale_rows
from keras_bert_suite.training.techniques.technique import Batch, Gradients, Technique


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class FGM(Technique):
    """Adds the loss of embeddings that are moved a short way to where the loss grows fastest.

    r = epsilon g / |g|, where g is the gradient of the loss by the token embeddings of one row, and
    |g| the Euclidean norm over all tokens of this row. The loss is L(embeddings) +
    L(embeddings + r). A step takes two forward and two backward passes, twice the time. It often
    helps on small training sets.

    The norm is taken of each row, so the size of a batch and its replicas do not matter. All texts
    of a choice, or windows of a document, are one row. A row whose loss has no gradient does not
    move.

    Deviations: Miyato et al. normalise the embeddings first, so `epsilon` here is in units of the
    token embeddings as the checkpoint has them. bert4keras and bert4torch move the rows of the
    embedding matrix, by one norm over the whole matrix, so their values of `epsilon` do not fit
    here: a length of 1 over a batch of B rows is about 1 / sqrt(B) of each.

    It needs an encoder of this package, not a `BertEncoderDecoder` or a `BartBackbone`. It goes
    neither with `cache_batch_size` of a `TextEmbedder` nor with `training_windows` of a
    `DocumentClassifier`: `compile` refuses them by name.

    Args:
        epsilon: float above 0, the length of r. With 1.0 short trainings lost points here; FreeLB's
            authors choose lengths of 0.28 to 0.6.

    Raises:
        ValueError: if `epsilon` is no finite number above 0.

    Source: Miyato et al., 2017 (https://arxiv.org/abs/1605.07725), equation 5.
    """

    moves_embeddings = True

    def __init__(self, epsilon: float = 0.3) -> None:
        check_positive("epsilon", epsilon)
        self.epsilon = epsilon

    def gradients(
        self, differentiate: Callable[..., Gradients], batch: Batch, rng: Any
    ) -> Gradients:
        clean = differentiate()
        return clean + differentiate(scale_rows(clean.shift, self.epsilon))
