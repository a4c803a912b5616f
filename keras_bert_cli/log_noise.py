"""Hides most of the frameworks' start-up messages."""

import contextlib
import glob
import os
import re
import sys
import tempfile
import warnings

from absl import logging


@contextlib.contextmanager
def hide_log_noise(enabled=True):
    """Hides messages that TensorFlow, XLA and gRPC write although all is well.

    Some lines of their C++ code still show, because no setting stops them. They begin with
    "WARNING: All log messages before absl::InitializeLog()". Of Python's warnings only
    `UserWarning`s are shown, each as one plain line.
    """
    if not enabled:
        yield
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    logging.set_verbosity(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = _show_plainly
        yield


#: Lines that TensorFlow's C++ code writes when it starts, whatever its settings say, and the one
#: that Grain writes where JAX is not installed.
_START_LINES = (
    rb"WARNING: All log messages before absl::InitializeLog.*"
    rb"|I0000 00:00:\S+ +\d+ .*"
    rb"|To enable the following instructions: .*"
    rb"|WARNING:absl:Failed to load jax profiler: .*"
)
#: The same on a machine without a GPU.
_NO_GPU_LINES = rb"|E0000 00:00:\S+ +\d+ cuda_platform\.cc.* failed call to cuInit.*"


@contextlib.contextmanager
def hide_start_lines():
    """Hides lines by which TensorFlow says that it starts. All others are written at the end.

    They come from C++ code, so meanwhile standard error itself is another file.
    """
    pattern = _START_LINES if glob.glob("/dev/nvidia[0-9]*") else _START_LINES + _NO_GPU_LINES
    sys.stderr.flush()
    standard_error = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(standard_error, 2)
            os.close(standard_error)
            file.seek(0)
            for line in file:
                if not re.fullmatch(pattern, line.strip()):
                    os.write(2, line)


def _show_plainly(message, category, filename, lineno, file=None, line=None):
    print(f"keras-bert: warning: {message}", file=sys.stderr)
