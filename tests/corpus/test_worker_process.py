"""A function in a process of its own."""

import importlib
import os
import subprocess
import sys

import pytest

from keras_bert_suite.corpus.worker_process import PROGRAM, WorkerProcess


def test_calls_errors_and_the_end(tmp_path, monkeypatch):
    """The function is in a module beside the script of a user, which PYTHONPATH does not name."""
    scripts = tmp_path / "scripts"  # A process finds what is in its working directory anyway.
    scripts.mkdir()
    (scripts / "words_of_a_user.py").write_text("def run(text):\n    return eval(text)\n")
    monkeypatch.syspath_prepend(scripts)
    with WorkerProcess(importlib.import_module("words_of_a_user").run) as worker:
        assert worker("6 * 7") == 42
        # What is printed does not come between the answers.
        assert worker("print('hello')") is None
        with pytest.raises(ValueError, match="invalid literal for int.*'x'"):
            worker("int('x')")
        with pytest.raises(FileNotFoundError) as error:
            worker("open('absent')")
        assert error.value.filename == "absent"
        assert worker("__import__('keras').config.backend()") == "numpy"
        assert worker("__import__('sys').modules.get('tensorflow')") is None
        with pytest.raises(RuntimeError, match="ended with status 7 at __import__.*fewer workers"):
            worker("__import__('os')._exit(7)")
        with pytest.raises(RuntimeError, match="ended with status 7"):
            worker("1")


def test_it_ends_while_it_imports(tmp_path):
    """If its parent is killed then. Else it would hold the lock of a folder."""
    package = tmp_path / "keras_bert_suite"
    package.mkdir()
    (package / "__init__.py").write_text("import time\ntime.sleep(600)\n")
    parent = (
        "import os, subprocess, sys\n"
        f"program = {PROGRAM!r}\n"
        "command = [sys.executable, '-c', program, str(os.getpid())]\n"
        "subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=(1,))\n"
        "os.kill(os.getpid(), 9)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    # The worker has inherited the pipe. Its other end is read until both have ended.
    subprocess.run(
        [sys.executable, "-c", parent], env=environment, stdout=subprocess.PIPE, timeout=60
    )
