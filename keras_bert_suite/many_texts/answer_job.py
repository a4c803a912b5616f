"""Answers the texts of files, slice by slice, by one process or by the workers of Ray."""

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.argument_checks import check_choice, check_integer
from keras_bert_suite.files.checksums import digest_model
from keras_bert_suite.files.part_names import FORMATS, PROBES
from keras_bert_suite.many_texts.answer_folder import AnswerFolder
from keras_bert_suite.many_texts.input_slices import (
    InputSlice,
    check_columns,
    count_rows_before,
    cut_files,
    find_files,
    name_row,
    read_rows,
)
from keras_bert_suite.many_texts.ray_workers import RayWorkers
from keras_bert_suite.ray_cluster import ray_cluster
from keras_bert_suite.serving import BatchPredictor
from keras_bert_suite.serving.batch_predictor import to_arrow

#: What answers the slices: this process, or the workers of Ray.
ENGINES = ("local", "ray")

#: The rows that a worker reads and answers at once. Those of similar length share a batch.
BATCH_ROWS = 1024


@dataclasses.dataclass(frozen=True)
class FilesReport:
    """What a job has done.

    Attributes:
        slices: int, the slices of the input.
        done_before: int, the slices that an earlier run had answered.
        rows: int, the rows that this run has answered.
        left_out: int, the rows that this run has left out.
    """

    slices: int
    done_before: int
    rows: int
    left_out: int


def predict_files(
    predictor: BatchPredictor,
    inputs: str | Sequence[str],
    output: PathLike,
    *,
    engine: str = "local",
    workers: int | None = None,
    ray_address: str | None = None,
    skip_invalid: bool = False,
    format: str = "parquet",
    slice_bytes: int = 16 << 20,
) -> FilesReport:
    """Answers the texts of files, and writes the rows with their answers to a folder.

    The input is cut into slices, and each slice becomes a file of the output, which is written
    under another name and renamed when it is whole. A job that was stopped and is started again
    answers only the slices that are missing. The plan of a job is in the folder, with the digest of
    the model. So the answers of two models, or of changed files, never share a folder.

    ```python
    predictor = kbs.BatchPredictor("models/sentiment", text_columns="review", columns=["id"])
    kbs.predict_files(predictor, "s3://bucket/reviews/*.parquet", "answers", engine="ray")
    pandas.read_parquet("answers")  # id, label, probability, probabilities
    ```

    Args:
        predictor: `BatchPredictor`. Each worker opens the model once.
        inputs: files, folders or patterns, also of remote file systems: .parquet, .jsonl, .ndjson,
            .csv, .tsv, or .txt with a text in each line, in the column "text". A .csv or .tsv file
            is one slice, so that one worker answers it all. Of the columns of JSON lines, those of
            the first rows are read if the predictor names no `columns`.
        output: a folder, also of a remote file system.
        engine: "local", this process; or "ray", for processes on this machine or on a cluster.
            Both write the same rows.
        workers: int, processes of Ray. None for one for each GPU of the cluster, or each processor.
        ray_address: str, the cluster, see `ray_cluster`. None for this machine, or for the cluster
            to which the program is connected.
        skip_invalid: bool, whether rows whose text is missing, or is no string, are left out. The
            folder `_left_out` then has their files, rows and faults, as JSON lines. False ends the
            job at the first.
        format: "parquet" or "jsonl", of the parts.
        slice_bytes: int, about how many bytes of input a slice has.

    Raises:
        ImportError: without pyarrow, or without Ray for `engine="ray"`.
        ConnectionError: if there is no cluster at `ray_address`.
        FileNotFoundError: if an input matches no file.
        FileExistsError: if the folder of the output has other files.
        ValueError: if the folder has answers of another job; if a column is missing; or for a text
            that is missing or no string, with its file and its row.
    """
    check_choice("engine", engine, ENGINES)
    check_choice("format", format, tuple(FORMATS))
    check_integer("slice_bytes", slice_bytes, at_least=1)
    if workers is not None:
        check_integer("workers", workers, at_least=1)
    if engine == "local" and (workers, ray_address) != (None, None):
        raise ValueError("workers and ray_address are for engine='ray'. Leave them out.")
    files = find_files(inputs)
    slices = cut_files(files, slice_bytes)
    if not slices:
        raise ValueError(f"{files[0]['path']} has no rows. Pass files with texts.")
    folder = AnswerFolder(os.fspath(output), format)
    digest = digest_model(predictor.folder)
    worker = SliceWorker(predictor, folder, digest, skip_invalid)
    with contextlib.ExitStack() as stack:
        answer: Any = _answer_here
        if engine == "ray":  # A cluster that is not there leaves no folder behind.
            ray = stack.enter_context(ray_cluster(ray_address, workers))
            answer = RayWorkers(ray, workers)
        worker.choose_schema(slices)
        plan = _make_plan(predictor, digest, format=format, slices=len(slices), files=files)
        stack.enter_context(folder.start(plan))
        _write_probes(predictor, folder)
        done = folder.find_done()
        missing = [part for part in slices if part.number not in done]
        rows = left_out = 0
        # After a fault, other workers go on until their answers are closed.
        answers = stack.enter_context(contextlib.closing(answer(worker, missing)))
        for found in answers:
            if found["fault"] is not None:
                raise ValueError(found["fault"])
            rows, left_out = rows + found["rows"], left_out + found["left_out"]
    return FilesReport(len(slices), len(slices) - len(missing), rows, left_out)


