"""Vectors of two marked entities, made of the states of their tokens."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Shape, Tensor
from keras_bert_suite.layers.configured_layer import ConfiguredLayer
from keras_bert_suite.layers.dropout import Dropout


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class FindMarkers(ConfiguredLayer):
    """Finds the markers around the entities of each row.

    `marker_ids` are the ids of the markers, list of Q ints, and may be set later.
    """

    changeable = frozenset({"marker_ids"})

    def __init__(self, marker_ids: Sequence[int], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.marker_ids = tuple(marker_ids)

    def call(self, token_ids: Tensor) -> Tensor:
        """int (B, L) -> int32 (B, Q), the first position of each marker; 0 for a missing marker."""
        wanted = ops.convert_to_tensor(self.marker_ids, dtype="int32")[None, :, None]
        is_marker = ops.cast(token_ids, "int32")[:, None, :] == wanted
        return ops.cast(ops.argmax(ops.cast(is_marker, "int32"), axis=-1), "int32")

    def compute_output_spec(self, token_ids: Tensor) -> keras.KerasTensor:
        return keras.KerasTensor((token_ids.shape[0], len(self.marker_ids)), dtype="int32")


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class EntityAverages(ConfiguredLayer):
    """The summary token and the means of two entities, each through tanh and a dense layer.

    The means of both entities go through the same dense layer. `dropout` is the rate for the
    inputs of the dense layers.

    Source: Wu and He, 2019, R-BERT (https://arxiv.org/abs/1905.08284), section 3.2, equations 1 to
    3, and its "dropout before each add-on layer".
    """

    def __init__(self, dropout: float = 0.1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dropout = dropout
        self.input_dropout = Dropout(dropout, dtype=self.dtype_policy, name="input_dropout")

    def build(self, sequence_output_shape: Shape, *_: Shape) -> None:
        width = sequence_output_shape[-1]
        self.summary_dense, self.entity_dense = (
            keras.layers.Dense(
                width,
                kernel_initializer=keras.initializers.TruncatedNormal(stddev=0.02),
                dtype=self.dtype_policy,
                name=name,
            )
            for name in ("summary", "entity")
        )
        self.summary_dense.build((None, width))
        self.entity_dense.build((None, 2, width))

    def call(
        self,
        sequence_output: Tensor,
        summary: Tensor,
        markers: Tensor,
        training: bool | None = None,
    ) -> Tensor:
        """Makes a vector of each row, float (B, 3 H). The means are computed in float32.

        `summary`, float (B, H), is the state of the summary token. `markers`, int32 (B, 4), are the
        positions of the start and the end marker of the first entity, and of the second. The tokens
        between them are the entity. An entity without a token has the mean 0.
        """
        columns = ops.arange(ops.shape(sequence_output)[1], dtype="int32")[None, None, :]
        inside = ops.logical_and(columns > markers[:, 0::2, None], columns < markers[:, 1::2, None])
        weights = ops.cast(inside, "float32")
        # Padding may hold any number, and 0 times NaN is NaN.
        states = ops.where(
            ops.any(inside, axis=1)[:, :, None], ops.cast(sequence_output, "float32"), 0.0
        )
        number = ops.maximum(ops.sum(weights, axis=-1, keepdims=True), 1.0)
        means = ops.cast(ops.matmul(weights, states) / number, self.compute_dtype)
        entities = self.entity_dense(self.input_dropout(ops.tanh(means), training=training))
        summary = ops.tanh(ops.cast(summary, self.compute_dtype))
        summary = self.summary_dense(self.input_dropout(summary, training=training))
        return ops.concatenate([summary, entities[:, 0], entities[:, 1]], axis=-1)

    def compute_output_shape(self, sequence_output_shape: Shape, *_: Shape) -> Shape:
        return (sequence_output_shape[0], 3 * sequence_output_shape[-1])
