"""The common base of tasks that score pairs of texts."""

from collections.abc import Sequence
from typing import Any

import keras
import keras_hub

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.heads.base.input_checks import EncoderInputs
from keras_bert_suite.heads.base.labelled_task import make_head
from keras_bert_suite.heads.base.part_checks import check_summary_place
from keras_bert_suite.heads.base.task import Task
from keras_bert_suite.models.encoder import Encoder


class PairScorer(Task):
    """The base of tasks whose encoder reads two texts together, and whose head scores them.

    A task says in `make_outputs` how the pairs stand in its inputs.
    """

    #: The name of the layer that scores, also as an attribute, and the default `input_names`.
    scorer_name: str
    column_names: tuple[str, str]

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        *,
        preprocessor: keras.layers.Layer | None = None,
        dropout: float = 0.1,
        input_names: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        self.check_further_arguments(kwargs)
        summary_place = Encoder.of(backbone).summary_place
        check_summary_place(backbone, summary_place)
        encoder = EncoderInputs.of(backbone, summary_place)
        encoder.check_pairs()

        # === Layers ===
        self.backbone = backbone
        self.classifier_dropout, scorer = make_head(backbone, 1, dropout, self.scorer_name)
        setattr(self, self.scorer_name, scorer)
        # The loss is computed in float32 under every policy.
        self.output_activation = keras.layers.Activation(None, dtype="float32", name="scores")

        # === Functional Model ===
        inputs, outputs = self.make_outputs()

        # === Data and Answers ===
        self.make_parts(preprocessor, encoder, input_names=input_names or self.column_names)
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

        # === Config ===
        self.dropout = dropout

    def make_outputs(self) -> tuple[dict[str, Tensor], Tensor]:
        """The inputs of the model by name, and its outputs: symbolic."""
        raise NotImplementedError

    def score_pairs(self, inputs: dict[str, Tensor]) -> Tensor:
        """The scores of pairs, float32 (B, 1), from inputs of the backbone (B, L)."""
        pooled = self.classifier_dropout(Encoder.of(self.backbone).encode_summary(inputs))
        return self.output_activation(getattr(self, self.scorer_name)(pooled))
