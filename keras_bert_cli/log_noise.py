"""Hides most of the frameworks' start-up messages."""

import contextlib
import os
import sys
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


def _show_plainly(message, category, filename, lineno, file=None, line=None):
    print(f"keras-bert: warning: {message}", file=sys.stderr)
