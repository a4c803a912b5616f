"""Which warnings reach standard error, and how."""

import warnings

import pytest

from keras_bert_cli.log_noise import hide_log_noise


def test_warnings_are_one_plain_line(capsys):
    with hide_log_noise():
        warnings.warn("the pooler is absent", UserWarning, stacklevel=1)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    assert capsys.readouterr().err == "keras-bert: warning: the pooler is absent\n"


def test_a_traceback_comes_with_all_warnings():
    with hide_log_noise(enabled=False), pytest.warns(DeprecationWarning, match="old"):
        warnings.warn("old", DeprecationWarning, stacklevel=1)
