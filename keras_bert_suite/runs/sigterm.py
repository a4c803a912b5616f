"""Notes SIGTERM, so that a training can save before it ends."""

import contextlib
import itertools
import signal
import threading
from collections.abc import Iterator

from keras_bert_suite.replicas import has_joint_variables
from keras_bert_suite.replicas.processes import is_true_anywhere

#: Numbers the checks of this process. All processes of JAX make the same checks.
_checks = itertools.count()


class SigtermFlag:
    """Notes that SIGTERM has come within the block of `listen`. It does not end the process.

    Processes of JAX that share a run are at different batches when one of them gets the signal. JAX
    handles the signal for them, and finds a batch after which all of them can stop.
    """

    def __init__(self) -> None:
        self.received = False

    @contextlib.contextmanager
    def listen(self) -> Iterator[None]:
        """Handles SIGTERM until the block ends. Python allows this only in the main thread.

        In another thread the block runs too, but the handling of the signal does not change.
        """
        if has_joint_variables() or threading.current_thread() is not threading.main_thread():
            yield
            self.received = False
            return
        former = signal.signal(signal.SIGTERM, self._note)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, former or signal.SIG_DFL)
            self.received = False

    def check(self) -> bool:
        """Whether the training must end now. All processes get the same answer.

        All processes ask after each batch, also after each batch of a validation.
        """
        if not has_joint_variables():
            return is_true_anywhere(self.received)
        from jax.experimental import multihost_utils

        # JAX stops all processes at the same number. The numbers must have no gaps.
        if multihost_utils.reached_preemption_sync_point(next(_checks)):
            self.received = True
        return self.received

    def _note(self, *_: object) -> None:
        self.received = True
