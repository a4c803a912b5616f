"""Errors about files name the file, and other errors stay as they are."""

import pytest

from keras_bert_suite.files.messages import MAX_MESSAGE, damaged, reading


@pytest.mark.parametrize("error", [KeyError("layers"), RuntimeError("x" * 5000), TypeError("no")])
def test_errors_name_the_file(error, tmp_path):
    with pytest.raises(ValueError, match=r"config\.json cannot be read: .*Error") as caught:
        with reading(tmp_path / "config.json"):
            raise error
    assert len(str(caught.value)) <= MAX_MESSAGE and caught.value.__cause__ is error


def test_other_errors_pass(tmp_path):
    path = tmp_path / "config.json"
    no_memory = type("OutOfMemoryError", (RuntimeError,), {})("CUDA out of memory")
    for error in (no_memory, KeyboardInterrupt(), ImportError("h5py"), UserWarning("old")):
        with pytest.raises(type(error)) as caught, reading(path):
            raise error
        assert caught.value is error
    with pytest.raises(ValueError, match="^no size in .*config.json$"), reading(path):
        raise ValueError(f"no size in {path}")


def test_files_that_are_elsewhere_have_no_size(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")
    assert "(it has 3 bytes)" in str(damaged(tmp_path / "file", "cut"))
    assert "bytes" not in str(damaged("s3://bucket/file", "cut"))
