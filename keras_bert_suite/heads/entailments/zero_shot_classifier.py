"""Classifies texts by labels that it was not trained on, by the entailment of a statement."""

from collections.abc import Sequence
from typing import Any

import keras
import keras_hub
import numpy as np

from keras_bert_suite import checkpoints
from keras_bert_suite.annotations import Config, Inputs, Labels, Tensor
from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.checkpoints.head_types.head_fields import SINGLE_LABEL
from keras_bert_suite.data.rows import read_texts
from keras_bert_suite.heads import entailments
from keras_bert_suite.heads.base.input_checks import EncoderInputs
from keras_bert_suite.heads.base.labelled_task import LabelledTask, make_head, resolve_label_names
from keras_bert_suite.heads.base.part_checks import check_summary_place
from keras_bert_suite.heads.base.predicted_probabilities import predict_probabilities
from keras_bert_suite.heads.choices.multiple_choice import SplitChoices
from keras_bert_suite.heads.entailments.data import PLACE
from keras_bert_suite.layers.poolings.window_layers import MergeWindows
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.training import ClassAccuracy, ClassCrossentropy, LabelSetF1, LabelwiseLoss

#: The statement of transformers' pipeline.
TEMPLATE = "This example is {}."

#: The names of the three classes of natural language inference.
NLI_LABELS = ("entailment", "neutral", "contradiction")


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ZeroShotClassifier(LabelledTask, keras_hub.models.Task):
    """An encoder that was trained on entailment, and says which label fits a text, untrained.

    Each label makes a statement by the `template`, such as "This example is politics.". The encoder
    reads the text and a statement as a pair, and its classification layer says whether the text
    entails the statement. So the labels need no examples, and each call may have others. Take it
    where there are no labelled texts, or where labels change; a few hundred labelled texts make a
    `TextClassifier` that is better, and K times as fast.

    Of one of many labels, the probabilities are the softmax of the logits of entailment over the
    labels. With `multi_label` each label has its own: the softmax of its two logits of entailment
    and contradiction. These are the rules of transformers' pipeline "zero-shot-classification".
    There, contradiction is the first or the last class; here it is found by its name.

    `fit` trains on texts and their labels, as a `TextClassifier` does.

    Args:
        backbone: `BertBackbone`, or any KerasHub text encoder.
        num_classes: int, the number of `label_names`.
        label_names: list of K str, at least 2, or 1 with `multi_label`.
        template: str, with {} in the place of the label.
        multi_label: bool, whether a text may have several of the labels, or none.
        nli_labels: list of str, the classes of the classification layer in their order. One begins
            with "entail", and for `multi_label` one with "contra", or there are two classes.
        preprocessor: `SegmentPacker`, or None for packed arrays (N, K, L). A row that is too long
            loses tokens of its text, never of the statement. `predict` and `fit` raise a ValueError
            for a label whose statement leaves no place for a text.
        dropout: float, dropout rate of the pooled output.
        input_names: names of the two columns, and of the inputs of an export.

    Outputs of the model: float32 (B, K), logits of entailment; with `multi_label` minus those of
    contradiction. Where a row has no further label, the logit is -1e9.

    Source: Yin et al., 2019 (https://arxiv.org/abs/1909.00161), and transformers'
    `ZeroShotClassificationPipeline`.
    """

    global_tokens = "later_texts"  # The statement.
    HEAD = entailments.HEAD
    head_name = "classifier"

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        num_classes: int | None = None,
        *,
        label_names: Sequence[str] | None = None,
        template: str = TEMPLATE,
        multi_label: bool = False,
        nli_labels: Sequence[str] = NLI_LABELS,
        preprocessor: keras.layers.Layer | None = None,
        dropout: float = 0.1,
        input_names: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        self.check_further_arguments(kwargs)
        label_names = _check_labels(label_names, num_classes, multi_label)
        if not isinstance(template, str) or template.count(PLACE) != 1:
            raise ValueError(
                f"template must have one {PLACE}, the place of the label, got {template!r}. Such "
                f"as {TEMPLATE!r}."
            )
        entailed, contradicted = find_entailment(nli_labels, multi_label)
        summary_place = Encoder.of(backbone).summary_place
        check_summary_place(backbone, summary_place)
        encoder = EncoderInputs.of(backbone, summary_place)
        encoder.check_pairs()

        self.multi_label = multi_label

        # === Layers ===
        self.backbone = backbone
        self.classifier_dropout, self.classifier = make_head(
            backbone, len(nli_labels), dropout, self.head_name
        )
        # The loss is computed in float32 under every policy.
        self.output_activation = keras.layers.Activation(None, dtype="float32", name="entailments")

        # === Functional Model ===
        inputs = {
            name: keras.Input((None, None), dtype=tensor.dtype, name=name)
            for name, tensor in backbone.input.items()
        }
        pairs = MergeWindows(name="merge_labels")(inputs)
        pooled = self.classifier_dropout(Encoder.of(backbone).encode_summary(pairs))
        logits = self.output_activation(self.classifier(pooled))
        scores = logits[:, entailed : entailed + 1]
        if multi_label:
            scores = scores - logits[:, contradicted : contradicted + 1]
        split = SplitChoices(dtype="float32", name="split_labels")
        outputs: Tensor = split(scores, inputs["padding_mask"])

        # === Data and Answers ===
        self.make_parts(
            preprocessor,
            encoder,
            labels=label_names,
            template=template,
            multi_label=multi_label,
            input_names=input_names or ("text", "labels"),
        )
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

        # === Config ===
        self.nli_labels = list(nli_labels)
        self.dropout = dropout

    @property
    def label_names(self) -> list[str]:
        """list of K str. Other labels, of any number, may be set."""
        return self.data.labels.names

    @label_names.setter
    def label_names(self, names: Sequence[str]) -> None:
        self.data.labels.names = _check_labels(names, None, self.multi_label)

    @property
    def template(self) -> str:
        """str, the statement, with {} in the place of the label."""
        return self.data.template

    @classmethod
    def has_new_head(cls, arguments: dict[str, Any]) -> bool:
        """Labels are no outputs of the head, so other labels take the same head."""
        return False

    @classmethod
    def arguments_of(cls, checkpoint: Any, arguments: Config) -> tuple[Config, list[str]]:
        head = checkpoints.head_arguments(checkpoint, cls.head_name)
        said = {"nli_labels": head["label_names"], "dropout": head.get("dropout", 0.1)}
        return {**said, **arguments}, []

    def make_loss(self) -> keras.losses.Loss:
        """Cross-entropy for one of the labels, binary for sets of labels."""
        if self.multi_label:
            return LabelwiseLoss(keras.losses.BinaryCrossentropy(from_logits=True))
        return ClassCrossentropy(from_logits=True)

    def make_metrics(self) -> dict[str, Any]:
        """Accuracy; or micro and macro F1."""
        if self.multi_label:
            return {"metrics": [LabelSetF1("micro", True), LabelSetF1("macro", True)]}
        return {"metrics": [ClassAccuracy()]}

    def predict(
        self,
        x: Inputs = None,
        batch_size: int | None = None,
        steps: int | None = None,
        *,
        labels: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> Any:
        """The probabilities of the labels of each text.

        Args:
            x: texts: a list, an array, a pandas Series, or a dataset of batches of them; packed
                arrays (N, K, L) by name; or `(texts, lists of labels)`, a list for each text.
            batch_size, steps: as for `Task.predict`. A batch of texts has K pairs for each text.
            labels: list of str, other labels than `label_names` for texts in memory.
            **kwargs: `verbose` and `callbacks`, as in Keras.

        Returns:
            float32 (N, K), in the order of the labels; or a list of N arrays (K,) if rows have
            different numbers of labels.
        """
        if labels is not None:
            names = _check_labels(labels, None, self.multi_label)
            texts = read_texts(x)
            if not len(texts):
                return np.zeros((0, len(names)), "float32")
            x = (texts, [names] * len(texts))
        return self.predict_with(self.answers.decode, x, batch_size, steps, **kwargs)

    def predict_labels(
        self, x: Inputs, batch_size: int | None = None, steps: int | None = None, **kwargs: Any
    ) -> list[Any]:
        """list of N str, the label of each row; or of N lists of str. Arguments as for `predict`.

        With `multi_label`, the labels of a row are those with a probability above 0.5.
        """
        return self.predict_with(self.answers.name, x, batch_size, steps, **kwargs)

    predict_probabilities = predict_probabilities

    def score(self, x: Inputs, y: Labels, batch_size: int | None = None) -> dict[str, Any]:
        """Scores the answers for rows; see `TextClassifier.score`."""
        return self.score_with(self.answers.score, x, y, batch_size)


def find_entailment(nli_labels: Sequence[str], multi_label: bool) -> tuple[int, int]:
    """The places of entailment and contradiction among the classes of an NLI head, by their names.

    The second is -1 where it is not asked for and not named.
    """
    names = [name.lower() for name in nli_labels]
    entailed = [i for i, name in enumerate(names) if name.startswith("entail")]
    against = [i for i, name in enumerate(names) if name.startswith("contra")]
    if not against and len(names) == 2 and len(entailed) == 1:
        against = [1 - entailed[0]]  # Such as "not_entailment".
    for wanted, found in (("entailment", entailed), ("contradiction", against)):
        if len(found) != 1 and (multi_label or found is entailed):
            raise ValueError(
                f"The classes of the classifier are {', '.join(nli_labels)}, of which "
                f"{len(found) or 'none'} named {wanted}. Open a checkpoint that was trained on "
                "natural language inference (MNLI, XNLI), or name its classes: "
                f"classifier.label_names = {list(NLI_LABELS)}, in the order of its outputs."
            )
    return entailed[0], against[0] if len(against) == 1 else -1


def make_zero_shot(
    task: Any, label_names: Sequence[str], template: str, multi_label: bool
) -> ZeroShotClassifier:
    """See `TextClassifier.zero_shot`."""
    is_plain = task.problem_type == SINGLE_LABEL and len(task.input["padding_mask"].shape) == 2
    if not is_plain or task.pooling is not None or task.features is not None:
        raise ValueError(
            f"zero_shot is for a TextClassifier of {SINGLE_LABEL}, on the pooled output of its "
            f"backbone and without columns beside the texts; got {with_article(task)} with "
            f"problem_type={task.problem_type!r}, pooling={task.pooling} and "
            f"features={task.features}. Open a checkpoint of natural language inference."
        )
    made = ZeroShotClassifier(
        task.backbone,
        label_names=label_names,
        template=template,
        multi_label=multi_label,
        nli_labels=task.label_names,
        preprocessor=task.preprocessor,
        dropout=task.dropout,
    )
    made.take_adapter_of(task)
    made.classifier.set_weights(task.classifier.get_weights())
    made.card.update(task.card)
    return made


def _check_labels(names, number, multi_label):
    """The list of labels that a text may have."""
    if isinstance(names, str) or (names is not None and len(names) == 1 and not multi_label):
        raise ValueError(
            f"Wanted a list of two or more labels, between which a text is classified, got "
            f"{names!r}. For labels that are each judged by themselves: multi_label=True."
        )
    return resolve_label_names("ZeroShotClassifier", number, names, fewest=1)
