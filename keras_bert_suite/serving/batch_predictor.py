"""Answers batches of rows in any engine: columns in, columns out."""

import math
import numbers
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.files.messages import list_names, shorten
from keras_bert_suite.models.frame_inputs import CONDITION
from keras_bert_suite.serving.answer_columns import (
    AnswerColumns,
    ChoiceColumns,
    find_beside,
    find_condition,
    find_head,
    open_answers,
)
from keras_bert_suite.serving.runtime import open_runtime
from keras_bert_suite.serving.saved_model_runtime import (
    UNNAMED,
    SavedModelRuntime,
    replace_half_characters,
)
from keras_bert_suite.serving.saved_tasks import is_adapter, open_embedder, open_task

#: The columns of the rows of a task that has no names of its own for them.
_COLUMNS = {
    "QuestionAnswerer": ("question", "context"),
    "MultipleChoice": ("prompt", "endings"),
    "TextEmbedder": ("text",),
    "TextRanker": ("query", "text"),
    "TwoTowerRanker": ("query", "text"),
}


class BatchPredictor:
    """A callable from a batch of rows to the same rows with their answers, for engines.

    It holds a path and settings alone, so a process gets it by pickle at no cost. The model is
    opened at the first batch of a process, and stays open. Ray Data calls it in `map_batches`,
    Spark in `mapInPandas`, and Beam in a `DoFn`:

    ```python
    predictor = kbs.BatchPredictor("models/sentiment", text_columns="review")

    predictor({"review": ["a gripping film"], "id": [7]})  # with "label" and its probability
    dataset.map_batches(predictor, batch_format="pyarrow")  # Ray Data
    frame.mapInPandas(lambda batches: map(predictor, batches), schema)  # Spark
    ```

    The answers are columns under the names that `keras-bert predict --format jsonl` has:

    - classes: `label` string, `probability` float32, `probabilities` a struct of float32 by label;
    - sets of labels: `labels` list of string, `probabilities`;
    - numbers: `scores`, a struct of float32 by name;
    - attributes: `attributes`, a struct by attribute of `label` and `probability`;
    - entities: `entities`, a list of structs of `label`, `text`, `start`, `end`, `score`;
    - questions: `answer`, `start`, `end`, `score`, `null_odds`;
    - choices: `choice` int32, `ending`, `probabilities` list of float32;
    - rankings: `relevance` float32; embedders: `embedding`, a fixed-size list of float32;
    - texts: `target` of a `Seq2Seq`, `continuation` of a `CausalLM`.

    Rows of similar length share a batch of the model. So give it some hundreds of rows at once.
    The process chooses the backend of Keras by `KERAS_BACKEND`, as everywhere.

    Args:
        folder: the folder of a preset, a checkpoint, an ensemble, an adapter, a SavedModel, or a
            model of `export_onnx` or `export_openvino`; or a `.keras` file. Each process must see
            it under this path.
        text_columns: str or list of str, the columns of the texts of a row, in the order in which
            the task takes them. None for the names of the model's texts, or "text".
        columns: list of str, the columns that go on beside the answers. None for all.
        batch_size: int, rows of a batch of the model, as for `predict` of the task.
        task: str, "TextEmbedder" to open a checkpoint without a head as an embedder; None for the
            task that the folder has.
        base: the checkpoint of a folder of `save_adapter`, which each process sees, too. None for
            the `hf://...` that this folder names.
        adapter: str, the adapter that answers, in a SavedModel of `export_adapters`.
        **arguments: further arguments of `predict` of the task, such as `prompt`.

    Raises:
        ImportError: without pyarrow.
        FileNotFoundError: if there is no such folder or file.
    """

    def __init__(
        self,
        folder: PathLike,
        text_columns: str | Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        batch_size: int = 32,
        *,
        task: str | None = None,
        base: PathLike | None = None,
        adapter: str | None = None,
        **arguments: Any,
    ) -> None:
        check_integer("batch_size", batch_size, at_least=1)
        if task not in (None, "TextEmbedder"):
            raise ValueError(f"task must be 'TextEmbedder' or None, got {task!r}.")
        if isinstance(columns, str):
            raise ValueError(
                f"columns must be a list of names, got {columns!r}. Pass [{columns!r}]."
            )
        self.folder = os.fspath(folder)
        if "://" not in self.folder and not os.path.exists(self.folder):
            raise FileNotFoundError(
                f"{self.folder} does not exist. Pass the folder of a model that each process sees."
            )
        _import_arrow()
        names = [text_columns] if isinstance(text_columns, str) else text_columns
        self.text_columns = None if names is None else list(names)
        self.columns = None if columns is None else list(columns)
        self.batch_size, self.task, self.arguments = batch_size, task, arguments
        self.base, self.adapter = None if base is None else os.fspath(base), adapter
        self._check_adapters()
        self._answers: AnswerColumns | None = None
        self._types: dict[str, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """The path and the settings, without the model."""
        return {**self.__dict__, "_answers": None, "_types": None}

    def __repr__(self) -> str:
        return f"BatchPredictor({self.folder!r})"

    def __call__(self, batch: Any) -> Any:
        """Answers N rows.

        Args:
            batch: a `pyarrow.Table` or `RecordBatch`, a pandas DataFrame, or a dict of the name of
                a column -> N values.

        Returns:
            the rows with their answers, in the form of `batch`. A dict has NumPy arrays; vectors
            are float32 (N, H), and lists and structs are objects of Python. A batch without rows
            has the same columns.

        Raises:
            ValueError: if a column is missing, or an answer has the name of a column that goes on;
                or if a text is missing or no string, with the number of its row in the batch.
        """
        import pyarrow as pa

        if isinstance(batch, pa.RecordBatch):
            found = self._answer(pa.Table.from_batches([batch])).combine_chunks()
            nothing = pa.RecordBatch.from_pylist([], found.schema)  # A table without rows has none.
            return next(iter(found.to_batches()), nothing)
        if isinstance(batch, pa.Table):
            return self._answer(batch)
        if isinstance(batch, Mapping):
            return _to_dict(self._answer(_from_dict(batch)))
        return self._answer(pa.Table.from_pandas(batch, preserve_index=False)).to_pandas()

    def find_types(self) -> dict[str, Any]:
        """dict of the name of a column of answers -> its type of Arrow. It opens the model."""
        if self._types is None:
            self._types = self.open().find_types()
        return self._types

    def find_faults(self, columns: Mapping[str, Any]) -> dict[int, str]:
        """Finds the rows that cannot be answered: dict of the place of a row -> its fault.

        Args:
            columns: dict of the name of a column -> list, or column of Arrow.

        Raises:
            ValueError: if a column is missing.
        """
        self._check_columns(list(columns))
        return self._find_faults(columns, self._take_texts(columns))

    def _find_faults(self, columns, texts):
        faults: dict[int, str] = {}
        names = self._find_names()
        for name, column in texts.items():
            has_lists = names[name] == "endings" and isinstance(self.open(), ChoiceColumns)
            wanted, is_text = ("a list of texts", _are_texts) if has_lists else ("a text", _is_text)
            for row, value in enumerate(column):
                if not is_text(value):
                    found = shorten(repr(value), 60)
                    faults.setdefault(row, f"the column {name!r} holds {found}, wanted {wanted}")
        if condition := find_condition(self.open().model):
            wanted = f"{condition.dim} finite numbers"
            for row, value in enumerate(_to_list(columns[CONDITION])):
                if not _are_numbers(value, condition.dim):
                    found = shorten(repr(value), 60)
                    fault = f"the column {CONDITION!r} holds {found}, wanted {wanted}"
                    faults.setdefault(row, fault)
        return faults

    def find_columns(self) -> list[str]:
        """The columns a batch must have: texts, features, the condition, and `columns`."""
        beside = find_beside(self.open().model)
        return list(dict.fromkeys([*self._find_names(), *beside, *(self.columns or ())]))

    def open(self) -> AnswerColumns:
        """The answers of the model, which is opened once in a process."""
        if self._answers is None:
            self._answers = open_answers(self._open_model(), **self.arguments)
        return self._answers

    def _check_adapters(self):
        """Nothing that the model would not read is passed."""
        if self.adapter is not None and not self._is_saved_model():
            raise ValueError(
                f"adapter={self.adapter!r} is for a SavedModel of export_adapters, got "
                f"{self.folder}."
            )
        if self.base is not None and not is_adapter(self.folder):
            raise ValueError(
                f"base={self.base!r} is for the folder of an adapter, got {self.folder}."
            )

    def _is_saved_model(self):
        return (Path(self.folder) / "saved_model.pb").is_file()

    def _open_model(self):
        folder = Path(self.folder)
        if self._is_saved_model():
            return SavedModelRuntime(self.folder, self.adapter)
        files = ("model.onnx", "model.xml")
        # Checkpoints may have a model.onnx beside their weights.
        is_export = (folder / "packing.json").is_file()
        if is_export and any((folder / name).is_file() for name in files):
            return open_runtime(self.folder)
        if self.task:
            return open_embedder(self.folder, self.base)
        return open_task(self.folder, base=self.base)

    def _find_names(self):
        """dict of the column of a text in a batch -> the name by which the model knows it."""
        model = self.open().model
        names = [n for n in model.input_names or () if n not in find_beside(model)]
        if names in ([], ["text"]):
            names = list(_COLUMNS.get(find_head(model), names))
        columns = self.text_columns or names or ["text"]
        # A task that has seen no pair takes texts and pairs.
        names = names or columns
        if len(columns) != len(names):
            raise ValueError(
                f"The model in {self.folder} reads the texts {', '.join(names)} of a row, and "
                f"text_columns has {list_names(columns)}. Name a column for each."
            )
        if {*columns} == {*names}:  # They may come in any order.
            return {name: name for name in columns}
        if isinstance(model, SavedModelRuntime) and len(names) > 1 and names != UNNAMED:
            # Its inputs are in the order of the alphabet.
            said = model.description.get("input_names") or ()
            if {*said} != {*names}:
                raise ValueError(
                    f"The inputs of {self.folder} are {list_names(names)}, in no order, and "
                    f"text_columns has {list_names(columns)}. Name the columns like the inputs."
                )
            names = said
        return dict(zip(columns, names, strict=True))

    def _take_texts(self, columns):
        """dict of a column of texts -> list of its values."""
        return {name: _to_list(columns[name]) for name in self._find_names()}

    def _check_columns(self, there):
        for name in self.find_columns():
            if there.count(name) != 1:
                raise ValueError(
                    f"The rows have {'no' if name not in there else 'two'} columns {name!r}. There "
                    f"are {list_names(there)}. Name the columns of the texts with text_columns, "
                    "and those that go on with columns."
                )

    def _answer(self, table):
        self._check_columns(table.column_names)
        columns = dict(zip(table.column_names, table.columns, strict=True))
        types, texts = self.find_types(), self._take_texts(columns)
        kept = table if self.columns is None else table.select(self.columns)
        if both := [name for name in types if name in kept.column_names]:
            raise ValueError(
                f"The rows have the column {both[0]!r} already, which is a name of the answers. "
                "Name the columns that go on, without it, with columns, or rename it."
            )
        if faults := self._find_faults(columns, texts):
            row, fault = next(iter(faults.items()))
            raise ValueError(
                f"Row {row} of the batch, counted from 0: {fault}. Leave such rows out."
            )
        found = self._find(table, texts, types) if len(table) else dict.fromkeys(types, [])
        for name, kind in types.items():
            kept = kept.append_column(name, to_arrow(found[name], kind))
        return kept

    def _find(self, table, texts, types):
        """dict of the name of a column -> the answers of all rows, in their order."""
        answers = self.open()
        beside = {name: table[name].to_pylist() for name in find_beside(answers.model)}
        names = self._find_names()
        columns = {**{names[name]: column for name, column in texts.items()}, **beside}
        if not isinstance(answers.model, SavedModelRuntime):
            return answers.find(columns, self.batch_size)
        # Another model puts rows of similar length together itself.
        lengths = [sum(map(_count_characters, row)) for row in zip(*texts.values(), strict=True)]
        order = np.argsort(lengths, kind="stable")
        ordered = {n: [column[row] for row in order] for n, column in columns.items()}
        found, places = answers.find(ordered, self.batch_size), np.argsort(order)
        return {name: [found[name][place] for place in places] for name in types}


def _to_list(column):
    return column if isinstance(column, list) else column.to_pylist()


def _is_text(value):
    return isinstance(value, str)


def _are_texts(value):
    return isinstance(value, list) and len(value) > 0 and all(map(_is_text, value))


def _are_numbers(value, number):
    return (
        isinstance(value, (list, tuple, np.ndarray))
        and len(value) == number
        and all(isinstance(item, numbers.Real) and math.isfinite(item) for item in value)
    )


def _count_characters(value):
    return len(value) if isinstance(value, str) else sum(map(len, value))


def _import_arrow():
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            "Columns of answers need pyarrow: pip install pyarrow. The extra [ray] brings it, too."
        ) from error
    return pyarrow


