"""The folder of the answers of a job: its plan, and a part for each slice of the input."""

import contextlib
import itertools
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from keras_bert_suite.files.atomic_file import atomic_file, write_sealed_json
from keras_bert_suite.files.folder_lock import lock_folder
from keras_bert_suite.files.messages import shorten
from keras_bert_suite.files.part_names import LEFT_OUT, PLAN, find_parts, name_part, read_plan
from keras_bert_suite.many_texts.input_slices import InputSlice


class AnswerFolder:
    """Writes parts that are whole or not there, on this machine or in a remote file system.

    Args:
        path: str, a path, or an address such as "s3://bucket/answers".
        format: "parquet" or "jsonl", of the parts.
    """

    def __init__(self, path: str, format: str = "parquet") -> None:
        self.path = path.rstrip("/") if "://" in path else str(Path(path).expanduser().absolute())
        self.format = format

    def __str__(self) -> str:
        return self.path

    @property
    def is_local(self) -> bool:
        return "://" not in self.path

    @contextlib.contextmanager
    def start(self, plan: dict[str, Any]) -> Iterator[None]:
        """Writes the plan of a job, or checks that of a job that was stopped.

        On this machine no other process may write to the folder while the block runs.

        Raises:
            FileExistsError: if the folder has other files.
            ValueError: if its plan is another one.
        """
        if not self.is_local:
            self._check(plan)
            self._write(PLAN, lambda file: write_sealed_json(file, plan))
            yield
            return
        self._check(plan)
        Path(self.path).mkdir(parents=True, exist_ok=True)
        with lock_folder(Path(self.path)):
            self._check(plan)
            write_sealed_json(Path(self.path) / PLAN, plan)
            yield

    def _check(self, plan):
        names = self._list()
        if PLAN not in names:
            if others := [name for name in names if not name.startswith(".")]:
                raise FileExistsError(
                    f"{self} holds {others[0]}, and no plan of a job. Choose another folder for "
                    "the answers."
                )
            return
        there = read_plan(self.path)
        for name, value in plan.items():
            if (found := there.get(name)) != value:
                raise ValueError(
                    f"{self} has answers of another job: its {name} is {shorten(found, 200)}, and "
                    f"now it is {shorten(value, 200)}. Choose another folder, or remove this one; "
                    "a job that was stopped goes on only with the same model, files and settings."
                )

    def find_done(self) -> set[int]:
        """The numbers of the slices whose parts are there."""
        return find_parts(self._list(), self.format)

    def write_part(
        self, part: InputSlice, tables: Iterable[Any], left_out: Sequence[dict[str, Any]]
    ) -> int:
        """Writes the rows of a slice, and returns how many there are.

        Args:
            part: the slice.
            tables: `pyarrow.Table`s with one schema. The first has the schema, also without rows.
            left_out: dicts of the `file`, the `row` and the `fault` of the rows that are left out.
                It is read when the tables have ended.
        """
        counts: list[int] = []

        def write(path):
            write = _write_parquet if self.format == "parquet" else _write_json_lines
            counts.append(write(path, tables))
            if left_out:
                self._write(
                    f"{LEFT_OUT}/{name_part(part.number, 'jsonl')}",
                    lambda file: file.write_text("".join(map(_to_line, left_out)), "utf-8"),
                )

        # Its name says that the slice is done, so it comes last.
        self._write(name_part(part.number, self.format), write)
        return counts[0]

    def write_json(self, name: str, value: dict[str, Any]) -> None:
        """Writes a small file beside the parts."""
        self._write(name, lambda file: write_sealed_json(file, value))

    def _write(self, name, write):
        """Has `write` make a file at a temporary path, and gives it its name."""
        if self.is_local:
            path = Path(self.path) / name
            path.parent.mkdir(exist_ok=True)
            with atomic_file(path) as aside:
                write(aside)
            return
        import fsspec

        files, root = fsspec.url_to_fs(self.path)
        files.makedirs(os.path.dirname(f"{root}/{name}"), exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            aside = Path(folder) / "part"
            write(aside)
            # An upload to such a file system is whole, or not there.
            files.put_file(str(aside), f"{root}/{name}")

    def _list(self):
        if self.is_local:
            return sorted(os.listdir(self.path)) if os.path.isdir(self.path) else []
        import fsspec

        files, root = fsspec.url_to_fs(self.path)
        files.invalidate_cache()
        names = files.ls(root, detail=False) if files.isdir(root) else []
        return sorted(name.rstrip("/").rpartition("/")[2] for name in names)


def _write_parquet(path, tables):
    import pyarrow.parquet as pq

    tables = iter(tables)
    first = next(tables)
    with pq.ParquetWriter(path, first.schema, compression="zstd") as writer:
        number = 0
        for table in itertools.chain([first], tables):
            writer.write_table(table)
            number += len(table)
    return number


def _write_json_lines(path, tables):
    number = 0
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for table in tables:
            file.writelines(map(_to_line, table.to_pylist()))
            number += len(table)
    return number


def _to_line(record):
    return json.dumps(record, ensure_ascii=False, default=str) + "\n"
