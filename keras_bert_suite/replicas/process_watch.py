"""Says which process was lost, and where it was last seen, when the others cannot continue."""

import contextlib
import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import keras

from keras_bert_suite.replicas.groups import Group, find_group, find_torch_processes
from keras_bert_suite.replicas.processes import exchange
from keras_bert_suite.replicas.sign_stores import SignStore, open_store

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

    Collectives wait for all processes. If a process ends, they fail in the others without its name.
    If it stops, or fails without ending, they wait for the timeout of PyTorch's process group, and
    under JAX without end. So a thread of each process writes `place` to a store every second, and
    reads that of the others. If another process has failed, or has written nothing for too long,
    the thread aborts PyTorch's process group. If a collective still waits after that, the thread
    prints the error and ends this process.

    Args:
        call: str, the name of the method that the processes share, such as "fit".

    Attributes:
        place: str, what this process is doing, such as the batch that it trains on.
    """

    def __init__(self, call: str) -> None:
        self.call = call
        self.place = f"the start of {call}"
        self._name, self._group = "", Group()
        self._patience = PATIENCE
        self._failure: str | None = None
        self._lost: str | None = None
        self._failed_at: float | None = None
        self._signs = itertools.count()
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
            ValueError: in all processes, if another process has called another method.
            LostProcessError: instead of the error of a collective, if another process was lost.
        """
        # A thread does not see the distribution of Keras.
        self._group = find_group()
        if self._group.count == 1:
            yield callbacks
            return
        self._name = f"keras_bert_suite/{next(_numbers)}"
        try:
            store = open_store(self._patience)
        except RuntimeError as error:
            place = f"a call before `{self.call}`"
            raise LostProcessError(_describe_end_of_store(place, error)) from error
        self._show(store)  # If this process is lost at once, the others know that it had come.
        thread = threading.Thread(target=self._run, args=(store,), daemon=True)
        thread.start()
        try:
            check_calls(self.call)
            place = _PlaceOfBatches(self, show=lambda: self._show(store))
            yield [*_list_callbacks(callbacks), place]
        except BaseException as error:
            if _is_of_collective(error):
                self._patience = min(self._patience, PATIENCE_AFTER_FAILURE)
                self._failed_at = time.monotonic()
                if self._has_lost.wait(self._patience + 6 * PERIOD):
                    raise LostProcessError(self._lost) from error
            self._failure = f"{type(error).__name__}: {error}"[:500]
            raise
        finally:
            self._ended.set()
            thread.join()

    def _show(self, store: SignStore, ended: bool = False) -> None:
        """Writes a sign, unless process 0 has ended. Then the thread finds that out."""
        with contextlib.suppress(RuntimeError):
            self._write_sign(store, ended)

    def _write_sign(self, store: SignStore, ended: bool = False) -> None:
        sign = {"number": next(self._signs), "place": self.place, "failure": self._failure}
        store.write(f"{self._name}/{self._group.index}", json.dumps({**sign, "ended": ended}))

    def _run(self, store: SignStore) -> None:
        indices = range(self._group.count)
        others = {index: _Sign(self.call) for index in indices if index != self._group.index}
        while not self._ended.wait(PERIOD):
            try:
                self._write_sign(store)
                self._lost = self._look(store, others)
            except RuntimeError as error:
                place = others[0].place if 0 in others else "this process"
                self._lost = _describe_end_of_store(place, error)
            if self._lost is not None:
                self._has_lost.set()
                break
        # Whoever comes later must not take this process for the lost one.
        self._show(store, ended=True)
        if self._lost is not None:
            self._leave_collective()

    def _leave_collective(self) -> None:
        """Ends the collective that this process may wait in, or else the process."""
        # This process may be about to fail by itself, for the same reason.
        if self._ended.wait(GRACE):
            return
        if find_torch_processes() is not None:
            import torch

            with contextlib.suppress(Exception):
                torch.distributed.distributed_c10d._abort_process_group()
        # NCCL fails then. Gloo and JAX keep waiting, and nothing else can end them.
        if not self._ended.wait(GRACE):
            print(f"LostProcessError: {self._lost}", file=sys.stderr, flush=True)
            os._exit(1)

    def _look(self, store: SignStore, others: dict[int, "_Sign"]) -> str | None:
        """Reads the signs of the others. Returns a text about a process that was lost, or None."""
        for index, sign in others.items():
            sign.read(store.read(f"{self._name}/{index}"))
        for index, sign in others.items():
            if sign.failure is not None:
                return f"Process {index} has failed in {sign.place}: {sign.failure}"
        for index, sign in others.items():
            if sign.has_come and sign.silence > self._patience and not sign.ended:
                return (
                    f"Process {index} has given no sign of life for {sign.silence:.0f} s. It was "
                    f"last seen in {sign.place}. Look at its log, and start all processes again. "
                    "With a TrainingCheckpoint they resume from the last checkpoint."
                )
        # A process may come late, since only some of them read files. If one never comes, the first
        # collective fails when its timeout is over. A process that is late must not be blamed for
        # another one that was lost, so the silence of the others is waited for.
        absent = [str(index) for index, sign in others.items() if not sign.has_come]
        if absent and self._failed_at is not None:
            if time.monotonic() - self._failed_at > self._patience + 3 * PERIOD:
                name, verb = ("Process", "has") if len(absent) == 1 else ("Processes", "have")
                return (
                    f"{name} {', '.join(absent)} {verb} not come to `{self.call}`, which needs all "
                    "processes. Look at the log of each, and call the method in all of them."
                )
        return None


