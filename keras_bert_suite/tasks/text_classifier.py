"""The task of giving each text, or pair of texts, a class."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import keras_hub

from keras_bert_suite import checkpoints
from keras_bert_suite.annotations import Activation, Config, Labels, Tensor
from keras_bert_suite.data.class_weights import read_class_weights, weight_rows
from keras_bert_suite.data.label_encoding import encode_labels
from keras_bert_suite.models import BertBackbone
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.tasks.input_checks import check_input_names
from keras_bert_suite.tasks.labelled_task import (
    LabelledTask,
    make_head,
    resolve_label_names,
    serve_classes,
)
from keras_bert_suite.training import AdamW, LinearWarmupDecay


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class TextClassifier(LabelledTask, keras_hub.models.TextClassifier):
    """A text encoder with a classification layer on its pooled output.

    `fit`, `evaluate` and `predict` take raw strings: a list, an array or a pandas Series. Pairs
    are a tuple of two such columns, a DataFrame, or a dict of text columns. They also take packed
    arrays (a dict of `token_ids`, `segment_ids` and `padding_mask`), and datasets of batches with
    labels: `tf.data`, Grain, `keras.utils.PyDataset`, a PyTorch `DataLoader` or a generator.

    Labels are class ids, or the names in `label_names`.

    Args:
        backbone: `BertBackbone`, or any KerasHub text encoder.
        num_classes: int C, at least 2. Defaults to the number of `label_names`.
        label_names: list of C strings. Defaults to the class ids as strings.
        preprocessor: `SegmentPacker`, a KerasHub preprocessor, or None if inputs
            come packed.
        dropout: float, dropout rate of the pooled output.
        activation: None for logits, or "softmax" for probabilities.
        input_names: names of the texts of a row, such as ("premise", "hypothesis"). If it is
            None, the first `fit` sets it to the names of the columns of a DataFrame or dict, or
            to ("text",) or ("text_a", "text_b"). After that, rows with another number of texts
            are an error. The inputs of exports have these names.

    Outputs, of the model and of `predict`: float32 (B, C).

    Example:
    ```python
    classifier = TextClassifier.from_preset("path/to/checkpoint", num_classes=2)
    classifier.fit(texts, labels, validation_data=(dev_texts, dev_labels), epochs=3)
    classifier.predict(["a gripping, funny film"])
    ```

    Source: Devlin et al., 2018 (https://arxiv.org/abs/1810.04805), section 4.1.
    """

    backbone_cls = BertBackbone
    preprocessor_cls = SegmentPacker
    head_name = "classifier"

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        num_classes: int | None = None,
        *,
        label_names: Sequence[str] | None = None,
        preprocessor: keras.layers.Layer | None = None,
        dropout: float = 0.1,
        activation: Activation | None = None,
        input_names: str | Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        label_names = resolve_label_names(type(self).__name__, num_classes, label_names)
        activation = _check_activation(activation)

        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.classifier_dropout, self.classifier = make_head(
            backbone, len(label_names), dropout, self.head_name
        )
        # The loss is computed in float32 under every policy.
        self.output_activation = keras.layers.Activation(
            activation, dtype="float32", name="predictions"
        )

        # === Functional Model ===
        inputs = backbone.input
        pooled = self.classifier_dropout(pool_first_token(backbone(inputs)))
        outputs = self.output_activation(self.classifier(pooled))
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

        # === Config ===
        self.label_names = label_names
        self.dropout = dropout
        self.input_names = check_input_names(input_names)

    @property
    def activation(self) -> Callable[[Tensor], Tensor]:
        """The function from logits to outputs."""
        return self.output_activation.activation

    @property
    def returns_logits(self) -> bool:
        """bool, whether outputs are logits, and not probabilities."""
        return self.activation is not keras.activations.softmax

    @classmethod
    def head_arguments(cls, checkpoint: Any) -> dict[str, Any]:
        return checkpoints.classifier_arguments(checkpoint)

    def compile(
        self,
        optimizer: str | keras.optimizers.Optimizer = "auto",
        loss: Any = "auto",
        *,
        metrics: Any = "auto",
        **kwargs: Any,
    ) -> None:
        """Configures training, by default as BERT is fine-tuned.

        Args:
            optimizer: "auto" is `AdamW` at 5e-5 with linear warm-up over the first
                tenth of the steps that `fit` takes, and linear decay over the rest.
            loss: "auto" is sparse categorical cross-entropy.
            metrics: "auto" is accuracy.
            **kwargs: see `keras.Model.compile`.
        """
        if isinstance(optimizer, str) and optimizer == "auto":
            optimizer = AdamW(LinearWarmupDecay(5e-5))
        if isinstance(loss, str) and loss == "auto":
            loss = keras.losses.SparseCategoricalCrossentropy(from_logits=self.returns_logits)
        if isinstance(metrics, str) and metrics == "auto":
            metrics = [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]
        super().compile(optimizer=optimizer, loss=loss, metrics=metrics, **kwargs)

    def encode_labels(self, labels: Labels) -> Labels:
        """Turns class ids or label names into class ids."""
        return encode_labels(labels, self.label_names)

    def class_weighting(self, class_weight: Mapping[Any, float]) -> Callable[[Tensor], Tensor]:
        """The function from class ids to the weights of their classes."""
        weights = read_class_weights(class_weight, self.label_names)
        return lambda labels: weight_rows(labels, weights)

    def serving_outputs(self, outputs: Tensor, packed: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The answers of a server: `probabilities` float32 (B, C) and `label_ids` int32 (B,)."""
        return serve_classes(outputs, self.returns_logits)

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            "activation": keras.activations.serialize(self.activation),
        }


def pool_first_token(outputs: Tensor) -> Tensor:
    """float (B, H), a backbone's `pooled_output`, or its sequence output at the first position."""
    if isinstance(outputs, dict):
        if "pooled_output" in outputs:
            return outputs["pooled_output"]
        outputs = outputs["sequence_output"]
    return outputs[:, 0, :]


def _check_activation(activation):
    if isinstance(activation, dict):
        activation = keras.activations.deserialize(activation)
    names = {None: None, "linear": None, "softmax": "softmax"}
    name = activation if activation is None or isinstance(activation, str) else None
    if callable(activation):
        name = getattr(activation, "__name__", repr(activation))
    if name not in names:
        raise ValueError(
            f"activation must be None, for logits, or 'softmax', got {name!r}: the classes of a "
            "TextClassifier exclude each other."
        )
    return names[name]
