"""SIGTERM: who sends it will not wait for long."""

import contextlib
import signal
import threading

import keras


class WholeEpochs(keras.callbacks.CallbackList):
    """The callbacks of a `fit`. The list forwards `on_epoch_end` only for completed epochs.

    Keras also calls `on_epoch_end` and `on_test_end` when an epoch or a validation was cut short.
    A log would then show means over some of the batches as if they were means over all batches.

    Args:
        checkpoint: `TrainingCheckpoint`, one of them.
        callbacks, **arguments: as for `keras.callbacks.CallbackList`.
    """

    def __init__(self, checkpoint, callbacks, **arguments):
        super().__init__(callbacks, **arguments)
        self._checkpoint = checkpoint

    @property
    def terminated(self):
        """bool, whether SIGTERM has come."""
        return self._checkpoint.terminated

    def on_epoch_end(self, epoch, logs=None):
        if not (self.terminated and self._checkpoint.within_epoch):
            super().on_epoch_end(epoch, logs)

    def on_test_end(self, logs=None):
        super().on_test_end({} if self.terminated else logs)


@contextlib.contextmanager
def on_sigterm(handler):
    """Handles SIGTERM until the block ends; Python lets the main thread do so only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = signal.signal(signal.SIGTERM, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former or signal.SIG_DFL)
