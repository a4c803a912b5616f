"""Finds the answer to a question in a context."""

from collections.abc import Sequence
from typing import Any

import keras
import keras_hub
import numpy as np
from keras import ops

from keras_bert_suite.annotations import Config, Inputs, Labels, Tensor
from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.data.answer_spans import (
    check_token_spans,
    read_accepted_answers,
    read_answer_spans,
)
from keras_bert_suite.data.rows import Rows, leave_tensorflow
from keras_bert_suite.data.squad_scores import find_threshold, score_answers
from keras_bert_suite.models import BertBackbone
from keras_bert_suite.models.model_inputs import select_inputs
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.tasks.answers import choose_answers, rank_answers
from keras_bert_suite.tasks.base.idle_weights import (
    IdleWeights,
    encode_tokens,
    find_idle,
    transform_tokens,
)
from keras_bert_suite.tasks.base.input_checks import (
    check_in_memory,
    order_columns,
)
from keras_bert_suite.tasks.base.predicting import predict
from keras_bert_suite.tasks.base.row_task import RowTask
from keras_bert_suite.tasks.base.text_packing import check_can_pack
from keras_bert_suite.tasks.question_windows import QuestionWindows, cut_question_windows

#: The score of padding. So no answer begins or ends there, and the loss is the same with any length
#: of the padding.
_PADDING_SCORE = -1e9


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class QuestionAnswerer(IdleWeights, RowTask, keras_hub.models.Task):
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
        input_names: names of the columns, and of the inputs of an export.

    Outputs of the model: float32 (B, 2, L), for each token the logit of being the first token of
    the answer, and of being the last token; -1e9 for padding.

    Example:
    ```python
    answerer = QuestionAnswerer.from_preset("path/to/checkpoint", sequence_length=384)
    train = read_squad("train-v1.1.json")
    answerer.fit((train.questions, train.contexts), train.answers, epochs=2)
    answerer.predict(question="Who wrote it?", context="Ada Lovelace wrote it in 1843.")
    # Answer(text="Ada Lovelace", start=0, end=12, score=0.97, null_odds=-8.1)
    ```

    Source: Devlin et al., 2018 (https://arxiv.org/abs/1810.04805), sections 4.2 and 4.3, and
    run_squad.py of google-research/bert.
    """

    backbone_cls = BertBackbone
    preprocessor_cls = SegmentPacker
    global_tokens = "first_text"  # The question.
    default_rate = 3e-5
    # Contexts are cut into windows in Python.
    preprocesses_in_graphs = False
    needs_segment_packer = True

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        *,
        preprocessor: keras.layers.Layer | None = None,
        stride: int | None = None,
        query_length: int | None = None,
        max_answer_length: int = 30,
        no_answer_threshold: float | None = None,
        input_names: Sequence[str] = ("question", "context"),
        **kwargs: Any,
    ) -> None:
        self.check_further_arguments(kwargs)
        check_integer("max_answer_length", max_answer_length, at_least=1)

        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
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
        encoded = transform_tokens(backbone, encode_tokens(backbone))
        scores = ops.transpose(self.output_activation(self.span_labeler(encoded)), (0, 2, 1))
        is_token = ops.expand_dims(inputs["padding_mask"], axis=1) > 0
        outputs = ops.where(is_token, scores, _PADDING_SCORE)
        self.idle_paths = find_idle(backbone, transformed=True)
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

        # === Config ===
        self.stride = stride
        self.query_length = query_length
        self.max_answer_length = max_answer_length
        self.no_answer_threshold = no_answer_threshold
        self.input_names = tuple(input_names)

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
            x, batch_size, steps, **kwargs: as for `RowTask.predict`.
            question, context: instead of `x`. Each is a str, or a column of str. If only one of
                them is a str, it is used for every row of the other.

        Returns:
            list of `Answer`, one for each row; for a `question` and a `context` that are both str,
            an `Answer`; for packed arrays float32 (B, 2, L).
        """
        return self._answer(x, question, context, batch_size, steps, self.decode, kwargs)

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

        def decode(outputs, rows):
            if not isinstance(rows, QuestionWindows):
                return outputs
            length, threshold = self.max_answer_length, self.no_answer_threshold
            return rank_answers(outputs, rows, length, threshold, n_best)

        return self._answer(x, question, context, batch_size, steps, decode, kwargs)

    def score(self, x: Inputs, y: Labels, batch_size: int | None = None) -> dict[str, Any]:
        """Exact match and F1 of the answers, as the official scripts of SQuAD count them.

        Args:
            x: as for `fit`, in memory.
            y: as for `fit`. If a question has several accepted answers, the highest score counts.
            batch_size: int, 32 by default.

        Returns:
            dict, see `score_answers`.
        """
        accepted = self._read_accepted(x, y)
        answers = self.predict(x, batch_size, verbose=0)
        return score_answers(accepted, [answer.text for answer in answers])

    def tune_threshold(self, x: Inputs, y: Labels, batch_size: int | None = None) -> float:
        """Sets `no_answer_threshold` to the value with the highest F1 on held-out rows.

        The threshold is saved with the task.

        Args:
            x, y, batch_size: as for `score`.

        Returns:
            float, the threshold.
        """

        def decode(outputs, rows):
            return choose_answers(outputs, rows, self.max_answer_length, None)

        accepted = self._read_accepted(x, y)
        answers = predict(self, x, batch_size, None, decode, verbose=0)
        self.no_answer_threshold = find_threshold(
            accepted,
            [answer.text for answer in answers],
            [answer.null_odds for answer in answers],
        )
        return self.no_answer_threshold

    def _answer(self, x, question, context, batch_size, steps, decode, kwargs):
        if (x is None) != (question is not None and context is not None):
            raise ValueError(
                "Pass rows as `x`, or the two arguments `question` and `context`, got "
                f"x of type {type(x).__name__}, question of type {type(question).__name__} and "
                f"context of type {type(context).__name__}."
            )
        if x is not None:
            return predict(self, x, batch_size, steps, decode, **kwargs)
        x, is_single = _pair_columns(question, context)
        if is_single:
            kwargs.setdefault("verbose", 0)
        answers = predict(self, x, batch_size, steps, decode, **kwargs)
        return answers[0] if is_single else answers

    def _read_accepted(self, x, y):
        """The accepted answers to rows in memory, list of lists of str."""
        check_in_memory(x)
        rows = self.read_rows(x)
        if isinstance(rows.inputs, dict):
            raise ValueError(
                "Packed arrays have no text, so their answers have no score. Pass questions and "
                "contexts, or call `evaluate`."
            )
        return read_accepted_answers(y, rows.inputs[1])

    def read_rows(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Rows:
        if isinstance(x, list) and not x:
            x = ([], [])
        rows = Rows.read(x, None, sample_weight)
        return self._read_labels(rows, y)

    def read_batch(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Rows:
        rows = Rows.read_batch(x, None, sample_weight)
        inputs = leave_tensorflow(rows.inputs)
        return self._read_labels(Rows(inputs, None, rows.weights, rows.input_names), y)

    def _read_labels(self, rows, y):
        """`Rows` in the order of question and context, with spans or tokens as labels."""
        if isinstance(rows.inputs, dict):
            shape = np.shape(next(iter(rows.inputs.values())))
            labels = None if y is None else check_token_spans(y, shape)
            return Rows(rows.inputs, labels, rows.weights)
        if len(rows.inputs) != 2:
            raise ValueError(
                f"A row of a {type(self).__name__} is a question and a context, got rows of "
                f"{len(rows.inputs)} texts. Pass a tuple of two columns, (questions, contexts)."
            )
        columns = order_columns(rows.inputs, rows.input_names, self.input_names)
        if y is None:
            return Rows(columns, None, rows.weights)
        labels = read_answer_spans(y, columns[1])
        unanswerable = np.flatnonzero(labels[:, 0] < 0)
        if len(unanswerable) and self.no_answer_threshold is None:
            raise ValueError(
                f"Row {unanswerable[0]} has no answer, and {self.name} answers every question. Set "
                "its no_answer_threshold to 0.0, or pass it to `from_preset`. After training, "
                "`tune_threshold` finds a better value."
            )
        return Rows(columns, labels, rows.weights)

    def cut_windows(self, rows: Rows) -> Rows:
        if isinstance(rows.inputs, dict):
            return rows
        check_can_pack(self)
        return cut_question_windows(self.preprocessor, rows, self.stride, self.query_length)

    def preprocess(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Any:
        if isinstance(x, tuple):
            questions, windows = map(_join, x)
            packed = self.preprocessor.pack_tokens(*windows, queries=[questions])
            x = select_inputs(self.backbone, packed)
        if sample_weight is not None:
            sample_weight = np.reshape(sample_weight, (-1, 1))  # for the start and the end
        return keras.utils.pack_x_y_sample_weight(x, y, sample_weight)

    def decode(self, outputs: Any, rows: Rows | None) -> Any:
        """Turns outputs for windows into an `Answer` for each row."""
        if not isinstance(rows, QuestionWindows):
            return outputs
        return choose_answers(outputs, rows, self.max_answer_length, self.no_answer_threshold)

    def serving_outputs(self, outputs: Tensor, packed: Any) -> dict[str, Tensor]:
        """The answers for tokens: `start_logits` and `end_logits`, float32 (B, L)."""
        return {"start_logits": outputs[:, 0], "end_logits": outputs[:, 1]}

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            "stride": self.stride,
            "query_length": self.query_length,
            "max_answer_length": self.max_answer_length,
            "no_answer_threshold": self.no_answer_threshold,
            "input_names": self.input_names and list(self.input_names),
        }


def _pair_columns(question, context):
    """((questions, contexts), columns of equal length; whether both were a single text)."""
    if isinstance(question, (str, bytes)) and isinstance(context, (str, bytes)):
        return ([question], [context]), True
    if isinstance(question, (str, bytes)):
        question = [question] * len(context)
    elif isinstance(context, (str, bytes)):
        context = [context] * len(question)
    return (question, context), False


def _join(column):
    """(ids int32 (T,), starts int32 (N,), lengths int32 (N,)) of N arrays of ids."""
    lengths = np.array([len(row) for row in column], "int32")
    return (
        np.concatenate([np.zeros(0, "int32"), *column]),
        np.cumsum(lengths, dtype="int32") - lengths,
        lengths,
    )
