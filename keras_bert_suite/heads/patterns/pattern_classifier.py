"""Classifies texts by the word that a masked language model expects beside them."""

from collections.abc import Mapping
from typing import Any, Self

import keras
import keras_hub
from keras import ops

from keras_bert_suite.annotations import Inputs, Labels, Tensor
from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.heads import patterns
from keras_bert_suite.heads.base.inspection import inspect_rows
from keras_bert_suite.heads.base.keras_presets import holds_task
from keras_bert_suite.heads.base.part_checks import find_direction
from keras_bert_suite.heads.base.predicted_probabilities import predict_probabilities
from keras_bert_suite.heads.base.task import Task
from keras_bert_suite.heads.masks.masked_lm import MaskedLM
from keras_bert_suite.heads.masks.masked_lm_head import make_masked_lm_head
from keras_bert_suite.heads.patterns.pattern import read_verbalizers
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.training import ClassAccuracy, ClassCrossentropy


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class PatternClassifier(Task, keras_hub.models.Task):
    """A text encoder with a masked-LM head that classifies by words in a pattern, as PET does.

    A pattern makes a cloze question of a text, such as "{text} It was {mask}.", and each label has
    a word that may stand there, its verbalizer. No weight is new. So it answers before any
    training, and learns from some dozen rows what a new layer needs some hundred for. From a few
    thousand rows on, a `TextClassifier` is as good.

    The mask becomes K masks, as many as the longest verbalizer has tokens. The score of a label is
    the sum over its tokens of the log-probability at their masks, in one pass; the masks after its
    last token do not count. For verbalizers of one token the probabilities of labels are the
    softmax over the logits of these tokens, the rule of the first paper. For several tokens the
    product is equation 5 of the second paper, by which PET trains; there it predicts by one pass
    for each token, and trains by a hinge loss. Here both are one pass and the cross-entropy. A long
    word has a lower product than a short one, so take words with as many tokens.

    Args:
        backbone: `BertBackbone`, or any KerasHub text encoder with a `token_embedding`.
        pattern: str, with one {mask} and a name in braces for each text of a row. The names are
            `input_names`. All parts are in one segment, and are tokenized one by one.
        verbalizers: dict of label -> its word. With byte pairs a space before the word begins a
            new word, " great".
        preprocessor: `SegmentPacker`, or None for packed arrays only.

    Inputs, a dictionary: the inputs of the backbone, int32 (B, L); `mask_positions`, int32 (B, K);
    `verbalizer_ids`, int32 (B, C, K), -1 after the last token of a word. Outputs, of the model and
    of `predict`: float32 (B, C), logits.

    Example:
    ```python
    classifier = PatternClassifier.from_preset(
        "path/to/checkpoint",
        pattern="{text} All in all, it was {mask}.",
        verbalizers={"positive": "great", "negative": "terrible"},
    )
    classifier.predict_labels(["a gripping, funny film"])
    classifier.fit(texts, labels, epochs=10)
    ```

    Source: Schick and Schuetze, 2020 (https://arxiv.org/abs/2001.07676), section 3.1, and "It's Not
    Just Size That Matters", 2020 (https://arxiv.org/abs/2009.07118), section 3.1.
    """

    global_tokens = "none"
    HEAD = patterns.HEAD

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        pattern: str,
        verbalizers: Mapping[str, str],
        *,
        preprocessor: keras.layers.Layer | None = None,
        **kwargs: Any,
    ) -> None:
        self.check_further_arguments(kwargs)
        if "mask_positions" in backbone.input or find_direction(backbone) is not None:
            raise ValueError(
                f"{with_article(backbone, 'A')} of this kind guesses no masked tokens, which a "
                "pattern asks for. Take an encoder that was trained on masks."
            )
        num_classes = len(read_verbalizers(verbalizers))

        # === Layers ===
        self.backbone = backbone
        self.masked_lm = make_masked_lm_head(backbone)

        # === Functional Model ===
        encoder = Encoder.of(backbone)
        self.unused_paths = encoder.find_unused(transformed=True)
        positions = keras.Input((None,), dtype="int32", name="mask_positions")
        words = keras.Input((num_classes, None), dtype="int32", name="verbalizer_ids")
        logits = self.masked_lm(encoder.encode_tokens_at(backbone.input, positions))
        # The loss is computed in float32 under every policy.
        scorer = _WordScores(num_classes, dtype="float32", name="word_scores")
        outputs = scorer(logits, words)
        inputs = {**backbone.input, "mask_positions": positions, "verbalizer_ids": words}

        # === Data and Answers ===
        self.make_parts(preprocessor, pattern=pattern, verbalizers=verbalizers)
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

    @property
    def pattern(self) -> str:
        """str, the words around the texts and the mask."""
        return self.data.pattern

    @property
    def verbalizers(self) -> dict[str, str]:
        """dict of label -> its word."""
        return self.data.verbalizers

    @property
    def label_names(self) -> list[str]:
        """list of C str, the labels of the verbalizers."""
        return list(self.data.labels.names)

    @classmethod
    def preset_classes(cls) -> tuple[type, ...]:
        return cls, *MaskedLM.preset_classes()

    @classmethod
    def load_keras_preset(cls, loader: Any, load_weights: bool, **arguments: Any) -> Self:
        if not holds_task(loader.preset, MaskedLM.preset_classes()):
            return super().load_keras_preset(loader, load_weights, **arguments)
        dtype = {"dtype": arguments.pop("dtype")} if "dtype" in arguments else {}
        model = MaskedLM.load_keras_preset(loader, load_weights, **dtype)
        task = cls(model.backbone, **arguments)
        task.masked_lm.set_weights(model.masked_lm.get_weights())
        return task

    def make_loss(self) -> keras.losses.Loss:
        """The cross-entropy of the labels, over the scores of their words."""
        return ClassCrossentropy(from_logits=True)

    def make_metrics(self) -> dict[str, Any]:
        return {"metrics": [ClassAccuracy()]}

    def predict_labels(
        self, x: Inputs, batch_size: int | None = None, steps: int | None = None, **kwargs: Any
    ) -> list[str]:
        """list of N str, the label of each row. Arguments: as for `predict`."""
        return self.predict_with(self.answers.name, x, batch_size, steps, **kwargs)

    predict_probabilities = predict_probabilities

    def score(self, x: Inputs, y: Labels, batch_size: int | None = None) -> dict[str, Any]:
        """Scores the answers for rows; see `TextClassifier.score`."""
        return self.score_with(self.answers.score, x, y, batch_size)

    inspect = inspect_rows


class _WordScores(keras.layers.Layer):
    """Sums the log-probabilities of words, from logits (B, K, V) and ids (B, C, K): (B, C)."""

    def __init__(self, num_classes: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.num_classes = num_classes

    def call(self, logits: Tensor, word_ids: Tensor) -> Tensor:
        log_probabilities = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
        places = ops.transpose(ops.maximum(word_ids, 0), (0, 2, 1))
        scores = ops.take_along_axis(log_probabilities, places, axis=-1)
        scores = ops.transpose(scores, (0, 2, 1))
        scores = ops.sum(ops.where(word_ids >= 0, scores, 0.0), axis=-1)
        return ops.reshape(scores, (-1, self.num_classes))  # An export has no fixed C otherwise.
