"""Reading lines."""

import io

import pytest

from keras_bert_suite.data.readers.text_files import read_lines


def test_lines(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\r\n\n two\ttabs \nlast")
    assert read_lines(path) == ["one", "", " two\ttabs ", "last"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("é\n".encode())))
    assert read_lines("-") == ["é"]
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="a.txt is empty"):
        read_lines(path)
