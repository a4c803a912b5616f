"""Lines of large files."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_suite.data import decoding
from keras_bert_suite.data.decoding import stream_lines

pytestmark = pytest.mark.backend_free


def open_bytes(content):
    file = io.BytesIO(content)
    file.name = "corpus.txt"
    return file


@pytest.fixture(params=[1, 3, 1 << 20])
def chunk_bytes(request, monkeypatch):
    monkeypatch.setattr(decoding, "_CHUNK_BYTES", request.param)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
def test_lines(chunk_bytes, encoding):
    text = "一 line\r\n\n\u2028 \x85 is no end\n\ud55c\U0001f600"
    lines = list(stream_lines(open_bytes(text.encode(encoding)), encoding))
    assert lines == ["一 line", "", "\u2028 \x85 is no end", "\ud55c\U0001f600"]


@given(st.text("ab\n\r é😀", max_size=40), st.integers(1, 5))
def test_lines_are_those_of_python(text, size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "_CHUNK_BYTES", size)
        lines = list(stream_lines(open_bytes(text.encode())))
    expected = io.StringIO(text, newline="\n").readlines()
    assert lines == [line.removesuffix("\n").removesuffix("\r") for line in expected]


def test_byte_order_mark(chunk_bytes):
    assert list(stream_lines(open_bytes("\ufeffa\n\ufeffb".encode()))) == ["a", "\ufeffb"]
    assert list(stream_lines(open_bytes(b""))) == []


def test_long_lines_are_cut_at_spaces(monkeypatch):
    monkeypatch.setattr(decoding, "_CHUNK_BYTES", 4)
    monkeypatch.setattr(decoding, "_LONG_LINE", 10)
    lines = list(stream_lines(open_bytes(b"one two three four\nfive\n" + b"x" * 30)))
    assert lines == ["one two", "three four", "five", "x" * 30]


def test_errors_name_the_line(chunk_bytes):
    content = "一\n二\n".encode() + b"ab\xffc"
    message = r"corpus.txt is not utf-8: byte 0xff at offset 10 \(line 3\): invalid start byte"
    with pytest.raises(ValueError, match=message):
        list(stream_lines(open_bytes(content)))
    message = r"byte 0xe4 at offset 2 \(line 2\): unexpected end of data"
    with pytest.raises(ValueError, match=message):
        list(stream_lines(open_bytes(b"a\n" + "一".encode()[:2])))
    with pytest.raises(ValueError, match="unknown encoding: utf-9. Wanted one that Python knows"):
        list(stream_lines(open_bytes(b""), "utf-9"))
