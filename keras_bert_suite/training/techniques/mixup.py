"""Training on mixtures of rows."""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.argument_checks import check_positive, with_article
from keras_bert_suite.training.techniques.technique import Batch, Technique, advise


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class Mixup(Technique):
    """Classifies mixtures of the pooled vectors of two rows, with a mixture of their losses.

    A batch draws one share s from Beta(alpha, alpha), and an order of its rows. Row i of the batch
    has the vector s v_i + (1 - s) v_j with the row j at its place in the order. The loss is
    s L(labels) + (1 - s) L(labels of the rows j), with the weights of these rows. For
    cross-entropies this is the loss of mixed labels. Columns beside the texts (`features`) are
    mixed, too. A step takes the time of a plain one.

    The vectors are those that the dropout before the classification layer takes. A task on tokens,
    answers, choices or vectors has none, and is refused. Metrics in the logs are about the
    mixtures. Replicas that share a batch mix within their rows.

    Args:
        alpha: float above 0. The smaller, the nearer is a mixture to one of its rows.

    Source: Zhang et al., 2018 (https://arxiv.org/abs/1710.09412), and facebookresearch's
    mixup-cifar10, which draws one share for a batch; for vectors of sentences Guo et al., 2019
    (https://arxiv.org/abs/1905.08941).
    """

    def __init__(self, alpha: float = 0.2) -> None:
        check_positive("alpha", alpha)
        self.alpha = alpha

    def build(self, model: Any) -> None:
        parts = model.split_at_vectors()
        if parts is None:
            raise ValueError(
                f"Mixup mixes the vectors of rows, and {with_article(model)} has no vector of a "
                f"row before its last layer. {advise(model)}"
            )
        self.encoder, self.head = parts

    def loss(self, forward: Any, batch: Batch, rng: Any) -> Any:
        vectors = forward.compute_outputs(batch, self.encoder)
        num_rows = ops.shape(keras.tree.flatten(vectors)[0])[0]
        share = keras.random.beta((), self.alpha, self.alpha, seed=rng)
        order = ops.argsort(keras.random.uniform((num_rows,), seed=rng))

        def mix(x: Any) -> Any:
            part = ops.cast(share, x.dtype)
            return part * x + (1 - part) * ops.take(x, order, axis=0)

        outputs = self.head(keras.tree.map_structure(mix, vectors), training=True)
        y, weights = keras.tree.map_structure(
            lambda x: None if x is None else ops.take(ops.convert_to_tensor(x), order, axis=0),
            (batch.y, batch.sample_weight),
        )
        own = forward.compute_loss(batch, outputs)
        others = forward.compute_loss(batch._replace(y=y, sample_weight=weights), outputs)
        return share * own + (1 - share) * others, outputs
