"""Processes of PyTorch as threads of one process, whose collectives wait for each other."""

import threading
from concurrent.futures import ThreadPoolExecutor

import torch

from keras_bert_suite.replicas import process_watch


class Threads:
    """Stands in for `torch.distributed`. Outside of `run` there is one process.

    Args:
        count: int, the threads.
        monkeypatch: the fixture of pytest.
    """

    class ReduceOp:
        SUM, MAX = "sum", "max"

    def __init__(self, count, monkeypatch):
        self._count, self._real = count, torch.distributed
        self._barrier, self._values = threading.Barrier(count, timeout=60), [None] * count
        self._thread, self._texts = threading.local(), {}
        monkeypatch.setattr(torch, "distributed", self)
        # Keras 3.16 has a name of its own for the module.
        monkeypatch.setattr("keras.src.backend.torch.trainer.dist", self, raising=False)
        monkeypatch.setattr(process_watch, "_open_store", lambda name: self)

    def __getattr__(self, name):
        return getattr(self._real, name)

    def run(self, function):
        """The results of `function(rank)` of all threads, or the first error."""
        errors = []

        def call(rank):
            self._thread.rank = rank
            try:
                return function(rank)
            except BaseException as error:
                errors.append(error)
                self._barrier.abort()

        with ThreadPoolExecutor(self._count) as threads:
            results = list(threads.map(call, range(self._count)))
        if errors:
            raise errors[0]
        return results

    # What the package uses of `torch.distributed`.

    def is_initialized(self):
        return hasattr(self._thread, "rank")

    def get_rank(self):
        return self._thread.rank

    def get_world_size(self):
        return self._count if self.is_initialized() else 1

    def get_backend(self, group):
        return "gloo"

    def all_reduce(self, tensor, op="sum", group=None, async_op=False):
        values = torch.stack(self._gather(tensor.detach().clone()))
        tensor.detach().copy_(values.sum(0) if op == "sum" else values.amax(0))
        return self

    def wait(self):
        """Nothing is left to wait for."""

    def broadcast(self, tensor, src):
        tensor.copy_(self._gather(tensor.clone())[src])

    def all_gather_object(self, values, value, group=None):
        values[:] = self._gather(value)

    # The store of a `ProcessWatch`.

    def write(self, index, text):
        self._texts[index] = text

    def read(self, index):
        return self._texts.get(index, "")

    def _gather(self, value):
        self._values[self.get_rank()] = value
        self._barrier.wait()
        values = list(self._values)
        self._barrier.wait()
        return values
