"""Chooses the right ending of a prompt among several."""

from typing import Any

import keras
import keras_hub
from keras import ops

from keras_bert_suite import checkpoints
from keras_bert_suite.annotations import Config, Tensor
from keras_bert_suite.heads import choices
from keras_bert_suite.heads.base.pair_scorer import PairScorer


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class MultipleChoice(PairScorer, keras_hub.models.Task):
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

    global_tokens = "later_texts"  # The ending.
    HEAD = choices.HEAD
    scorer_name = "choice_scorer"
    column_names = ("prompt", "endings")

    def make_outputs(self) -> tuple[dict[str, Tensor], Tensor]:
        inputs = {
            name: keras.Input((None, None), dtype=tensor.dtype, name=name)
            for name, tensor in self.backbone.input.items()
        }
        merge = _MergeChoices(name="merge_choices")
        scores = self.score_pairs({name: merge(tensor) for name, tensor in inputs.items()})
        split = _SplitChoices(dtype="float32", name="split_choices")
        return inputs, split(scores, inputs["padding_mask"])

    @classmethod
    def arguments_of(cls, checkpoint: Any, arguments: Config) -> tuple[Config, list[str]]:
        return {**checkpoints.head_arguments(checkpoint, "choice_scorer"), **arguments}, []

    def make_loss(self) -> keras.losses.Loss:
        """Sparse categorical cross-entropy over the endings of a row."""
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def make_metrics(self) -> dict[str, Any]:
        return {"metrics": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]}


class _MergeChoices(keras.layers.Layer):
    """Reshapes (B, K, L) to (B * K, L), so that each ending is a row of the backbone."""

    def call(self, inputs: Tensor) -> Tensor:
        return ops.reshape(inputs, (-1, ops.shape(inputs)[2]))


class _SplitChoices(keras.layers.Layer):
    """Reshapes scores (B * K, 1) to (B, K), where the inputs (B, K, L) say K."""

    def call(self, scores: Tensor, inputs: Tensor) -> Tensor:
        return ops.reshape(scores, (-1, ops.shape(inputs)[1]))
