"""Chooses the right ending of a prompt among several."""

from collections.abc import Sequence
from typing import Any

import keras
import keras_hub
import numpy as np
from keras import ops

from keras_bert_suite import checkpoints
from keras_bert_suite.annotations import Config, Inputs, Labels, Tensor
from keras_bert_suite.data.choice_rows import check_collated_endings, read_choice_rows
from keras_bert_suite.data.rows import Rows
from keras_bert_suite.models import BertBackbone
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.tasks.base.input_checks import check_first_token, check_pairs
from keras_bert_suite.tasks.base.labelled_task import make_head
from keras_bert_suite.tasks.base.row_task import RowTask
from keras_bert_suite.tasks.hidden_states import pool_first_token


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class MultipleChoice(RowTask, keras_hub.models.Task):
    """A text encoder with a layer that scores each of K endings of a prompt.

    A row is a prompt and K endings. The model sees each ending as a pair of texts, the prompt and
    the ending, and the loss compares the K scores of a row. `fit`, `evaluate` and `predict` take a
    tuple of two columns `(prompts, endings)`, in which a row of endings is a list of K texts; a
    DataFrame or dict with the columns `prompt` and `endings`; packed arrays (N, K, L); or datasets
    of batches of these. All rows of a batch have the same K. The label of a row is the index of its
    right ending. `read_swag` reads such rows from files.

    Args:
        backbone: `BertBackbone`, or any KerasHub text encoder.
        preprocessor: `SegmentPacker`, a KerasHub preprocessor, or None for packed arrays only.
        dropout: float, dropout rate of the pooled output.
        input_names: names of the columns, and of the inputs of an export.

    Outputs, of the model and of `predict`: float32 (B, K), logits.

    Example:
    ```python
    chooser = MultipleChoice.from_preset("path/to/checkpoint", sequence_length=80)
    chooser.fit((prompts, endings), labels, epochs=3)
    chooser.predict((["It began to rain."], [["She took an umbrella.", "She ate it."]]))
    ```

    Source: Devlin et al., 2018 (https://arxiv.org/abs/1810.04805), section 4.4.
    """

    backbone_cls = BertBackbone
    preprocessor_cls = SegmentPacker
    global_tokens = "later_texts"  # The ending.
    default_rate = 2e-5
    # Endings are listed in Python.
    preprocesses_in_graphs = False
    # Prompts (B,) and endings (B, K).
    text_ranks = (1, 2)

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        *,
        preprocessor: keras.layers.Layer | None = None,
        dropout: float = 0.1,
        input_names: Sequence[str] = ("prompt", "endings"),
        **kwargs: Any,
    ) -> None:
        self.check_further_arguments(kwargs)
        check_first_token(backbone)
        check_pairs(backbone)

        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.classifier_dropout, self.choice_scorer = make_head(
            backbone, 1, dropout, "choice_scorer"
        )
        # The loss is computed in float32 under every policy.
        self.output_activation = keras.layers.Activation(None, dtype="float32", name="scores")

        # === Functional Model ===
        inputs = {
            name: keras.Input((None, None), dtype=tensor.dtype, name=name)
            for name, tensor in backbone.input.items()
        }
        merge = _MergeChoices(name="merge_choices")
        encoded = backbone({name: merge(tensor) for name, tensor in inputs.items()})
        pooled = self.classifier_dropout(pool_first_token(encoded))
        scores = self.output_activation(self.choice_scorer(pooled))
        split = _SplitChoices(dtype="float32", name="split_choices")
        outputs = split(scores, inputs["padding_mask"])
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

        # === Config ===
        self.dropout = dropout
        self.input_names = tuple(input_names)

    @classmethod
    def arguments_of(
        cls, checkpoint: Any, arguments: dict[str, Any]
    ) -> tuple[dict[str, Any], list[str]]:
        return {**checkpoints.head_arguments(checkpoint, "choice_scorer"), **arguments}, []

    def make_loss(self) -> keras.losses.Loss:
        """Sparse categorical cross-entropy over the endings of a row."""
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def make_metrics(self) -> dict[str, Any]:
        return {"metrics": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]}

    def read_rows(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Rows:
        return read_choice_rows(x, y, sample_weight, self.input_names)

    def read_batch(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Rows:
        check_collated_endings(x, self.input_names)
        return read_choice_rows(x, y, sample_weight, self.input_names)

    def arrange_columns(self, inputs: Any, names: Any, labelled: bool) -> Any:
        """`read_rows` has put the columns in order."""
        return inputs

    def preprocess(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Any:
        if isinstance(x, tuple):
            prompts, *endings = x
            pairs = (np.repeat(prompts, len(endings)), np.stack(endings, axis=1).reshape(-1))
            packed = self.pack_texts(tuple(map(list, pairs)))
            x = {
                name: array.reshape(len(prompts), len(endings), -1)
                for name, array in packed.items()
            }
        return keras.utils.pack_x_y_sample_weight(x, y, sample_weight)

    def serving_outputs(self, outputs: Tensor, packed: Any) -> dict[str, Tensor]:
        """The answers of a server: `probabilities` float32 (B, K), `choices` int32 (B,)."""
        return {
            "probabilities": ops.softmax(outputs, axis=-1),
            "choices": ops.cast(ops.argmax(outputs, axis=-1), "int32"),
        }

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            "dropout": self.dropout,
            "input_names": self.input_names and list(self.input_names),
        }


class _MergeChoices(keras.layers.Layer):
    """Reshapes (B, K, L) to (B * K, L), so that each ending is a row of the backbone."""

    def call(self, inputs: Tensor) -> Tensor:
        return ops.reshape(inputs, (-1, ops.shape(inputs)[2]))


class _SplitChoices(keras.layers.Layer):
    """Reshapes scores (B * K, 1) to (B, K), where the inputs (B, K, L) say K."""

    def call(self, scores: Tensor, inputs: Tensor) -> Tensor:
        return ops.reshape(scores, (-1, ops.shape(inputs)[1]))
