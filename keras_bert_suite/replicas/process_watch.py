"""Says which process was lost, and where it was last seen, when the others cannot continue."""

import contextlib
import datetime
import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import keras

from keras_bert_suite.replicas.groups import find_group, find_torch_processes

#: Seconds from one sign of life to the next.
PERIOD = 1.0

#: Seconds without a sign of life after which a process is given up.
PATIENCE = 60.0

#: The same after a collective has failed: one of the processes has ended.
PATIENCE_AFTER_FAILURE = 5.0

#: Seconds for a collective to fail, once the process group was aborted.
GRACE = 5.0

#: Numbers the watches of a process. All processes of a group watch the same calls.
_numbers = itertools.count()


class LostProcessError(RuntimeError):
    """A process has ended, failed or stopped, and the others cannot continue without it."""


class ProcessWatch:
    """Reports the progress of this process to the others, and watches theirs.

    PyTorch's collectives wait for all processes. If a process ends, they fail in the others without
    its name. If it stops, or fails without ending, they wait for the timeout of the process group.
    So a thread of each process writes `place` to PyTorch's store every second, and reads that of
    the others. If another process has failed, or has written nothing for too long, the thread
    aborts the process group. If a collective still waits after that, the thread prints the error
    and ends this process.

    Args:
        call: str, the name of the method that the processes share, such as "fit".

    Attributes:
        place: str, what this process is doing, such as the batch that it trains on.
    """

    def __init__(self, call: str) -> None:
        self.call = call
        self.place = f"the start of {call}"
        self._name = ""
        self._patience = PATIENCE
        self._failure: str | None = None
        self._lost: str | None = None
        self._collective_failed = False
        self._has_lost = threading.Event()
        self._ended = threading.Event()

    @contextlib.contextmanager
    def watch(self, callbacks: Any) -> Iterator[Any]:
        """Watches until the block ends. With one process it does nothing.

        Args:
            callbacks: the argument `callbacks` of the method.

        Yields:
            `callbacks`; with several processes a list that also has a callback that keeps `place`.

        Raises:
            LostProcessError: instead of the error of a collective, if another process was lost.
        """
        if find_torch_processes() is None:
            yield callbacks
            return
        self._name = f"keras_bert_suite/{next(_numbers)}"
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        try:
            yield [*_list_callbacks(callbacks), _PlaceOfBatches(self)]
        except BaseException as error:
            if _is_of_collective(error):
                self._patience = min(self._patience, PATIENCE_AFTER_FAILURE)
                self._collective_failed = True
                if self._has_lost.wait(self._patience + 5 * PERIOD):
                    raise LostProcessError(self._lost) from error
            self._failure = f"{type(error).__name__}: {error}"[:500]
            raise
        finally:
            self._ended.set()
            thread.join()

    def _run(self) -> None:
        import torch

        group = find_group()
        store = torch.distributed.distributed_c10d._get_default_store().clone()
        store.set_timeout(datetime.timedelta(seconds=self._patience))
        others = {index: _Sign(self.call) for index in range(group.count) if index != group.index}
        for number in itertools.count():
            ended = self._ended.wait(PERIOD if number else 0)
            sign = {"number": number, "place": self.place, "failure": self._failure}
            try:
                store.set(f"{self._name}/{group.index}", json.dumps({**sign, "ended": ended}))
                if ended:
                    return
                self._lost = self._look(store, others)
            except RuntimeError as error:
                place = others[0].place if 0 in others else "this process"
                self._lost = (
                    f"Process 0, which keeps the signs of all processes, has ended. It was last "
                    f"seen in {place}. ({type(error).__name__})"
                )
            if self._lost is not None:
                self._has_lost.set()
                self._leave_collective()
                return

    def _leave_collective(self) -> None:
        """Ends the collective that this process may wait in, or else the process."""
        import torch

        # This process may be about to fail by itself, for the same reason.
        if self._ended.wait(GRACE):
            return
        with contextlib.suppress(Exception):
            torch.distributed.distributed_c10d._abort_process_group()
        # NCCL fails then. Gloo keeps waiting, and nothing else can end it.
        if not self._ended.wait(GRACE):
            print(f"LostProcessError: {self._lost}", file=sys.stderr, flush=True)
            os._exit(1)

    def _look(self, store: Any, others: dict[int, "_Sign"]) -> str | None:
        """Reads the signs of the others. Returns a text about a process that was lost, or None."""
        for index, sign in others.items():
            key = f"{self._name}/{index}"
            sign.read(store.get(key) if store.check([key]) else b"")
            if sign.failure is not None:
                return f"Process {index} has failed in {sign.place}: {sign.failure}"
            # A process may come late, since only some of them predict or read files. If one never
            # comes, the first collective fails when the timeout of the process group is over.
            if not sign.has_come and self._collective_failed:
                return (
                    f"Process {index} has not come to `{self.call}`, which needs all processes. "
                    "Look at its log, and call the method in all of them."
                )
            if sign.has_come and sign.silence > self._patience and not sign.ended:
                return (
                    f"Process {index} has given no sign of life for {sign.silence:.0f} s. It was "
                    f"last seen in {sign.place}. Look at its log, and start all processes again. "
                    "With a TrainingCheckpoint they resume from the last checkpoint."
                )
        return None


class _Sign:
    """What another process has shown last, and when this process has first seen it."""

    def __init__(self, call: str) -> None:
        self.place, self.failure, self.ended = f"the code before `{call}`", None, False
        self._text, self._seen = b"", time.monotonic()

    def read(self, text: bytes) -> None:
        if text != self._text:
            self._text, self._seen = text, time.monotonic()
            state = json.loads(text)
            self.place, self.failure, self.ended = state["place"], state["failure"], state["ended"]

    @property
    def has_come(self) -> bool:
        """bool, whether there was a sign."""
        return bool(self._text)

    @property
    def silence(self) -> float:
        """float, seconds since the last sign."""
        return time.monotonic() - self._seen


class _PlaceOfBatches(keras.callbacks.Callback):
    """Keeps the place of a `ProcessWatch`."""

    def __init__(self, watch: ProcessWatch) -> None:
        super().__init__()
        self._watch, self._epoch = watch, 0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._epoch = epoch + 1

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._watch.place = f"batch {batch + 1} of epoch {self._epoch}"

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        after = f" after epoch {self._epoch}" if self._epoch else ""
        self._watch.place = f"batch {batch + 1} of the evaluation{after}"

    def on_train_end(self, logs: Any = None) -> None:
        self._watch.place = "the end of fit"

    def on_test_end(self, logs: Any = None) -> None:
        if not self._epoch:
            self._watch.place = "the end of evaluate"


def _list_callbacks(callbacks: Any) -> list[keras.callbacks.Callback]:
    if callbacks is None or isinstance(callbacks, keras.callbacks.Callback):
        return [] if callbacks is None else [callbacks]
    return list(getattr(callbacks, "callbacks", callbacks))


def _is_of_collective(error: BaseException) -> bool:
    """Whether an error is of PyTorch's communication between processes."""
    import torch

    if isinstance(error, torch.distributed.DistError):
        return True
    names = ("gloo", "nccl", "process group", "connection")
    return isinstance(error, RuntimeError) and any(name in str(error).lower() for name in names)