def to_arrow(values: Any, kind: Any = None) -> Any:
    """A column of a type of Arrow, or of the type of its values.

    Half characters, which JSON has and UTF-8 does not, are replaced by U+FFFD.
    """
    import pyarrow as pa

    if kind is not None and pa.types.is_fixed_size_list(kind):
        vectors = np.asarray(values, "float32").reshape(-1)
        return pa.FixedSizeListArray.from_arrays(pa.array(vectors), kind.list_size)
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array(replace_half_characters(values), kind)


def _from_dict(batch):
    """A `pyarrow.Table` of columns by name: arrays, also of several axes, and lists."""
    import pyarrow as pa

    columns = {
        name: list(value) if getattr(value, "ndim", 1) > 1 else value
        for name, value in batch.items()
    }
    return pa.table({name: pa.array(value) for name, value in columns.items()})


def _to_dict(table):
    """dict of the name of a column -> array of N values."""
    import pyarrow as pa

    def convert(column):
        kind = column.type
        if pa.types.is_fixed_size_list(kind):
            numbers = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
            return numbers.reshape(len(column), kind.list_size)
        if pa.types.is_nested(kind):
            values = np.empty(len(column), object)
            values[:] = column.to_pylist()
            return values
        return column.to_numpy()

    return {name: convert(table[name]) for name in table.column_names}
