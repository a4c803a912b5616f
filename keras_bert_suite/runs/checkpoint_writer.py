"""Writes checkpoints in a thread during training."""

import pathlib
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self

from keras_bert_suite.annotations import Arrays
from keras_bert_suite.runs.progress import Progress
from keras_bert_suite.runs.run_checkpoints import write_checkpoint


class CheckpointWriter:
    """Writes the checkpoints of a run one after the other, and keeps some. A context manager.

    `asynchronous` says whether `write` returns before the checkpoint is on the disk.

    Attributes:
        saved: `Progress` of the newest checkpoint, as of the last `wait`.
        failure: the OSError of the last checkpoint, or None if it was written.
    """

    def __init__(
        self, directory: pathlib.Path, keep: int, asynchronous: bool, saved: Progress
    ) -> None:
        self.saved = saved
        self.failure: OSError | None = None
        self._directory, self._keep, self._asynchronous = directory, keep, asynchronous
        self._thread = ThreadPoolExecutor(1)
        self._writing: Future[Progress] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.wait()
        finally:
            self._thread.shutdown()

    def write(self, progress: Progress, arrays: Arrays) -> None:
        """Writes a checkpoint of arrays by name, which must not change any more.

        Call `wait` before you copy them. Memory then holds one copy at most.
        """
        self.wait()
        self._writing = self._thread.submit(
            write_checkpoint, self._directory, progress, arrays, self._keep
        )
        if not self._asynchronous:
            self.wait()

    def wait(self) -> None:
        """Waits for the checkpoint that is being written. Warns if it could not be written."""
        if self._writing is None:
            return
        writing, self._writing = self._writing, None
        try:
            self.saved = writing.result()
            self.failure = None
        except OSError as error:
            self.failure = error
            warnings.warn(
                f"A checkpoint could not be written: {error}. The earlier checkpoints stay. Make "
                f"room in {self._directory}.",
                stacklevel=2,
            )
