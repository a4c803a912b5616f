"""Finds the answer to a question in a context."""

import functools
from collections.abc import Sequence
from typing import Any

import keras
import keras_hub
from keras import ops

from keras_bert_suite.annotations import Config, Inputs, Labels
from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.heads import questions
from keras_bert_suite.heads.base.task import part_attribute
from keras_bert_suite.heads.base.token_task import TokenTask
from keras_bert_suite.heads.questions.scores import score_answers
from keras_bert_suite.layers.heads.head_layers import HeadLayers

#: The score of padding. So no answer begins or ends there, and the loss is the same with any length
#: of the padding.
_PADDING_SCORE = -1e9


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class QuestionAnswerer(TokenTask, keras_hub.models.Task):
    """A text encoder with a layer that scores each token as first and as last token of an answer.

    A row is a question and a context. `fit`, `evaluate` and `predict` take a tuple of two columns
    `(questions, contexts)`; a DataFrame or a dict with the columns `question` and `context`; packed
    arrays; or datasets of batches of these.

    The label of a row is `(start, end)`, the position of its answer in characters of the context;
    or a dict of SQuAD, `{"text": ..., "answer_start": ...}`, whose values may be lists. Training
    uses the first of several answers. `(-1, -1)`, or empty lists, is a question without an answer.
    `read_squad` reads such rows from files.

    A context that is too long for a row goes through the model as overlapping windows, each with
    the question before it. In training, the label of a window without the answer is [CLS].
    Prediction compares all spans of all windows. If a span is in several windows, the window with
    the most context around its first token counts.

    For packed arrays labels are the first and the last token (B, 2) of the answer in the row, and
    `predict` returns the outputs of the model.

    Args:
        backbone: `BertBackbone`, or any KerasHub text encoder with a sequence output.
        preprocessor: `SegmentPacker`, or None for packed arrays only.
        stride: int, the tokens from the start of a window to the start of the next window. None is
            a third of the packer's `sequence_length`, such as 128 of 384, but at most half of the
            room for the context.
        query_length: int, the maximum number of tokens of a question; the rest is cut off. None is
            64, but at most two thirds of a row.
        max_answer_length: int, the maximum number of tokens of an answer that `predict` finds.
        no_answer_threshold: float. A question has no answer if the `null_odds` of its `Answer` are
            above this threshold. Data in which some questions have no answer need it: pass 0.0, or
            let `tune_threshold` find a value. None if every question has an answer.
        head_layers: as for `TokenClassifier`. With `from_preset` the head is then new.
        input_names: names of the columns, and of the inputs of an export.

    Outputs of the model: float32 (B, 2, L), for each token the logit of being the first token of
    the answer, and of being the last token; -1e9 for padding.

    Example:
    ```python
    answerer = QuestionAnswerer.from_preset("path/to/checkpoint", sequence_length=384)
    train = read_squad("train-v1.1.json")
    answerer.fit(train.x, train.y, epochs=2)
    answerer.predict(question="Who wrote it?", context="Ada Lovelace wrote it in 1843.")
    # Answer(text="Ada Lovelace", start=0, end=12, score=0.97, null_odds=-8.1)
    ```

    Source: Devlin et al., 2018 (https://arxiv.org/abs/1810.04805), sections 4.2 and 4.3, and
    run_squad.py of google-research/bert.
    """

    global_tokens = "first_text"  # The question.
    HEAD = questions.HEAD
    head_defaults: dict[str, Any] = {}

    stride = part_attribute("data", "stride")
    query_length = part_attribute("data", "query_length")
    max_answer_length = part_attribute("answers", "max_answer_length")
    no_answer_threshold = part_attribute("data", "no_answer_threshold")

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        *,
        preprocessor: keras.layers.Layer | None = None,
        stride: int | None = None,
        query_length: int | None = None,
        max_answer_length: int = 30,
        no_answer_threshold: float | None = None,
        head_layers: HeadLayers = None,
        input_names: Sequence[str] = ("question", "context"),
        **kwargs: Any,
    ) -> None:
        self.check_further_arguments(kwargs)
        check_integer("max_answer_length", max_answer_length, at_least=1)

        # === Layers ===
        self.backbone = backbone
        self.span_labeler = keras.layers.Dense(
            2,
            kernel_initializer=keras.initializers.TruncatedNormal(stddev=0.02),
            dtype=backbone.dtype_policy,
            name="span_labeler",
        )
        # The loss is computed in float32 under every policy.
        self.output_activation = keras.layers.Activation(None, dtype="float32", name="scores")

        # === Functional Model ===
        inputs = backbone.input
        encoded = self.encode_for_head(head_layers, transformed=True)
        scores = ops.transpose(self.output_activation(self.span_labeler(encoded)), (0, 2, 1))
        is_token = ops.expand_dims(inputs["padding_mask"], axis=1) > 0
        outputs = ops.where(is_token, scores, _PADDING_SCORE)

        # === Data and Answers ===
        self.make_parts(
            preprocessor,
            stride=stride,
            query_length=query_length,
            no_answer_threshold=no_answer_threshold,
            max_answer_length=max_answer_length,
            input_names=input_names,
        )
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

    @classmethod
    def has_new_head(cls, arguments: Config) -> bool:
        return arguments.get("head_layers") is not None

    @classmethod
    def arguments_of(cls, checkpoint: Any, arguments: Config) -> tuple[Config, list[str]]:
        is_new = cls.has_new_head(arguments)
        arguments, new_parts = super().arguments_of(checkpoint, arguments)
        return arguments, [*new_parts, *(["span_labeler/.*"] if is_new else [])]

    def make_loss(self) -> keras.losses.Loss:
        """Cross-entropy over the tokens of a row, the mean for the first and the last token."""
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def make_metrics(self) -> dict[str, Any]:
        """The accuracy of first and last tokens."""
        return {"metrics": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]}

    def predict(
        self,
        x: Inputs = None,
        batch_size: int | None = None,
        steps: int | None = None,
        *,
        question: Any = None,
        context: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Finds the answer to each question.

        Args:
            x, batch_size, steps, **kwargs: as for `Task.predict`.
            question, context: instead of `x`. Each is a str, or a column of str. If only one of
                them is a str, it is used for every row of the other.

        Returns:
            list of `Answer`, one for each row; for a `question` and a `context` that are both str,
            an `Answer`; for packed arrays float32 (B, 2, L).
        """
        return self._answer(self.answers.decode, x, question, context, batch_size, steps, **kwargs)

    def predict_n_best(
        self,
        x: Inputs = None,
        batch_size: int | None = None,
        steps: int | None = None,
        *,
        n_best: int = 20,
        question: Any = None,
        context: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Ranks the best answers to each question by their score.

        Spans with the same text are listed only once. With a `no_answer_threshold`, "no answer" is
        one of the ranked answers.

        Args:
            x, batch_size, steps, question, context, **kwargs: as for `predict`.
            n_best: int, the maximum number of answers to return for a question.

        Returns:
            list of lists of `Answer`; for a `question` and a `context` that are both str, one list.
        """
        rank = functools.partial(self.answers.rank, n_best=n_best)
        return self._answer(rank, x, question, context, batch_size, steps, **kwargs)

    def score(
        self,
        x: Inputs,
        y: Labels,
        batch_size: int | None = None,
        characters: bool | str = False,
    ) -> dict[str, Any]:
        """Exact match and F1 of the answers, as the official scripts of SQuAD count them.

        Args:
            x: as for `fit`, in memory.
            y: as for `fit`. If a question has several accepted answers, the highest score counts.
            batch_size: int, 32 by default.
            characters: False compares words. For languages without spaces: True compares
                characters as CMRC 2018 does, and "korquad" as KorQuAD does.

        Returns:
            dict, see `score_answers`.
        """
        accepted = self.data.read_accepted(x, y)
        answers = self.predict(x, batch_size, verbose=0)
        return score_answers(accepted, [answer.text for answer in answers], characters)

    def tune_threshold(
        self,
        x: Inputs,
        y: Labels,
        batch_size: int | None = None,
        characters: bool | str = False,
    ) -> float:
        """Sets `no_answer_threshold` to the value with the highest F1 on held-out rows.

        The threshold is saved with the task.

        Args:
            x, y, batch_size, characters: as for `score`.

        Returns:
            float, the threshold.
        """
        accepted = self.data.read_accepted(x, y)
        tune = functools.partial(
            self.answers.tune_threshold, accepted=accepted, characters=characters
        )
        return self.predict_with(tune, x, batch_size, verbose=0)

    def _answer(self, decode, x, question, context, batch_size, steps, **kwargs):
        if (x is None) != (question is not None and context is not None):
            raise ValueError(
                "Pass rows as `x`, or the two arguments `question` and `context`, got "
                f"x of type {type(x).__name__}, question of type {type(question).__name__} and "
                f"context of type {type(context).__name__}."
            )
        if x is not None:
            return self.predict_with(decode, x, batch_size, steps, **kwargs)
        columns, is_single = _pair_columns(question, context)
        if is_single:
            kwargs.setdefault("verbose", 0)
        answers = self.predict_with(decode, columns, batch_size, steps, **kwargs)
        return answers[0] if is_single else answers


def _pair_columns(question, context):
    """((questions, contexts), columns of equal length; whether both were a single text)."""
    if isinstance(question, (str, bytes)) and isinstance(context, (str, bytes)):
        return ([question], [context]), True
    if isinstance(question, (str, bytes)):
        question = [question] * len(context)
    elif isinstance(context, (str, bytes)):
        context = [context] * len(question)
    return (question, context), False
