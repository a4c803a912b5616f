"""Notes SIGTERM, so that a training can save before it ends."""

import contextlib
import signal
import threading
from collections.abc import Iterator


class SigtermFlag:
    """Notes that SIGTERM has come. The signal does not end the process.

    Attributes:
        received: bool, whether the signal has come within the block of `listen`.
    """

    def __init__(self) -> None:
        self.received = False

    @contextlib.contextmanager
    def listen(self) -> Iterator[None]:
        """Handles SIGTERM until the block ends. Python allows this only in the main thread.

        In another thread the block runs too, but the handling of the signal does not change.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        former = signal.signal(signal.SIGTERM, self._note)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, former or signal.SIG_DFL)
            self.received = False

    def _note(self, *_: object) -> None:
        self.received = True
