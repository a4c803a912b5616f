"""Calls a function, again and again, in a separate process.

`multiprocessing` is not used. Its processes import the main script again, and with it Keras and its
backend. They need a guard in that script, and outlive a parent that is killed. A `WorkerProcess`
imports Keras with NumPy as its backend and hides TensorFlow, so it starts in half the time. It ends
as soon as its parent ends.
"""

import contextlib
import os
import pickle
import signal
import subprocess
import sys

#: The program of the process. A thread ends it with its parent, also while it imports Keras: it
#: would hold the lock of a folder for seconds otherwise. KerasHub would import TensorFlow where it
#: is installed.
PROGRAM = f"""
import os, sys, threading, time

def end_with_parent():
    while os.getppid() == int(sys.argv[1]):
        time.sleep(0.1)
    os._exit(1)

threading.Thread(target=end_with_parent, daemon=True).start()
sys.modules.update(tensorflow=None, tensorflow_text=None)
from {__name__} import serve_calls
serve_calls()
"""


class WorkerProcess:
    """Calls `function`, which can be pickled, in another process, one call at a time.

    The process inherits the descriptors `pass_fds`, such as a lock's.
    """

    def __init__(self, function, pass_fds=()):
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=pass_fds,
            env={
                **os.environ,
                "KERAS_BACKEND": "numpy",
                "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
            },
        )
        self._function = function

    def __call__(self, *arguments):
        """Returns `function(*arguments)`, or raises its ValueError or OSError.

        Another error, and a process that is killed, is a RuntimeError.
        """
        try:
            if self._function is not None:
                pickle.dump(self._function, self._process.stdin)
                self._function = None
            pickle.dump(arguments, self._process.stdin)
            self._process.stdin.flush()
            result, error = pickle.load(self._process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            status = self._process.wait()
            raise RuntimeError(
                f"A worker process ended with status {status} at {arguments[-1]}. If it printed no "
                "error, it was killed, and memory may have run out: take fewer workers. Finished "
                "shards are kept. Run again to continue."
            ) from None
        if error is not None:
            raise error
        return result

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.kill()
        self._process.communicate()

    def kill(self):
        """Ends the process. A call that another thread waits for raises RuntimeError."""
        self._process.kill()


def serve_calls():
    """Runs in the worker: reads the function and its arguments, writes (result, error) pairs."""
    # An interrupt from the terminal reaches all processes. The parent ends the worker.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # Printed text must not come between the replies.
    function = pickle.load(sys.stdin.buffer)
    with contextlib.suppress(EOFError, BrokenPipeError):  # The parent has ended.
        while True:
            arguments = pickle.load(sys.stdin.buffer)
            pickle.dump(reply_to(function, arguments), replies)
            replies.flush()


def reply_to(function, arguments):
    """(the result of a call, None), or (None, its ValueError or OSError)."""
    try:
        return function(*arguments), None
    except (ValueError, OSError) as error:
        return None, error
