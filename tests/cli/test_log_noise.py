"""What reaches standard error, and what does not."""

import os
import subprocess
import sys
import warnings

import pytest

from keras_bert_cli.log_noise import hide_log_noise

NOISE = """\
WARNING: All log messages before absl::InitializeLog() is called are written to STDERR
I0000 00:00:1795153546.779238   18293 port.cc:153] oneDNN custom operations are on.
To enable the following instructions: AVX2 FMA, in other operations, rebuild TensorFlow.
W0000 00:00:1795153546.779238   18293 gpu_device.cc:2342] Cannot dlopen some GPU libraries.
E0000 00:00:1795153546.779238   18293 cuda_platform.cc:52] failed call to cuInit: UNKNOWN
E0000 00:00:1795171617.755587   14475 util.cc:131] oneDNN supports DT_INT64 only on platforms with
"""


def test_noise_is_dropped_and_all_else_kept_in_order(capfd):
    with hide_log_noise():
        os.write(2, b"one\n" + NOISE.encode())
        os.write(2, b"two\n")
        code = f"import sys; sys.stderr.write({NOISE!r} + 'three\\n')"
        subprocess.run([sys.executable, "-c", code], check=True)
        os.write(2, b"\r50%\r100%\nE0000 out of memory\nthe last, unfinished")
    os.write(2, b"\n" + NOISE.encode())
    kept = "one\ntwo\nthree\n\r50%\r100%\nE0000 out of memory\nthe last, unfinished\n"
    assert capfd.readouterr().err == kept + NOISE


def test_warnings_are_one_plain_line(capfd):
    with hide_log_noise():
        warnings.warn("the pooler is absent", UserWarning, stacklevel=1)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    assert capfd.readouterr().err == "keras-bert: warning: the pooler is absent\n"


def test_an_error_passes_and_the_stream_is_restored(capfd):
    with pytest.raises(ZeroDivisionError), hide_log_noise():
        os.write(2, b"before\n")
        raise ZeroDivisionError
    with hide_log_noise(enabled=False):
        os.write(2, NOISE.encode())
    assert capfd.readouterr().err == "before\n" + NOISE
