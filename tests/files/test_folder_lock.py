"""A folder is held by one process at a time, and by none that has ended."""

import errno
import os
import subprocess
import sys

import pytest

from keras_bert_suite.files import folder_lock
from keras_bert_suite.files.folder_lock import lock_folder

fcntl = pytest.importorskip("fcntl")

PROGRAM = """
import os, subprocess, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from folder_lock import lock_folder
with lock_folder(Path(sys.argv[2])) as lock:
    subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=(lock,))
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_killed_process_holds_nothing(tmp_path, monkeypatch):
    """It held the folder, and a child of it did, which ends after it."""
    monkeypatch.setattr(folder_lock, "SECONDS_TO_WAIT", 0)
    source = os.path.dirname(folder_lock.__file__)
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, source, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(BlockingIOError, match=f"another run, process {process.pid} on "):
            with lock_folder(tmp_path):
                pass
        monkeypatch.setattr(folder_lock, "SECONDS_TO_WAIT", 60)
        process.kill()
        with lock_folder(tmp_path):
            assert f"process {os.getpid()} on" in (tmp_path / ".lock").read_text()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_removed_locks_nothing(tmp_path, monkeypatch):
    """The process that held it before removes it between the opening and the lock."""
    take, files = folder_lock._try_lock, [tmp_path / ".lock"]

    def take_late(descriptor, folder):
        if files:
            files.pop().unlink()
        return take(descriptor, folder)

    monkeypatch.setattr(folder_lock, "_try_lock", take_late)
    with lock_folder(tmp_path) as lock:
        assert os.path.samestat(os.fstat(lock), os.stat(tmp_path / ".lock"))


def test_an_error_gives_the_folder_back(tmp_path):
    for _ in range(2):
        with pytest.raises(KeyError), lock_folder(tmp_path):
            raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def refuse(descriptor, operation):
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.warns(UserWarning, match="has no locks .Operation not supported.. Let no other"):
        with lock_folder(tmp_path):
            pass
