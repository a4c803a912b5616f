"""Says which process was lost, and where, when the others cannot continue without it."""

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

from keras_bert_suite.replicas.find_replicas import Member, find_process, find_torch_processes
from keras_bert_suite.replicas.processes import check_same

#: Seconds from one sign of life to the next.
PERIOD = 1.0

#: Seconds without a sign of life after which a process is given up.
PATIENCE = 60.0

#: The same after a collective has failed: one of the processes has ended.
PATIENCE_AFTER_FAILURE = 5.0

#: Seconds that a process has to raise its error, once another process was lost.
GRACE = 5.0

#: Numbers the watches of a process. All processes that share batches watch the same calls.
_numbers = itertools.count()


class LostProcessError(RuntimeError):
    """A process has ended, failed or stopped, and the others cannot continue without it."""


class ProcessWatch(keras.callbacks.Callback):
    """Shows the other processes a sign of life, and names a lost process.

    Collectives wait for all processes. If a process is lost, they fail in the others without its
    name, or wait. So a thread of each process writes a sign of life to a store every second, and
    reads the signs of the others. If another process has failed, or has written nothing for too
    long, the error of the collective becomes a `LostProcessError`. If the collective still waits,
    the thread prints this error and ends this process.

    It is a callback too, which counts the steps. `call` is the name of the method that the
    processes share, such as "fit".
    """

    def __init__(self, call: str) -> None:
        super().__init__()
        self._call, self._steps = call, 0
        self._sign = {"place": f"the start of {call}", "failure": "", "ended": False}
        self._lost: str | None = None
        self._failed_at: float | None = None
        self._has_lost, self._ended = threading.Event(), threading.Event()

    @contextlib.contextmanager
    def watch(self, callbacks: Any) -> Iterator[Any]:
        """Watches until the block ends, which gets `callbacks` with this one. With one process
        it does nothing.

        Raises:
            ValueError: in all processes, if another process has called another method.
            LostProcessError: instead of the error of a collective, if another process was lost.
        """
        # A thread does not see the distribution of Keras.
        own = find_process()
        if own.count == 1:
            yield callbacks
            return
        self._begin(own, _open_store(f"keras_bert_suite/{next(_numbers)}"))
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        try:
            check_same({"call": self._call})
            callbacks = getattr(callbacks, "callbacks", callbacks) or []
            yield [*keras.tree.flatten(callbacks), self]
        except BaseException as error:
            if _is_of_collective(error):
                self._failed_at = time.monotonic()
                if self._has_lost.wait(PATIENCE_AFTER_FAILURE + 6 * PERIOD):
                    raise LostProcessError(self._lost) from error
            self._sign["failure"] = f"{type(error).__name__}: {error}"[:500]
            raise
        finally:
            self._ended.set()
            thread.join()

    def _begin(self, own: Member, store: Any) -> None:
        """Shows the other processes that this one came, so that they know it if it is lost."""
        self._own, self._store = own, store
        sign = {"place": f"the code before {self._call}", "failure": "", "ended": False}
        others = [index for index in range(own.count) if index != own.index]
        self._signs: dict[int, Any] = dict.fromkeys(others, sign)
        #: The texts of the signs, and when this process has first seen them.
        self._texts, self._seen = dict.fromkeys(others, ""), dict.fromkeys(others, 0.0)
        self._show()

    def _run(self) -> None:
        while self._lost is None and not self._ended.wait(PERIOD):
            try:
                self._show()
                self._read()
                self._lost = self._find_lost()
            except RuntimeError:  # Process 0, which keeps the store of PyTorch, has ended.
                self._lost = self._describe(0)
        if self._lost is not None:
            self._has_lost.set()
        # Whoever comes later must not take this process for the lost one.
        self._sign["ended"] = True
        with contextlib.suppress(RuntimeError):
            self._show()
        if self._lost is not None and not self._ended.wait(GRACE):
            print(f"LostProcessError: {self._lost}", file=sys.stderr, flush=True)
            os._exit(1)

    def _show(self) -> None:
        sign = {**self._sign, "time": time.monotonic()}
        self._store.write(self._own.index, json.dumps(sign))

    def _read(self) -> None:
        """Reads the signs of the other processes."""
        for index, old in self._texts.items():
            text = self._store.read(index)
            if text != old:
                self._texts[index], self._seen[index] = text, time.monotonic()
                self._signs[index] = json.loads(text)

    def _find_lost(self) -> str | None:
        """A text about a process that was lost, or None."""
        now, failed_at = time.monotonic(), self._failed_at
        patience = PATIENCE if failed_at is None else PATIENCE_AFTER_FAILURE
        for index, sign in self._signs.items():
            if sign["failure"]:
                return self._describe(index)
        for index, sign in self._signs.items():
            if self._texts[index] and not sign["ended"] and now - self._seen[index] > patience:
                return self._describe(index)
        # A process may come late, since only some of them read files. It must not be blamed for
        # another one that was lost, so the silence of the others is waited for.
        absent = [index for index, text in self._texts.items() if not text]
        if absent and failed_at is not None and now - failed_at > patience + 3 * PERIOD:
            return self._describe(absent[0])
        return None

    def _describe(self, index: int) -> str:
        sign = self._signs.get(index, {"place": "another call", "failure": ""})
        return (
            f"Process {index} of {self._own.count} was lost in {sign['place']}; the others stop. "
            f"{sign['failure'] or 'Look at its log.'} Start all processes again. With a "
            "TrainingCheckpoint they resume from the last checkpoint."
        )

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._steps += 1
        self._sign["place"] = f"step {self._steps} of {self._call}"

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        if self._call == "fit":
            self._sign["place"] = f"the validation after step {self._steps} of fit"
        else:
            self.on_train_batch_begin(batch)

    on_predict_batch_begin = on_train_batch_begin


def _open_store(name: str) -> Any:
    return _JaxStore(name) if find_torch_processes() is None else _TorchStore(name)


class _TorchStore:
    """Texts of all processes, which process 0 keeps. Errors of it are RuntimeErrors.

    It is the store by which the processes have found each other, on a new connection.
    """

    def __init__(self, name: str) -> None:
        import torch

        self._store = torch.distributed.distributed_c10d._get_default_store().clone()
        self._store.set_timeout(datetime.timedelta(seconds=PATIENCE))
        self._name = name

    def write(self, index: int, text: str) -> None:
        self._store.set(f"{self._name}/{index}", text)

    def read(self, index: int) -> str:
        key = f"{self._name}/{index}"
        return self._store.get(key).decode() if self._store.check([key]) else ""


class _JaxStore:
    """The same, in the service by which the processes of JAX have found each other."""

    def __init__(self, name: str) -> None:
        from jax._src import distributed

        self._client: Any = distributed.global_state.client
        self._name = name

    def write(self, index: int, text: str) -> None:
        self._client.key_value_set(f"{self._name}/{index}", text, allow_overwrite=True)

    def read(self, index: int) -> str:
        # `key_value_try_get` would raise an error for a key without a text.
        texts = dict(self._client.key_value_dir_get(self._name))
        return texts.get(f"{self._name}/{index}", "")


def _is_of_collective(error: BaseException) -> bool:
    """Whether an error is of the communication between processes. JAX raises ValueErrors."""
    names = ("gloo", "nccl", "process group", "connection")
    is_of_engine = isinstance(error, (RuntimeError, ValueError))
    return is_of_engine and any(name in str(error).lower() for name in names)
