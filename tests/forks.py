"""Children of a process that has imported everything, which are killed at random moments.

An import of Keras takes seconds. So a script imports once, and forks a child for each attempt. It
computes nothing itself: no thread of the backend may be there when it forks.
"""

import os
import signal
import sys
import time
import traceback


def fork(function, *arguments):
    """Calls a function in a child.

    Args:
        function: its result is the exit status of the child, 0 if it is None. After an error, which
            is printed, the status is 70.
        *arguments: of the function.

    Returns:
        int, the process id.
    """
    child = os.fork()
    if child:
        return child
    status = 70
    try:
        status = function(*arguments) or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def is_running(child):
    """Whether a child has not ended."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def wait(child):
    """The exit status of a child; negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def wait_until(moment, child):
    """Waits until `time.monotonic()` is `moment`, or a child has ended. Returns whether it runs."""
    while is_running(child):
        if time.monotonic() >= moment:
            return True
        time.sleep(0.002)
    return False


def kill_later(child, seconds, started=lambda: True):
    """Sends SIGKILL `seconds` after `started()` is true, if the child has not ended before."""
    while is_running(child) and not started():
        time.sleep(0.002)
    if wait_until(time.monotonic() + seconds, child):
        os.kill(child, signal.SIGKILL)


def num_lines(path):
    """int, the lines of a file, 0 if there is none."""
    return len(path.read_bytes().splitlines()) if path.exists() else 0


def list_children(process):
    """The process ids of the children of a process, in the order in which it has started them."""
    with open(f"/proc/{process}/task/{process}/children") as file:
        return [int(child) for child in file.read().split()]
