"""The answers of a model as columns of a table: a value, a list or a vector for each row.

`keras-bert predict` writes its lines of JSON under the same names. It loads this file where Keras
is not imported.
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np

from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.heads.base.head import read_heads
from keras_bert_suite.serving.named_answers import (
    Columns,
    name_attributes,
    name_classes,
    name_label_sets,
    name_numbers,
)
from keras_bert_suite.serving.saved_model_runtime import SavedModelRuntime
from keras_bert_suite.serving.saved_tasks import find_features


def find_head(model: Any) -> str:
    """The class of task whose head a task, an `Ensemble`, or an export has."""
    if description := getattr(model, "description", None):
        return str(description["head"])
    from keras_bert_suite.heads.base.ensemble import members_of

    task = members_of(model)[0]
    return str(task.HEAD.task) if hasattr(task, "HEAD") else type(task).__name__


def find_condition(model: Any) -> Any:
    """The `ConditionColumn` of the rows of a task, an `Ensemble` or an export; None for none."""
    from keras_bert_suite.heads.base.conditions import ConditionColumn

    if isinstance(model, SavedModelRuntime):
        dim = model.description["encoder_inputs"].get("condition_dim")
    else:
        dim = model.data.encoder.condition_dim
    return None if dim is None else ConditionColumn(dim)


def find_beside(model: Any) -> list[str]:
    """The names of the columns beside the texts: the features, and then the condition."""
    from keras_bert_suite.models.frame_inputs import CONDITION

    return [*find_features(model), *([] if find_condition(model) is None else [CONDITION])]


def answer_rows(
    model: Any, columns: Columns, batch_size: int, names: Iterable[str], **arguments: Any
) -> dict[str, np.ndarray]:
    """Answers rows as a server does: dict of arrays of N rows, of a task or of an export.

    It is for answers whose rows have one length: classes, sets of labels, numbers, vectors.

    Args:
        model: a task, an `Ensemble`, a `TaskRuntime` or a `SavedModelRuntime`.
        columns: dict of the names of the model's texts and of `find_beside` -> N values.
        batch_size: int, as for `predict` of the task.
        names: the names of outputs of `serving_default`. Outputs that there are not are left out.
        **arguments: of `predict` of the task.
    """
    if isinstance(model, SavedModelRuntime):
        batches = list(model.answer(columns, batch_size))
        found = [name for name in names if name in batches[0]]
        return {name: np.concatenate([batch[name] for batch in batches]) for name in found}
    from keras import ops

    predicted = predict_rows(model, columns, batch_size, **arguments)
    answers = model.answers.serve(ops, ops.convert_to_tensor(predicted), None)
    return {name: ops.convert_to_numpy(answers[name]) for name in names if name in answers}


def predict_rows(model: Any, columns: Columns, batch_size: int, **arguments: Any) -> Any:
    """The results of `predict` of a task or of a `TaskRuntime`; see `answer_rows`."""
    from keras_bert_suite.serving.runtime import TaskRuntime

    values = list(columns.values())
    has_others = len(columns) > 1 and bool(find_beside(model))
    x = columns if has_others else values[0] if len(values) == 1 else tuple(values)
    if not isinstance(model, TaskRuntime):
        arguments["verbose"] = 0
    return model.predict(x, batch_size=batch_size, **arguments)


class AnswerColumns(ABC):
    """The columns of the answers of one model; `open_answers` makes it.

    Args:
        model: as for `answer_rows`.
        **arguments: of `predict` of the task.
    """

    def __init__(self, model: Any, **arguments: Any) -> None:
        self.model, self.arguments = model, arguments

    @abstractmethod
    def find(self, columns: Columns, batch_size: int) -> Columns:
        """dict of the name of a column -> the answers of N rows; see `answer_rows`."""

    @abstractmethod
    def find_types(self) -> dict[str, Any]:
        """dict of the name of a column -> its type of Arrow, whatever rows it is of."""

    def _answer(self, columns, batch_size, *names):
        found = answer_rows(self.model, columns, batch_size, names, **self.arguments)
        return [found[name] for name in names]

    def _predict(self, columns, batch_size):
        return predict_rows(self.model, columns, batch_size, **self.arguments)

    @property
    def _is_saved_model(self):
        return isinstance(self.model, SavedModelRuntime)


class ClassColumns(AnswerColumns):
    """A label of each row."""

    def find(self, columns, batch_size=32):
        names = self.model.label_names
        return name_classes(names, *self._answer(columns, batch_size, "label_ids", "probabilities"))

    def find_types(self):
        import pyarrow as pa

        by_name = _type_by_name(self.model.label_names)
        return {"label": pa.string(), "probability": pa.float32(), "probabilities": by_name}


class LabelSetColumns(AnswerColumns):
    """A set of labels of each row."""

    def find(self, columns, batch_size=32):
        answers = self._answer(columns, batch_size, "is_label", "probabilities")
        return name_label_sets(self.model.label_names, *answers)

    def find_types(self):
        import pyarrow as pa

        by_name = _type_by_name(self.model.label_names)
        return {"labels": pa.list_(pa.string()), "probabilities": by_name}


class NumberColumns(AnswerColumns):
    """Numbers of each row."""

    def find(self, columns, batch_size=32):
        return name_numbers(self.model.label_names, *self._answer(columns, batch_size, "scores"))

    def find_types(self):
        return {"scores": _type_by_name(self.model.label_names)}


class AttributeColumns(AnswerColumns):
    """A label of each attribute of each row."""

    @property
    def attributes(self):
        """dict of the name of an attribute -> list of its labels."""
        if self._is_saved_model:
            return self.model.description["attributes"]
        return self.model.answers.labels.attributes

    def find(self, columns, batch_size=32):
        attributes = self.attributes
        if self._is_saved_model:
            names = [*attributes, *(f"{name}_probabilities" for name in attributes)]
            found = self._answer(columns, batch_size, *names)
            labels = map(decode_texts, found[: len(attributes)])
            return name_attributes(
                attributes,
                dict(zip(attributes, labels, strict=True)),
                dict(zip(attributes, found[len(attributes) :], strict=True)),
            )
        outputs = np.concatenate(list(self._predict(columns, batch_size).values()), axis=-1)
        answers = self.model.answers
        shares = answers.decode_probabilities(outputs, None)
        return name_attributes(attributes, answers.name(outputs, None), shares)

    def find_types(self):
        import pyarrow as pa

        answer = pa.struct([("label", pa.string()), ("probability", pa.float32())])
        return {"attributes": pa.struct([(name, answer) for name in self.attributes])}


class EntityColumns(AnswerColumns):
    """The entities of each row."""

    def find(self, columns, batch_size=32):
        if self._is_saved_model:
            return {"entities": self.model.find_entities(columns, batch_size)}
        rows = self._predict(columns, batch_size)
        return {"entities": [[dataclasses.asdict(entity) for entity in row] for row in rows]}

    def find_types(self):
        import pyarrow as pa

        texts, places = pa.string(), pa.int32()
        fields = [("label", texts), ("text", texts), ("start", places), ("end", places)]
        return {"entities": pa.list_(pa.struct([*fields, ("score", pa.float32())]))}


class SpanColumns(AnswerColumns):
    """The answer to each question."""

    names = ("answer", "start", "end", "score", "null_odds")

    def find(self, columns, batch_size=32):
        if self._is_saved_model:
            outputs = ("answers", "starts", "ends", "scores", "null_odds")
            texts, *figures = self._answer(columns, batch_size, *outputs)
            found = [decode_texts(texts), *(figure.tolist() for figure in figures)]
        else:
            rows = map(dataclasses.astuple, self._predict(columns, batch_size))
            found = list(map(list, zip(*rows, strict=True)))
        return dict(zip(self.names, found, strict=True))

    def find_types(self):
        import pyarrow as pa

        types = (pa.string(), pa.int32(), pa.int32(), pa.float32(), pa.float32())
        return dict(zip(self.names, types, strict=True))


class ChoiceColumns(AnswerColumns):
    """The choice of each row among its endings."""

    def find(self, columns, batch_size=32):
        *_, endings = columns.values()
        if self._is_saved_model:
            shares, choices = self._answer(columns, batch_size, "probabilities", "choices")
        else:  # Rows may have different numbers of endings.
            scores = self._predict(columns, batch_size)
            from keras_bert_suite.heads.base.probabilities import softmax

            shares = [softmax(np.asarray(row)) for row in scores]
            choices = [int(np.argmax(row)) for row in scores]
        return {
            "choice": list(map(int, choices)),
            "ending": [texts[choice] for texts, choice in zip(endings, choices, strict=True)],
            "probabilities": [np.asarray(row).tolist() for row in shares],
        }

    def find_types(self):
        import pyarrow as pa

        numbers = pa.list_(pa.float32())
        return {"choice": pa.int32(), "ending": pa.string(), "probabilities": numbers}


class RelevanceColumns(AnswerColumns):
    """The relevance of the text of each row."""

    def find(self, columns, batch_size=32):
        if self._is_saved_model:
            return {"relevance": self._answer(columns, batch_size, "relevance")[0]}
        return {"relevance": self._predict(columns, batch_size)}

    def find_types(self):
        import pyarrow as pa

        return {"relevance": pa.float32()}


class VectorColumns(AnswerColumns):
    """The vector of each row."""

    def find(self, columns, batch_size=32):
        return {"embedding": self._answer(columns, batch_size, "embedding")[0]}

    def find_types(self):
        import pyarrow as pa

        (vector,) = self.find({(self.model.input_names or ["text"])[0]: ["a"]})["embedding"]
        return {"embedding": pa.list_(pa.float32(), len(vector))}


class WrittenColumns(AnswerColumns):
    """The text that the model writes for each row."""

    @property
    def name(self):
        return "target" if find_head(self.model) == "Seq2Seq" else "continuation"

    def find(self, columns, batch_size=32):
        if self._is_saved_model:
            return {self.name: decode_texts(*self._answer(columns, batch_size, "texts"))}
        return {self.name: list(self._predict(columns, batch_size))}

    def find_types(self):
        import pyarrow as pa

        return {self.name: pa.string()}


def decode_texts(texts: np.ndarray) -> list[str]:
    """list of N str, of the bytes of a SavedModel."""
    return [text.decode() for text in texts.tolist()]


def _type_by_name(names):
    import pyarrow as pa

    return pa.struct([(name, pa.float32()) for name in names])


#: The problem type of a task -> its columns.
PROBLEM_TYPES: dict[str, type[AnswerColumns]] = {
    "single_label_classification": ClassColumns,
    "multi_label_classification": LabelSetColumns,
    "regression": NumberColumns,
}


def open_answers(model: Any, **arguments: Any) -> AnswerColumns:
    """The `AnswerColumns` of a model; arguments as there.

    Raises:
        ValueError: if the task has no such answers, or a SavedModel gets arguments.
    """
    head = read_heads().get(find_head(model))
    make_columns = None if head is None else head.find_columns()
    if make_columns is None:
        wanted = sorted(head.task for head in read_heads().values() if head.columns is not None)
        raise ValueError(
            f"{with_article(model, 'A')} has no answers for a table. Wanted one of "
            f"{', '.join(wanted)}."
        )
    if arguments and isinstance(model, SavedModelRuntime):
        raise ValueError(
            f"A SavedModel answers in one way, got the arguments {', '.join(arguments)}. Leave "
            "them out, or ask the model that it was exported from."
        )
    answers: AnswerColumns = make_columns(model, **arguments)
    return answers


def open_problem(model: Any, **arguments: Any) -> AnswerColumns:
    """The `AnswerColumns` of a classifier, by its problem type; arguments as there."""
    return PROBLEM_TYPES[model.problem_type](model, **arguments)