def _make_plan(predictor, digest, **input):
    """dict of what the answers depend on, as JSON holds it."""
    # An adapter knows the weights of its base, and takes no other.
    settings = {"task": predictor.task, "adapter": predictor.adapter, **predictor.arguments}
    plan = {
        "model": digest,
        "settings": settings,
        "text_columns": predictor.text_columns,
        "columns": predictor.columns,
        **input,
    }
    try:
        return json.loads(json.dumps(plan))
    except TypeError as error:
        raise ValueError(
            f"The arguments of a job must be of JSON, got {predictor.arguments}: {error}."
        ) from error


def _write_probes(predictor, folder):
    """Has the vectors of an embedder say which embedder they are of, see `VectorIndex`."""
    model = predictor.open().model
    if hasattr(model, "find_probes"):
        probes, digest = model.find_probes()
        probes = None if probes is None else np.asarray(probes).tolist()
        folder.write_json(PROBES, {"probes": probes, "tokenizer_digest": digest})


class SliceWorker:
    """Answers slices. Processes get it by pickle; each opens the model at its first slice."""

    def __init__(self, predictor, folder, digest, skip_invalid):
        self.predictor, self.folder = predictor, folder
        self.digest, self.skip_invalid = digest, skip_invalid
        self._schema: Any = None
        self._is_checked = True

    def __getstate__(self):
        return {**self.__dict__, "_is_checked": False}

    def choose_schema(self, slices: Sequence[InputSlice]) -> None:
        """Finds the types of the columns that go on, from the first rows of the input.

        Raises:
            ValueError: if a column is missing, or has the name of an answer.
        """
        import pyarrow as pa

        for part in slices:
            for rows in read_rows(part, self._columns(), BATCH_ROWS):
                valid, _ = self._split(part, rows)
                if len(valid):
                    table = self._to_table(part, rows, valid)
                    self._schema = table.schema
                    self.predictor(table.slice(0, 0))
                    return
        self._schema = pa.schema([(name, pa.string()) for name in self.predictor.find_columns()])

    def __call__(self, part: InputSlice) -> dict[str, Any]:
        """Answers a slice: dict of the number of `rows`, of those `left_out`, and the `fault`.

        The fault is a message, or None. Another attempt would find it, too.
        """
        left_out: list[dict[str, Any]] = []
        try:
            if not self._is_checked and digest_model(self.predictor.folder) != self.digest:
                raise ValueError(
                    f"{self.predictor.folder} of a worker is not the model of the job: it has "
                    "another digest. Have all machines see the same folder."
                )
            self._is_checked = True
            number = self.folder.write_part(part, self._answer(part, left_out), left_out)
        except (ValueError, FileNotFoundError) as error:
            return {"rows": 0, "left_out": 0, "fault": str(error)}
        return {"rows": number, "left_out": len(left_out), "fault": None}

    def _columns(self):
        """The columns to read, or None for all, which the first rows name."""
        if self._schema is not None:
            return self._schema.names
        return None if self.predictor.columns is None else self.predictor.find_columns()

    def _answer(self, part, left_out) -> Iterator[Any]:
        yield self.predictor(self._schema.empty_table())
        for rows in read_rows(part, self._columns(), BATCH_ROWS):
            valid, faults = self._split(part, rows)
            if faults and not self.skip_invalid:
                row, fault = min(faults.items())
                raise ValueError(
                    f"{name_row(part, rows.first + row)} cannot be answered: {fault}. Repair it, "
                    "or leave such rows out with skip_invalid."
                )
            number = count_rows_before(part) + rows.first + 1 if faults else 0
            left_out += [
                {"file": part.path, "row": number + row, "fault": fault}
                for row, fault in sorted(faults.items())
            ]
            if len(valid):
                yield self.predictor(self._to_table(part, rows, valid))

    def _split(self, part, rows):
        """(the places of rows with texts, dict of the places of others -> their fault)."""
        check_columns(part, list(rows.columns), self.predictor.find_columns())
        faults = self.predictor.find_faults(rows.columns)
        return np.setdiff1d(np.arange(len(rows)), list(faults)), faults

    def _to_table(self, part, rows, valid):
        """The valid rows as a `pyarrow.Table`, in the schema of the job."""
        import pyarrow as pa

        columns = {}
        for name, column in rows.columns.items():
            try:
                if isinstance(column, list):
                    kept = [column[row] for row in valid]
                    kind = None if self._schema is None else self._schema.field(name).type
                    columns[name] = to_arrow(kept, kind)
                else:
                    kept = column.take(pa.array(valid))
                    columns[name] = (
                        kept if self._schema is None else kept.cast(self._schema.field(name).type)
                    )
            except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
                raise ValueError(
                    f"{name_row(part, rows.first)} or a later one has another type in the column "
                    f"{name!r} than the first rows of the input: {error}. Leave it out with "
                    "columns, or convert the files."
                ) from error
        return pa.table(columns)


def _answer_here(worker: SliceWorker, slices: Iterable[InputSlice]) -> Iterator[dict[str, Any]]:
    return (worker(part) for part in slices)
