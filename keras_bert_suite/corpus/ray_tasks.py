"""Works on the slices of a corpus by tasks of Ray, on one machine or on a cluster."""

import contextlib
import itertools
import pickle
import socket
from pathlib import Path

from keras_bert_suite.corpus.worker_process import reply_to
from keras_bert_suite.files.folder_lock import LOCK_FILE

#: As for a `WorkerProcess`: Keras is imported with the backend that starts fastest. Ray keeps the
#: workers of these variables apart from all others.
RUNTIME_ENV = {"env_vars": {"KERAS_BACKEND": "numpy"}}

#: The tasks that Ray is given at one time, by default. It waits slowly for one of very many.
TASKS_AT_ONCE = 1000

#: How long to wait until tasks that were cancelled have ended.
SECONDS_TO_CANCEL = 10


class RayTasks:
    """Calls a `ShardWriter` with slices, each in a task of Ray.

    Ray repeats a task whose worker or machine has died. A shard is a pure function of its slice,
    and its files appear whole. So a repeated task writes the same bytes, even while the first one
    lives.

    Args:
        ray: the module, connected to a cluster.
        writer: `ShardWriter`.
        slices: list of `CorpusSlice`.
        limit: int, the most tasks at one time; None for as many as the cluster runs, up to
            `TASKS_AT_ONCE`.
    """

    def __init__(self, ray, writer, slices, limit=None):
        self._ray, self._slices, self._limit = ray, slices, limit or TASKS_AT_ONCE
        self._writer = ray.put(pickle.dumps(writer))
        self._task = ray.remote(_make_task()).options(runtime_env=RUNTIME_ENV)

    def __call__(self, method, take):
        """Works on all slices, as `preparation._start_workers` says.

        Raises:
            ValueError, OSError: of the first task that raises one. The others are cancelled.
            RuntimeError: if Ray gives a task up.
        """
        results, left, running = {}, iter(self._slices), {}
        try:
            while True:
                for corpus_slice in itertools.islice(left, self._limit - len(running)):
                    running[self._start(method, corpus_slice)] = corpus_slice
                if not running:
                    return [results[s.number] for s in self._slices]
                (task,), _ = self._ray.wait([*running], num_returns=1)
                results[running[task].number] = take(self._read(task, running[task]))
                del running[task]
        finally:
            self._cancel([*running])

    def _start(self, method, corpus_slice):
        return self._task.remote(self._writer, pickle.dumps((method, corpus_slice)))

    def _read(self, task, corpus_slice):
        try:
            result, error = self._ray.get(task)
        except self._ray.exceptions.RayError as cause:
            raise RuntimeError(
                f"Ray has given up {corpus_slice}: {cause} Finished shards are kept. Run again to "
                "continue."
            ) from cause
        if error is not None:
            raise error
        return result

    def _cancel(self, tasks):
        """Ends tasks, so that none of them writes to the folder when its lock is given back."""
        for task in tasks:
            # A task that has ended by itself cannot be cancelled.
            with contextlib.suppress(self._ray.exceptions.RayError):
                self._ray.cancel(task, force=True)
        if tasks:
            self._ray.wait(tasks, num_returns=len(tasks), timeout=SECONDS_TO_CANCEL)


def _make_task():
    """The function of a task. Its arguments are bytes, and so is what pickles it: a nested function
    is pickled by value, so that nothing of this package is imported before TensorFlow is hidden.
    """

    def call_writer(writer, call):
        import pickle
        import sys

        for name in ("tensorflow", "tensorflow_text"):
            sys.modules.setdefault(name, None)
        from keras_bert_suite.corpus.ray_tasks import answer

        return answer(pickle.loads(writer), *pickle.loads(call))

    return call_writer


def answer(writer, method, corpus_slice):
    """In a worker: the pair of `reply_to`."""
    # The run holds the folder by this file. A folder of this name on another disk does not have it.
    if not (Path(writer.output) / LOCK_FILE).exists():
        return None, _not_shared(f"{writer.output} is not the folder of the run that writes it")
    result, error = reply_to(writer, (method, corpus_slice))
    return result, _not_shared(error) if isinstance(error, FileNotFoundError) else error


def _not_shared(reason):
    return FileNotFoundError(
        f"{reason}, on {socket.gethostname()}, where Ray has a worker. All machines of the cluster "
        "need the input and the output under the same paths, in a file system that they share."
    )
