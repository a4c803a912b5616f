"""Classifies texts by several attributes at once: a class of each attribute for each text."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import keras_hub
import numpy as np

from keras_bert_suite.annotations import Inputs, Labels, Tensor
from keras_bert_suite.heads import attributes
from keras_bert_suite.heads.attributes.data import check_attributes
from keras_bert_suite.heads.base.input_checks import EncoderInputs
from keras_bert_suite.heads.base.inspection import inspect_rows
from keras_bert_suite.heads.base.labelled_task import make_head
from keras_bert_suite.heads.base.part_checks import check_summary_place
from keras_bert_suite.heads.base.split_models import split_at
from keras_bert_suite.heads.base.task import Task
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.training import (
    AttributeAccuracy,
    AttributeLoss,
    Divergence,
    OutputForm,
    is_accuracy,
)
from keras_bert_suite.training.losses import split_attributes


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class AttributeClassifier(Task, keras_hub.models.Task):
    """A text encoder with a softmax for each of several attributes.

    One model says the size, the season and the color of a product, where several classifiers would
    each encode its text. The loss of a row is the sum of the cross-entropies of its attributes.

    Labels are a dict, or a DataFrame, with a column for each attribute. A label is a name or a
    class id of its attribute. None, NaN and "" are missing labels: they add nothing to the loss,
    and do not count in scores. Texts, pairs, packed arrays and datasets are as for a
    `TextClassifier`.

    Args:
        backbone: `BertBackbone`, or any KerasHub text encoder.
        attributes: dict of the name of an attribute -> list of the names of its labels, at least 2.
            With `from_preset`, the classification layer is then new.
        attribute_weights: dict of the name of an attribute -> float, its weight in the loss. Others
            have the weight 1.
        preprocessor: `SegmentPacker`, a KerasHub preprocessor, or None for packed arrays only.
        dropout: float, dropout rate of the pooled output.
        input_names: as for a `TextClassifier`.

    Outputs of the model: float32 (B, C), logits for the labels of all attributes, one attribute
    after the other.

    Example:
    ```python
    attributes = {"size": ["small", "large"], "season": ["summer", "winter"]}
    classifier = AttributeClassifier.from_preset("path/to/checkpoint", attributes=attributes)
    classifier.fit(texts, {"size": ["small", None], "season": ["winter", "summer"]}, epochs=3)
    classifier.predict_labels(["a warm coat"])  # {"size": ["large"], "season": ["winter"]}
    ```

    Source: Caruana, 1997 (https://doi.org/10.1023/A:1007379606734), with a shared encoder.
    """

    HEAD = attributes.HEAD
    head_name = "attribute_classifier"
    loss_advice = "A row has a label for each attribute. Leave `loss` out."
    metric_advice = (
        "It does not tell the attributes apart. Pass 'accuracy', over all attributes. `score` has "
        "the accuracy and the macro F1 of each attribute."
    )

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        attributes: Mapping[str, Sequence[str]],
        *,
        attribute_weights: Mapping[str, float] | None = None,
        preprocessor: keras.layers.Layer | None = None,
        dropout: float = 0.1,
        input_names: str | Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        self.check_further_arguments(kwargs)
        check_attributes(attributes, attribute_weights)
        encoder = Encoder.of(backbone)
        check_summary_place(backbone, encoder.summary_place)

        # === Layers ===
        self.backbone = backbone
        self.classifier_dropout, self.attribute_classifier = make_head(
            backbone, sum(map(len, attributes.values())), dropout, self.head_name
        )
        # The loss is computed in float32 under every policy.
        self.output_activation = keras.layers.Activation(None, dtype="float32", name="predictions")

        # === Functional Model ===
        inputs = backbone.input
        pooled = self.classifier_dropout(encoder.encode_summary(inputs))
        outputs = self.output_activation(self.attribute_classifier(pooled))

        # === Data and Answers ===
        self.make_parts(
            preprocessor,
            EncoderInputs.of(backbone, encoder.summary_place),
            attributes=attributes,
            input_names=input_names,
        )
        self.attribute_weights = dict(attribute_weights or {})  # `compile` reads it.
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

        # === Config ===
        self.dropout = dropout

    @property
    def attributes(self) -> dict[str, list[str]]:
        """dict of the name of an attribute -> list of the names of its labels."""
        return self.data.labels.attributes

    @property
    def label_names(self) -> list[str]:
        """list of C str, "attribute=label" for each output."""
        return self.data.labels.names

    @classmethod
    def has_new_head(cls, arguments: dict[str, Any]) -> bool:
        # The configuration of a task, with its backbone, has the attributes of its own head.
        return "attributes" in arguments and "backbone" not in arguments

    def make_loss(self) -> keras.losses.Loss:
        """`AttributeLoss` with the `attribute_weights`."""
        weights = [self.attribute_weights.get(name, 1.0) for name in self.attributes]
        return AttributeLoss([len(names) for names in self.attributes.values()], weights)

    def find_divergence(self) -> Divergence:
        """The sum over the attributes, by the `attribute_weights`."""
        sizes = [len(names) for names in self.attributes.values()]
        weights = [self.attribute_weights.get(name, 1.0) for name in self.attributes]
        of_attribute = Divergence.of_form(OutputForm("classes")).one_way

        def compare(y_true: Any, p: Tensor, q: Tensor) -> Tensor:
            parts = zip(split_attributes(p, sizes), split_attributes(q, sizes), strict=True)
            found = [of_attribute(y_true, *pair) for pair in parts]
            return sum(w * d for w, d in zip(weights, found, strict=True))

        return Divergence.of(compare)

    def split_at_vectors(self) -> tuple[keras.Model, keras.Model]:
        return split_at(self, self.classifier_dropout.input)

    def make_metrics(self) -> dict[str, Any]:
        """The share of labels that are right, over all attributes."""
        sizes = [len(names) for names in self.attributes.values()]
        return {"metrics": [AttributeAccuracy(sizes)]}

    def read_metric(self, metric: Any, output: str | None = None, only_counts: bool = False) -> Any:
        if is_accuracy(metric):
            sizes = [len(names) for names in self.attributes.values()]
            metric = AttributeAccuracy(sizes, name=metric)
        return super().read_metric(metric, output, only_counts)

    def predict_labels(
        self, x: Inputs, batch_size: int | None = None, steps: int | None = None, **kwargs: Any
    ) -> dict[str, list[str]]:
        """dict of the name of an attribute -> list of N str, the label of each row.

        Args:
            x, batch_size, steps, **kwargs: as for `predict`, which returns a dict of the name of an
                attribute -> float32 (N, its labels), logits.
        """
        return self.predict_with(self.answers.name, x, batch_size, steps, **kwargs)

    def predict_probabilities(
        self, x: Inputs, batch_size: int | None = None, steps: int | None = None, **kwargs: Any
    ) -> dict[str, np.ndarray]:
        """dict of the name of an attribute -> float32 (N, its labels), probabilities.

        Args: as for `predict`.
        """
        return self.predict_with(self.answers.decode_probabilities, x, batch_size, steps, **kwargs)

    def score(self, x: Inputs, y: Labels, batch_size: int | None = None) -> dict[str, Any]:
        """Scores each attribute over the rows with a label of this attribute.

        Args:
            x, y: as for `fit`, in memory. An attribute may have no labels here.
            batch_size: int, 32 by default.

        Returns:
            dict of `accuracy`, over all labels; `macro_f1`, the mean over the attributes; and
            `attributes`, a dict of the name of an attribute -> dict of `accuracy`, `macro_f1` and
            `rows`, without attributes that no row has.
        """
        return self.score_with(self.answers.score, x, y, batch_size, may_be_empty=True)

    inspect = inspect_rows
