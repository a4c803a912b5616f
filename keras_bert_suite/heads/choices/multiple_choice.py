"""Chooses the right ending of a prompt among several."""

from typing import Any

import keras
import keras_hub
from keras import ops

from keras_bert_suite import checkpoints
from keras_bert_suite.annotations import Config, Tensor
from keras_bert_suite.heads import choices
from keras_bert_suite.heads.base.pair_scorer import PairScorer
from keras_bert_suite.heads.base.predicted_probabilities import predict_probabilities
from keras_bert_suite.layers.poolings.window_layers import MergeWindows, find_windows


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class MultipleChoice(PairScorer, keras_hub.models.Task):
    """A text encoder with a layer that scores each of K endings of a prompt.

    A row is a prompt and K endings. The model sees each ending as a pair of texts, the prompt and
    the ending, and the loss compares the K scores of a row. `fit`, `evaluate` and `predict` take a
    tuple of two columns `(prompts, endings)`, in which a row of endings is a list of K texts; a
    DataFrame or dict with the columns `prompt` and `endings`; packed arrays (N, K, L); or datasets
    of batches of these. Rows may have different numbers of endings: in packed arrays an ending
    whose `padding_mask` is 0 is none. The label of a row is the index of its right ending.
    `read_swag` reads such rows from files.

    Args:
        backbone: `BertBackbone`, or any KerasHub text encoder.
        preprocessor: `SegmentPacker`, a KerasHub preprocessor, or None for packed arrays only.
        dropout: float, dropout rate of the pooled output.
        input_names: names of the columns, and of the inputs of an export.

    Outputs, of the model and of `predict`: float32 (B, K), logits. Where a row has no further
    ending, the logit of the model is -1e9. `predict` returns a list of N arrays (K,) if rows of
    texts have different numbers of endings.

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
        scores = self.score_pairs(MergeWindows(name="merge_choices")(inputs))
        split = SplitChoices(dtype="float32", name="split_choices")
        return inputs, split(scores, inputs["padding_mask"])

    @classmethod
    def arguments_of(cls, checkpoint: Any, arguments: Config) -> tuple[Config, list[str]]:
        return {**checkpoints.head_arguments(checkpoint, "choice_scorer"), **arguments}, []

    def make_loss(self) -> keras.losses.Loss:
        """Sparse categorical cross-entropy over the endings of a row."""
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def make_metrics(self) -> dict[str, Any]:
        return {"metrics": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]}

    predict_probabilities = predict_probabilities


class SplitChoices(keras.layers.Layer):
    """Reshapes scores (B * K, 1) to (B, K), with -1e9 where the mask (B, K, L) has no token."""

    def call(self, scores: Tensor, padding_mask: Tensor) -> Tensor:
        scores = ops.reshape(scores, (-1, ops.shape(padding_mask)[1]))
        return ops.where(find_windows(padding_mask), scores, -1e9)
