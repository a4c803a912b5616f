"""Says which relation two marked entities of a text have."""

import functools
from collections.abc import Sequence
from typing import Any, Self

import keras
import keras_hub

from keras_bert_suite.annotations import Config, Inputs, Labels, PathLike, Tensor
from keras_bert_suite.argument_checks import check_choice
from keras_bert_suite.heads import relations
from keras_bert_suite.heads.base.inspection import inspect_rows
from keras_bert_suite.heads.base.labelled_task import LabelledTask, make_head, resolve_label_names
from keras_bert_suite.heads.base.poolings import list_missing_poolers
from keras_bert_suite.heads.base.predicted_probabilities import predict_probabilities
from keras_bert_suite.heads.base.split_models import split_at
from keras_bert_suite.layers.heads.entity_states import EntityAverages, FindMarkers
from keras_bert_suite.layers.poolings.pooling import take_summary
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.training import ClassAccuracy, ClassCrossentropy

#: The markers of SemEval 2010 task 8: around the first entity, and around the second.
MARKERS = ("<e1>", "</e1>", "<e2>", "</e2>")


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class RelationClassifier(LabelledTask, keras_hub.models.Task):
    """A text encoder with a classification layer on the states of two marked entities.

    A row is a text in which markers stand around two entities:
    "The <e1>child</e1> was wrapped and bound into the <e2>cradle</e2>." Its label is the relation.
    `from_preset` adds the markers to the tokenizer, and rows for them to the token embedding. A
    text that is longer than the packer's `sequence_length` is cut on both sides of its entities.

    `fit`, `evaluate` and `predict` take such texts as a `TextClassifier` does, packed arrays, and
    datasets of batches. `read_semeval` reads texts and relations from the files of SemEval.

    Args:
        backbone: `BertBackbone`, or any KerasHub text encoder with a sequence output.
        num_classes: int C, at least 2. Defaults to the number of `label_names`.
        label_names: list of C strings, such as ["Cause-Effect(e1,e2)", "Other"]. Defaults to the
            class ids as strings.
        entity_states: the features. "markers": the states of the two start markers, 2 H numbers.
            "averages": the summary token and the means of the tokens of each entity, as in R-BERT,
            3 H numbers; see `EntityAverages`.
        markers: 4 different strings: before and after the first entity, and the second.
        marker_ids: 4 ints, the ids of the markers. None to ask the preprocessor's tokenizer.
        preprocessor: `SegmentPacker` with a tokenizer that has the markers as added tokens, or None
            for packed arrays only.
        dropout: float, dropout rate of the entity states.
        input_names: the name of the texts in an export, ("text",) by default.

    Outputs, of the model and of `predict`: float32 (B, C), logits.

    Example:
    ```python
    train = read_semeval("TRAIN_FILE.TXT")
    classifier = RelationClassifier.from_preset("bert", label_names=train.label_names)
    classifier.fit(train.x, train.y, epochs=5)
    classifier.predict_labels(["The <e1>fire</e1> was caused by a <e2>lamp</e2>."])
    ```

    Source: Baldini Soares et al., 2019 (https://arxiv.org/abs/1906.03158), section 3.3, "entity
    start", and Wu and He, 2019 (https://arxiv.org/abs/1905.08284).
    """

    HEAD = relations.HEAD
    head_name = "relation_classifier"

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        num_classes: int | None = None,
        *,
        label_names: Sequence[str] | None = None,
        entity_states: str = "markers",
        markers: Sequence[str] = MARKERS,
        marker_ids: Sequence[int] | None = None,
        preprocessor: keras.layers.Layer | None = None,
        dropout: float = 0.1,
        input_names: str | Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        self.check_further_arguments(kwargs)
        label_names = resolve_label_names(type(self).__name__, num_classes, label_names)
        check_choice("entity_states", entity_states, ("markers", "averages"))
        if isinstance(markers, str) or len(set(markers)) != 4:
            raise ValueError(f"markers must be 4 different strings, got {markers!r}.")

        # === Layers ===
        self.backbone = backbone
        self.marker_finder = FindMarkers(marker_ids or (-1,) * 4, name="marker_finder")
        self.entity_states = entity_states
        self.classifier_dropout, self.relation_classifier = make_head(
            backbone, len(label_names), dropout, self.head_name
        )
        # The loss is computed in float32 under every policy.
        self.output_activation = keras.layers.Activation(None, dtype="float32", name="predictions")

        # === Functional Model ===
        inputs = backbone.input
        states = self.encode_entities(inputs, dropout)
        outputs = self.output_activation(self.relation_classifier(self.classifier_dropout(states)))

        # === Data and Answers ===
        self.make_parts(preprocessor, labels=label_names, markers=markers, input_names=input_names)
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

        # === Config ===
        self.dropout = dropout

    def encode_entities(self, inputs: dict[str, Tensor], dropout: float) -> Tensor:
        """The features of the head: symbolic float (B, 2 H), or (B, 3 H) of averages."""
        encoder = Encoder.of(self.backbone)
        self.unused_paths = encoder.find_unused()
        places = self.marker_finder(inputs["token_ids"])
        if self.entity_states == "markers":
            states = encoder.encode_tokens_at(inputs, places[:, 0::2])
            return keras.layers.Reshape((2 * states.shape[-1],), dtype=states.dtype)(states)
        encoder.check_summary()
        encoded, summary, _ = encoder.encode_rows(inputs)
        if encoder.summary_place is None:
            self.unused_paths = frozenset()  # The summary is the pooled output.
        else:
            summary = take_summary(encoded, inputs["padding_mask"], encoder.summary_place)
        dtype = self.backbone.dtype_policy
        self.averages = EntityAverages(dropout, dtype=dtype, name="entity_averages")
        return self.averages(encoded, summary, places)

    @property
    def markers(self) -> tuple[str, ...]:
        """tuple of 4 str, the names of the markers in the texts."""
        return self.data.markers

    @property
    def marker_ids(self) -> tuple[int, ...]:
        """tuple of 4 int, the ids of the markers; -1 if they are not known yet."""
        return self.marker_finder.marker_ids

    @property
    def preprocessor(self) -> Any:
        """As in `Task`. Setting it also sets `marker_ids`, if its tokenizer has the markers."""
        return super().preprocessor

    @preprocessor.setter
    def preprocessor(self, value: keras.layers.Layer | None) -> None:
        LabelledTask.preprocessor.fset(self, value)  # type: ignore[attr-defined]
        try:
            ids = self.data.find_marker_ids()
        except ValueError:
            return  # A tokenizer that is being loaded gets its vocabulary later.
        if ids is not None and tuple(ids) != self.marker_ids:
            self.marker_finder.marker_ids = tuple(ids)
            if getattr(self, "built", False):  # Compiled functions have read the earlier ids.
                self.drop_functions()

    def check_parts(self) -> None:
        """As in `Task`. ValueError also if the ids of the markers are not known."""
        super().check_parts()
        if -1 in self.marker_ids:
            raise ValueError(
                f"The task does not know the markers {', '.join(self.markers)}, by which it finds "
                "the entities. Open it with from_preset; or call tokenizer.add_tokens(markers, "
                "special=True), and build it on a backbone of tokenizer.vocabulary_size(); or pass "
                "their `marker_ids`, for packed arrays."
            )

    @classmethod
    def from_preset(cls, preset: PathLike, **kwargs: Any) -> Self:
        """Builds the task from a checkpoint; see `TextClassifier.from_preset`.

        Markers that the tokenizer does not find in texts are added to it. If they are no tokens of
        its vocabulary, such as BERT's [unused1], the token embedding gets a new row for each.
        """
        task = super().from_preset(preset, **kwargs)
        tokenizer = getattr(task.preprocessor, "tokenizer", None)
        if tokenizer is None:
            return task
        added = {token.content for token in tokenizer.added_tokens}
        tokenizer.add_tokens([name for name in task.markers if name not in added], special=True)
        if tokenizer.vocabulary_size() <= task.backbone.vocabulary_size:
            task.preprocessor = task.preprocessor
            return task
        resized = task.resize_vocabulary(tokenizer.vocabulary_size())
        if task.compiled:
            resized.compile()
        return resized

    @classmethod
    def arguments_of(cls, checkpoint: Any, arguments: Config) -> tuple[Config, list[str]]:
        arguments, new_parts = super().arguments_of(checkpoint, arguments)
        new_parts = [*new_parts, "entity_averages/.*"]
        return arguments, [*new_parts, *list_missing_poolers(checkpoint)]

    def split_at_vectors(self) -> tuple[keras.Model, keras.Model]:
        return split_at(self, self.classifier_dropout.input)

    def make_loss(self) -> keras.losses.Loss:
        """Cross-entropy."""
        return ClassCrossentropy(from_logits=True)

    def make_metrics(self) -> dict[str, Any]:
        return {"metrics": [ClassAccuracy()]}

    def predict_labels(
        self, x: Inputs, batch_size: int | None = None, steps: int | None = None, **kwargs: Any
    ) -> list[str]:
        """list of N str, the relation of each row. Arguments: as for `predict`."""
        return self.predict_with(self.answers.name, x, batch_size, steps, **kwargs)

    predict_probabilities = predict_probabilities

    def score(
        self, x: Inputs, y: Labels, batch_size: int | None = None, *, other: str = "Other"
    ) -> dict[str, Any]:
        """Scores relations by the official rule of SemEval 2010 task 8.

        Args:
            x, y: as for `fit`, in memory.
            batch_size: int, 32 by default.
            other: str, the label of rows without a relation, which is no relation in the scores.

        Returns:
            dict, see `score_relations`.
        """
        return self.score_with(functools.partial(self.answers.score, other=other), x, y, batch_size)

    inspect = inspect_rows
