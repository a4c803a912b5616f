"""A lock that lets one process at a time write to a folder."""

import contextlib
import os
import socket
import time
import warnings

#: The file that is locked. It is there only as long as the folder is locked, or after a kill.
LOCK_FILE = ".lock"

#: How long to wait for the lock. The workers of a run that was killed end a moment after it.
SECONDS_TO_WAIT = 5


@contextlib.contextmanager
def lock_folder(folder):
    """Holds an existing folder while the block runs. Another process gets a BlockingIOError.

    The operating system gives the lock back when the process ends, even if it is killed. A
    process that inherits the descriptor, which the block gets, holds the lock too. Under Windows
    nothing is locked, and the block gets None.
    """
    if os.name == "nt":
        yield None
        return
    descriptor = _lock(folder)
    try:
        yield descriptor
    finally:
        (folder / LOCK_FILE).unlink(missing_ok=True)
        os.close(descriptor)


def _lock(folder):
    path = folder / LOCK_FILE
    deadline = time.monotonic() + SECONDS_TO_WAIT
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if _try_lock(descriptor, folder):
                # The process that held the lock before may have removed the file meanwhile.
                if _is_file(descriptor, path):
                    os.truncate(descriptor, 0)
                    os.write(
                        descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode()
                    )
                    return descriptor
            elif time.monotonic() > deadline:
                holder = os.pread(descriptor, 200, 0).decode("utf-8", "replace")
                raise BlockingIOError(
                    f"{folder} is being written by another run, {holder or 'a process'}. Wait "
                    "until it ends, or write to another folder."
                )
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        time.sleep(0.05)


def _try_lock(descriptor, folder):
    import fcntl  # Not on Windows.

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        warnings.warn(
            f"The file system of {folder} has no locks ({error.strerror}). Let no other run write "
            "to this folder.",
            stacklevel=2,
        )
    return True


def _is_file(descriptor, path):
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
