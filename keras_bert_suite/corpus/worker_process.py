"""A function called over and over in a process of its own.

Not `multiprocessing`: its children import the main script again, and with it Keras and its
backend, need a guard in that script, and outlive a parent that is killed. This one imports Keras
with NumPy as its backend and hides TensorFlow, which halves the start, and ends at once when its
parent does.
"""

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import traceback

#: Keras Hub would import TensorFlow where it is installed.
PROGRAM = (
    "import sys; sys.modules.update(tensorflow=None, tensorflow_text=None); "
    f"from {__name__} import serve_calls; serve_calls()"
)


class WorkerProcess:
    """Calls `function` in another process, one call at a time.

    Args:
        function: object that can be called and pickled, of an importable module.
        pass_fds: descriptors that the process inherits, such as that of a lock.
    """

    def __init__(self, function, pass_fds=()):
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
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
        """`function(*arguments)`.

        Raises:
            ValueError, OSError: as the function does.
            RuntimeError: if it raises anything else, or the process is killed.
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
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # What is printed must not come between the replies.
    requests = queue.SimpleQueue()
    threading.Thread(target=_read_requests, args=(requests,), daemon=True).start()
    function = requests.get()
    while True:
        arguments = requests.get()
        try:
            reply = function(*arguments), None
        except (ValueError, OSError) as error:
            reply = None, error
        try:
            pickle.dump(reply, replies)
            replies.flush()
        except BrokenPipeError:
            os._exit(1)  # The parent is gone. Closing the pipe in order would fail again.


def _read_requests(requests):
    """Hands on what the parent asks for. Ends this process, in the middle of its work, with it."""
    try:
        while True:
            requests.put(pickle.load(sys.stdin.buffer))
    except EOFError:
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
