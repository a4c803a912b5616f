"""A function called over and over in a process of its own.

Not `multiprocessing`: its children import the main script again, and with it Keras and its
backend, need a guard in that script, and outlive a parent that is killed. This one imports Keras
with NumPy as its backend and hides TensorFlow, which halves the start, and ends when its parent
does.
"""

import os
import pickle
import signal
import subprocess
import sys

#: Keras Hub would import TensorFlow where it is installed.
PROGRAM = (
    "import sys; sys.modules.update(tensorflow=None, tensorflow_text=None); "
    f"from {__name__} import serve_calls; serve_calls()"
)


class WorkerProcess:
    """Calls `function` in another process, one call at a time.

    Args:
        function: object that can be called and pickled, of an importable module.
    """

    def __init__(self, function):
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={
                **os.environ,
                "KERAS_BACKEND": "numpy",
                "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
            },
        )
        self._function = function

    def __call__(self, argument):
        """`function(argument)`.

        Raises:
            ValueError, OSError: as the function does.
            RuntimeError: if it raises anything else, or the process is killed.
        """
        try:
            if self._function is not None:
                pickle.dump(self._function, self._process.stdin)
                self._function = None
            pickle.dump(argument, self._process.stdin)
            self._process.stdin.flush()
            result, error = pickle.load(self._process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            status = self._process.wait()
            raise RuntimeError(
                f"A worker process ended with status {status} at {argument}. If it printed no "
                "error it was killed, and memory may have run out: take fewer workers. What is "
                "finished is kept; run again to go on."
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
    """The other end: reads the function and its arguments, writes (result, error) pairs."""
    # An interrupt from the terminal reaches all processes; the parent ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # What is printed must not come between the replies.
    function = None
    while True:
        try:
            request = pickle.load(requests)
        except EOFError:
            return
        if function is None:
            function = request
            continue
        try:
            reply = function(request), None
        except (ValueError, OSError) as error:
            reply = None, error
        try:
            pickle.dump(reply, replies)
            replies.flush()
        except BrokenPipeError:
            os._exit(1)  # The parent is gone. Closing the pipe in order would fail again.