def check_calls(call: str) -> None:
    """Checks that all processes have called the same method.

    Args:
        call: str, the name of the method that this process has called.

    Raises:
        ValueError: in all processes, if one has called another method than the first process.
    """
    first, *others = exchange(call)
    for index, other in enumerate(others, start=1):
        if other != first:
            raise ValueError(
                f"Processes share each call, but process 0 has called `{first}` and process "
                f"{index} `{other}`. Make the same calls in the same order in all processes."
            )


class _Sign:
    """What another process has shown last, and when this process has first seen it."""

    def __init__(self, call: str) -> None:
        self.place, self.failure, self.ended = f"the code before `{call}`", None, False
        self._text, self._seen = "", time.monotonic()

    def read(self, text: str) -> None:
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
    """Keeps the place of a `ProcessWatch`, and shows the first batches at once."""

    def __init__(self, watch: ProcessWatch, show: Callable[[], None]) -> None:
        super().__init__()
        self._watch, self._show, self._epoch = watch, show, 0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._epoch = epoch + 1

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._see(batch, f"epoch {self._epoch}")

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        after = f" after epoch {self._epoch}" if self._epoch else ""
        self._see(batch, f"the evaluation{after}")

    def on_predict_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._see(batch, "the prediction")

    def on_train_end(self, logs: Any = None) -> None:
        self._watch.place = "the end of fit"

    def on_test_end(self, logs: Any = None) -> None:
        if not self._epoch:
            self._watch.place = "the end of evaluate"

    def on_predict_end(self, logs: Any = None) -> None:
        self._watch.place = "the end of predict"

    def _see(self, batch: int, part: str) -> None:
        self._watch.place = f"batch {batch + 1} of {part}"
        if batch == 0:
            self._show()


def _list_callbacks(callbacks: Any) -> list[keras.callbacks.Callback]:
    if callbacks is None or isinstance(callbacks, keras.callbacks.Callback):
        return [] if callbacks is None else [callbacks]
    return list(getattr(callbacks, "callbacks", callbacks))


def _describe_end_of_store(place: str, error: RuntimeError) -> str:
    return (
        "Process 0, which keeps the signs of all processes, has ended. It was last seen in "
        f"{place}. Look at its log. ({type(error).__name__})"
    )


def _is_of_collective(error: BaseException) -> bool:
    """Whether an error is of the communication between processes."""
    if find_torch_processes() is not None:
        import torch

        if isinstance(error, torch.distributed.DistError):
            return True
    # JAX raises a ValueError if gloo fails.
    names = ("gloo", "nccl", "process group", "connection")
    is_of_engine = isinstance(error, (RuntimeError, ValueError))
    return is_of_engine and any(name in str(error).lower() for name in names)
