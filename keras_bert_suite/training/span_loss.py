"""The loss of spans: categorical cross-entropy for any number of labels."""

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor

#: A score that adds nothing to a sum of exponentials.
_NOTHING = -1e12


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class SpanLoss(keras.losses.Loss):
    """log(1 + sum_negative exp(s)) + log(1 + sum_positive exp(-s)), the mean over the types.

    The loss is small if the scores of all entities are above 0, and all other scores are below 0.
    It needs no weights for the few entities among the many spans.

    `y_true` int (B, M, 3): the first token, the last token and the type of each entity, -1 in
    places without an entity; `y_pred` float (B, C, L, L), scores by first and last token;
    `sample_weight` float (B,), or None.

    Source: Su et al., 2022 (https://arxiv.org/abs/2208.02955), section 3.
    """

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        scores = ops.cast(y_pred, "float32")
        batch, num_types, length, _ = ops.shape(scores)
        is_entity = mark_spans(ops.cast(y_true, "int32"), (batch, num_types, length))
        scores = ops.reshape(scores, (batch, num_types, length * length))
        is_entity = ops.reshape(is_entity, (batch, num_types, length * length))
        negative = ops.logsumexp(ops.where(is_entity, _NOTHING, scores), axis=-1)
        positive = ops.logsumexp(ops.where(is_entity, -scores, _NOTHING), axis=-1)
        return ops.mean(ops.softplus(negative) + ops.softplus(positive), axis=-1)


def mark_spans(spans: Tensor, shape: tuple) -> Tensor:
    """Marks the entities among all spans.

    Args:
        spans: int32 (B, M, 3), as `y_true` of `SpanLoss`.
        shape: (B, C, L).

    Returns:
        bool (B, C, L, L).
    """
    batch, num_types, length = shape
    rows = ops.arange(batch, dtype="int32")[:, None]
    first, last, kind = spans[..., 0], spans[..., 1], spans[..., 2]
    place = ((rows * num_types + kind) * length + first) * length + last
    known = first >= 0
    # Under PyTorch, Keras first calls a loss with labels of its own, which may be out of range.
    size = batch * num_types * length * length
    place = ops.clip(ops.where(known, place, 0), 0, size - 1)
    marks = ops.scatter(
        ops.reshape(place, (-1, 1)), ops.reshape(ops.cast(known, "float32"), (-1,)), (size,)
    )
    return ops.reshape(marks > 0, (batch, num_types, length, length))
