"""Hides the frameworks' start-up messages."""

import contextlib
import logging
import os
import re
import sys
import threading
import warnings

#: Lines that the C++ code of TensorFlow and XLA writes although all is well. No setting stops them,
#: not even TF_CPP_MIN_LOG_LEVEL.
NOISE = re.compile(
    rb"[IW]\d{4} \d\d:\d\d:\d\d|[IW]\d{4} 00:00:\d+"
    rb"|WARNING: All log messages before absl::InitializeLog"
    rb"|To enable the following instructions:"
    rb"|E\d{4} .*(cuInit|oneDNN supports .* only on)"
)


@contextlib.contextmanager
def hide_log_noise(enabled=True):
    """Drops the lines of `NOISE` from standard error, also the lines of C++ and of child processes.

    Of Python's warnings only `UserWarning`s are shown, each as one plain line.
    """
    if not enabled or sys.stderr is None:
        yield
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    logging.getLogger("absl").setLevel(logging.ERROR)
    sys.stderr.flush()
    terminal = os.dup(2)
    read_end, write_end = os.pipe()
    os.dup2(write_end, 2)
    os.close(write_end)
    reader = threading.Thread(target=_copy_without_noise, args=(read_end, terminal), daemon=True)
    reader.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = _show_plainly
            yield
    finally:
        sys.stderr.flush()
        os.dup2(terminal, 2)
        # A child process that is still there keeps the pipe open.
        reader.join(timeout=2)
        if not reader.is_alive():
            os.close(terminal)


def _copy_without_noise(read_end, terminal):
    """Copies lines until the other end is closed. A progress bar ends its lines in `\\r`."""
    rest = b""
    with open(read_end, "rb", buffering=0) as stream:
        while chunk := stream.read(1 << 16):
            *lines, rest = re.split(rb"(?<=[\r\n])", rest + chunk)
            _write_lines(lines, terminal)
    _write_lines([rest], terminal)


def _write_lines(lines, terminal):
    kept = b"".join(line for line in lines if not NOISE.match(line))
    if kept:
        os.write(terminal, kept)


def _show_plainly(message, category, filename, lineno, file=None, line=None):
    print(f"keras-bert: warning: {message}", file=sys.stderr)
