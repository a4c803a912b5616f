"""Locks the weights of a task while it predicts or evaluates under JAX."""

import contextlib
import threading
import weakref
from collections.abc import Iterator

import keras

from keras_bert_suite.runs.shown_average import show_average

#: For each backbone a lock. Tasks with one backbone share its weights, and so its lock.
_LOCKS: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


@contextlib.contextmanager
def lock_weights(task: keras.Model) -> Iterator[None]:
    """Lets one thread at a time into the block, with the average of the weights if there is one.

    It gives the task its weights back at the end, and on an error.
    """
    with _lock_state(task), show_average(task):
        yield


@contextlib.contextmanager
def _lock_state(task):
    """Lets one thread at a time into the block, and gives the task its weights back on an error.

    Under JAX, Keras takes the weights out of a model while it predicts or evaluates. It puts them
    back at the end, but not after an error. A second thread, or a callback in the same thread,
    would find no weights. Under other backends this does nothing.
    """
    if keras.config.backend() != "jax":
        yield
        return
    with _LOCKS.setdefault(task.backbone, threading.RLock()):
        _put_back(task)  # A callback may be in the block already, or in a `fit`.
        try:
            yield
        except BaseException:
            _put_back(task)
            raise


def _put_back(task):
    task.jax_state_sync()
    task._jax_state = None
