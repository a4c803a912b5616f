"""Which warnings reach standard error, and how."""

import os
import warnings

import pytest

from keras_bert_cli.log_noise import hide_log_noise, hide_start_lines


def test_warnings_are_one_plain_line(capsys):
    with hide_log_noise():
        warnings.warn("the pooler is absent", UserWarning, stacklevel=1)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    assert capsys.readouterr().err == "keras-bert: warning: the pooler is absent\n"


def test_a_traceback_comes_with_all_warnings():
    with hide_log_noise(enabled=False), pytest.warns(DeprecationWarning, match="old"):
        warnings.warn("old", DeprecationWarning, stacklevel=1)


def test_lines_of_a_start(capfd):
    """They are those of TensorFlow 2.21 on a machine without a GPU."""
    before = (
        "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR"
    )
    start = "I0000 00:00:1795904649.361597   28564 port.cc:153] oneDNN custom operations are on."
    with pytest.raises(OSError, match="broken"), hide_start_lines():
        for line in (before, "first", start, "E0000 00:00:1.5 28 other.cc:1] wrong", "last"):
            os.write(2, f"{line}\n".encode())
        raise OSError("broken")
    wanted = "first\nE0000 00:00:1.5 28 other.cc:1] wrong\nlast\n"
    assert capfd.readouterr().err == wanted
