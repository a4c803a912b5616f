"""Errors about files name the file, and other errors stay as they are."""

import errno

import pytest

from keras_bert_suite.files.messages import MAX_MESSAGE, list_names, reading, shorten


@pytest.mark.parametrize("error", [KeyError("layers"), RuntimeError("x" * 5000), TypeError("no")])
def test_errors_name_the_file(error, tmp_path):
    with pytest.raises(ValueError, match=r"config\.json cannot be read: .*Error") as caught:
        with reading(tmp_path / "config.json"):
            raise error
    assert len(str(caught.value)) <= MAX_MESSAGE and caught.value.__cause__ is error


def test_other_errors_pass(tmp_path):
    path = tmp_path / "config.json"
    no_memory = type("OutOfMemoryError", (RuntimeError,), {})("CUDA out of memory")
    for error in (
        *(no_memory, MemoryError(), KeyboardInterrupt(), ImportError("h5py"), UserWarning("old")),
        FileNotFoundError(2, "No such file", "another.json"),
    ):
        with pytest.raises(type(error)) as caught, reading(path):
            raise error
        assert caught.value is error
    with pytest.raises(ValueError, match="^no size in .*config.json$"), reading(path):
        raise ValueError(f"no size in {path}")
    # A name that is too long came out of the file, and so does a long message.
    for error in (
        OSError(errno.ENAMETOOLONG, "File name too long", "x" * 5000),
        ValueError(f"{path} has {'x' * 5000}"),
    ):
        with pytest.raises(ValueError, match=r"config.json cannot be read: ") as caught:
            with reading(path):
                raise error
        assert len(str(caught.value)) <= MAX_MESSAGE
    with pytest.raises(ValueError, match="^no size in .*weights$"), reading(path, "weights"):
        raise ValueError("no size in weights")


def test_long_texts_and_lists_are_cut():
    assert shorten("x" * 5 + "y" * 1000 + "z" * 5, 13) == "xxxxx...zzzzz"
    assert shorten("x" * 13, 13) == "x" * 13
    assert list_names(range(20)) == ", ".join(map(str, range(20)))
    assert list_names(range(1025), "; ").endswith("; 18; 19; ... and 1,005 more")
    assert list_names(["x" * 20], max_characters=9) == "xxx...xxx"
