"""Finds entities as spans of tokens. Entities may lie within each other."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import keras_hub
from keras import ops

from keras_bert_suite.annotations import Config, Inputs, Labels, Tensor
from keras_bert_suite.heads import spans
from keras_bert_suite.heads.base.labelled_task import LabelledTask, resolve_label_names
from keras_bert_suite.heads.tags.word_cutting import WordCutting
from keras_bert_suite.heads.tags.word_task import WordTask
from keras_bert_suite.layers import Dropout, EfficientGlobalPointer
from keras_bert_suite.layers.heads.head_layers import HeadLayers
from keras_bert_suite.training import Divergence, SpanLoss, compare_switches


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class EntitySpanClassifier(WordTask, LabelledTask, keras_hub.models.Task):
    """A text encoder with a layer that scores every span of tokens for every type of entity.

    Entities may lie within each other, and a span may have several types.

    A row is a list of words, or a text. In Chinese a word is a character. The labels of a row are a
    list of spans `(start, end, type)`. In a list of words they count words: `words[start:end]` is
    the entity. In a text they count characters: `text[start:end]`. The entities that `predict`
    returns can be used as labels. `heads.spans.labels.tags_to_spans` makes spans of tags.

    `predict` returns the `Entity` objects of each row, sorted by start, end and the order of
    `label_names`. An entity is a span with a score above 0.

    A text that is longer than the packer's `sequence_length` goes through the model as windows.
    Each window begins half a window after the previous window. In training, a window has the
    entities that lie within it as a whole. `predict` takes an entity from the window with the most
    context around its middle. So it may miss an entity that is longer than half a window. Training
    warns about entities that no window holds as a whole.

    `fit` and `evaluate` also take packed arrays, with integer labels (N, M, 3): the first token,
    the last token and the label id of each entity, -1 where there is none. For packed
    arrays `predict` returns the scores.

    Args:
        backbone: `BertBackbone`, or any KerasHub text encoder with a sequence output.
        num_classes: int C, at least 1. Defaults to the number of `label_names`.
        label_names: list of C strings, the types of entities.
        preprocessor: `SegmentPacker`, or None for packed arrays only.
        head: layer from (B, L, H) and a padding mask (B, L) to float32 (B, C, L, L), such as
            `GlobalPointer(num_classes)`. None is `EfficientGlobalPointer(num_classes)`.
        head_layers: as for `TokenClassifier`.
        dropout: float, dropout rate of the head's input.
        input_names: the name of the texts in an export, ("text",) by default.
        word_cutting: as for `TokenClassifier`. An entity of a text begins and ends with a word.
            Texts with spans in `fit` are cut by it, too.

    Outputs of the model: float32 (B, C, L, L), by the first and the last token of a span.

    Example:
    ```python
    finder = EntitySpanClassifier.from_preset("path/to/checkpoint", label_names=["ORG", "LOC"])
    finder.fit(["Bank of England"], [[(0, 15, "ORG"), (8, 15, "LOC")]], epochs=3)
    finder.predict(["Bank of England"])
    ```

    Source: Su et al., 2022 (https://arxiv.org/abs/2208.03054).
    """

    HEAD = spans.HEAD
    head_name = "entity_spans"
    global_tokens = "none"
    loss_advice = (
        "The labels are spans, and no scores for each pair of tokens. Leave `loss` out to get "
        "SpanLoss."
    )
    metric_advice = (
        "The labels are spans, and no scores for each pair of tokens. Leave it out, and pass `fit` "
        "the callback EntityF1(dev_rows, dev_spans), whose scores other callbacks may watch."
    )

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        num_classes: int | None = None,
        *,
        label_names: Sequence[str] | None = None,
        preprocessor: keras.layers.Layer | None = None,
        head: keras.layers.Layer | None = None,
        head_layers: HeadLayers = None,
        dropout: float = 0.1,
        input_names: str | Sequence[str] | None = None,
        word_cutting: WordCutting | Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self.check_further_arguments(kwargs)
        label_names = resolve_label_names(type(self).__name__, num_classes, label_names, fewest=1)
        if head is None:
            head = EfficientGlobalPointer(
                len(label_names), dtype=backbone.dtype_policy, name=self.head_name
            )
        elif isinstance(head, dict):
            head = keras.layers.deserialize(head)

        # === Layers ===
        self.backbone = backbone
        self.head = head
        self.head_dropout = Dropout(dropout, dtype=backbone.dtype_policy, name="head_dropout")

        # === Functional Model ===
        inputs = backbone.input
        encoded = self.encode_for_head(head_layers, transformed=False)
        outputs = head(self.head_dropout(encoded), inputs["padding_mask"])
        if outputs.shape[1] != len(label_names):
            raise ValueError(
                f"The head {head.name} has scores for {outputs.shape[1]} types, and there are "
                f"{len(label_names)} label_names. Make both the same."
            )

        # === Data and Answers ===
        self.make_parts(
            preprocessor, labels=label_names, word_cutting=word_cutting, input_names=input_names
        )
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

        # === Config ===
        self.dropout = dropout

    @classmethod
    def arguments_of(cls, checkpoint: Any, arguments: Config) -> tuple[Config, list[str]]:
        arguments, new_parts = super().arguments_of(checkpoint, arguments)
        if arguments.get("head") is not None:
            new_parts.append(f"{arguments['head'].name}/.*")
        return arguments, new_parts

    @classmethod
    def from_config(cls, config: Config) -> Any:
        if config.get("num_classes") is not None and isinstance(config.get("head"), dict):
            # KerasHub's loader asks for a new head of another size.
            settings = {**config["head"]["config"], "num_classes": config["num_classes"]}
            config = {**config, "head": {**config["head"], "config": settings}}
        return super().from_config(config)

    def make_loss(self) -> keras.losses.Loss:
        return SpanLoss()

    def find_divergence(self) -> Divergence:
        """The sum over all spans and types: each is an entity or not, by itself."""

        def compare(y_true: Any, p: Tensor, q: Tensor) -> Tensor:
            spans = compare_switches(ops.cast(p, "float32"), ops.cast(q, "float32"))
            return ops.sum(spans, axis=(1, 2, 3))

        return Divergence.of(compare)

    def score(self, rows: Inputs, spans: Labels, batch_size: int | None = None) -> dict[str, Any]:
        """Precision, recall and F1 of the entities.

        A span of a text is scored as `fit` learns it: from the first character to the last of the
        words that it touches, such as without a space at its end. In a row of words, an entity ends
        at its first and last word that has a token.

        Args:
            rows, spans: as for `fit`, in memory, not packed.
            batch_size: int, 32 by default.

        Returns:
            dict, see `score_spans`.
        """
        score = self.answers.score
        return self.score_with(score, rows, spans, batch_size, may_be_empty=True)
