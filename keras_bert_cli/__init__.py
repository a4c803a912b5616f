"""The command line, `keras-bert COMMAND --flags`.

This package is beside keras_bert_suite, and not a part of it. To import keras_bert_suite is to
import Keras. No module of this package imports Keras before the flags are read. So help comes at
once, and the backend can still be chosen.
"""

import importlib.metadata
import os
import sys

from .unopened import leave_unopened

leave_unopened()

# ruff: noqa: E402
from . import (
    adapt,
    convert,
    embed,
    evaluate,
    export,
    fill_mask,
    finetune,
    predict,
    prepare,
    pretrain,
    search,
    show,
    shrink,
    vocab,
)
from .backend import choose_backend, keep_freed_memory, use_onednn
from .command_flags import Flags, UsageError, format_overview
from .devices import find_backend, needs_processes, run_processes
from .log_noise import hide_log_noise

COMMANDS = {
    "vocab": vocab,
    "prepare": prepare,
    "pretrain": pretrain,
    "adapt": adapt,
    "fill-mask": fill_mask,
    "finetune": finetune,
    "evaluate": evaluate,
    "predict": predict,
    "embed": embed,
    "search": search,
    "export": export,
    "convert": convert,
    "shrink": shrink,
    "show": show,
}


def main(argv=None):
    """Runs a command, the arguments of the process if `argv` is None.

    Returns:
        int, the exit status: 0; 1 for an error; 2 if the command line itself is wrong;
        130 if interrupted; 143 if SIGTERM has stopped a training. An error is one plain
        message on standard error.
    """
    arguments = sys.argv[1:] if argv is None else list(argv)
    try:
        status = _main(arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The reader of the output, such as `head`, has ended. Python would report this again when
        # it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _main(arguments):
    try:
        name, *rest = arguments or ["help"]
        if name in ("help", "--help", "-h"):
            print(format_overview(COMMANDS))
            return 0 if arguments else 2
        if name == "--version":
            print(find_version())
            return 0
        if name not in COMMANDS:
            raise UsageError(f"unknown command {name!r}; choose one of {', '.join(COMMANDS)}")
        values = Flags(name, COMMANDS[name]).parse(rest)
    except UsageError as error:
        return _report(error, 2)
    except SystemExit as error:  # The help was printed.
        return error.code
    return _run(COMMANDS[name], values, arguments)


def find_version():
    """The installed version, found without importing the package and Keras."""
    try:
        return importlib.metadata.version("keras-bert-suite")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _run(command, values, arguments):
    try:
        if needs_processes(values):
            return run_processes(values.devices, arguments)
        choose_backend(values.backend)
        if find_backend(values.backend) == "tensorflow":
            use_onednn()
        keep_freed_memory()
        with hide_log_noise(enabled=not values.traceback):
            status = command.run(values)
            sys.stdout.flush()
        return status or 0
    except KeyboardInterrupt:
        return _report("interrupted", 130)
    except UsageError as error:
        return _report(error, 2)
    except (ValueError, OSError, ImportError, RuntimeError, FloatingPointError) as error:
        if values.traceback:
            raise
        return _report(_describe(error), 1)


def _describe(error):
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def _report(message, status):
    print(f"keras-bert: {message}", file=sys.stderr)
    return status
