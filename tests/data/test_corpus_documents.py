"""Documents of slices, and what is wrong with a file."""

import gzip
import json

import pytest

from keras_bert_suite.data.corpus_documents import hash_slice, read_documents
from keras_bert_suite.data.corpus_files import find_files, plan_slices

pytestmark = pytest.mark.backend_free

# Carriage returns, lines of spaces of all kinds, and characters where `splitlines` would split.
SENTENCES = (
    "\ufeffOne . not split\nzwei\r\n\n \t\n\u3000\n\nthree\r\n\r\n四\x0b\u2028 end\n\xa0\nlast"
).encode()
EXPECTED = [["One . not split", "zwei"], ["three"], ["四\x0b\u2028 end"], ["last"]]


def read_all(path, slice_bytes=1 << 20, format="auto", **options):
    """The documents of all slices that have a sentence."""
    slices = plan_slices(*find_files(path), format, slice_bytes)
    documents = [d for piece in slices for d in read_documents(piece, format, **options)]
    return [document for document in documents if document]


def test_a_sentence_a_line(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(SENTENCES)
    for slice_bytes in range(1, len(SENTENCES) + 2):
        assert read_all(path, slice_bytes) == EXPECTED, slice_bytes


def test_a_document_a_line(tmp_path):
    path = tmp_path / "a.jsonl"
    texts = ["It rained. It stopped.\n\nA line", "", "他来了。\u2028她走了。", "A\ud800 lone one."]
    lines = [json.dumps({"id": 1, "body": text}) for text in texts]
    path.write_text("\ufeff" + "\n\n".join(lines) + "\n \n", encoding="utf-8")
    expected = [
        ["It rained.", "It stopped.", "A line"],
        ["他来了。", "她走了。"],
        ["A\ud800 lone one."],
    ]
    for slice_bytes in (1, 10, 30, 70, 1000):
        assert read_all(path, slice_bytes, text_key="body") == expected, slice_bytes


def test_a_document_a_file(tmp_path):
    (tmp_path / "b.txt").write_text("One. Two.\n\nThree\n")
    (tmp_path / "a.txt").write_text("\ufeff一。二。", encoding="utf-8")
    (tmp_path / "c.txt").write_text("")
    for slice_bytes in (1, 1000):
        documents = read_all(tmp_path, slice_bytes, "files")
        assert documents == [["一。", "二。"], ["One.", "Two.", "Three"]]


@pytest.mark.parametrize("format", ["sentences", "files", "jsonl"])
def test_gzip(tmp_path, format):
    text = '{"text": "One. Two."}\n\n{"text": "Three."}\n'
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "a.jsonl").write_text(text)
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    expected = read_all(tmp_path / "plain", format=format)
    assert expected and read_all(tmp_path / "*.gz", 10, format) == expected
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(text.encode())[:-12])
    with pytest.raises(ValueError, match=r"a.jsonl.gz cannot be unpacked.*restore it"):
        read_all(tmp_path / "*.gz", 10, format)


@pytest.mark.parametrize("slice_bytes", [1, 1000])
@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.txt", b"one\n\ntwo\nth\xffree\n", "a.txt, line 4 is not UTF-8: byte 0xff.*iconv"),
        ("a.txt", b"one\n\n\xe4\xb8\n", "line 3 is not UTF-8: byte 0xe4"),
        ("a.jsonl", b'{"text": "a"}\n{"text": "b}\n', "line 2 is not JSON: Unterminated .* 10"),
        ("a.jsonl", b'{"text": "a"}\n\n{"txt": "b"}', "line 3: .* under 'text', got .* 'txt'"),
        ("a.jsonl", b'{"text": "a"}\n{"text": 7}', "line 2: .* got a int under it.*text_key"),
        ("a.jsonl", b'"a text"\n', "line 1: wanted an object .* got a str"),
        ("a.jsonl", b'{"text": "\xff"}\n', "line 1 is not UTF-8: byte 0xff"),
    ],
)
def test_damaged_input(tmp_path, name, content, message, slice_bytes):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_all(tmp_path / name, slice_bytes)
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content))
    with pytest.raises(ValueError, match=message.replace("a.txt", "a.txt.gz")):
        read_all(tmp_path / f"{name}.gz", slice_bytes)


def test_a_document_that_is_not_utf8(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\ntwo\nth\xffree")
    with pytest.raises(ValueError, match="a.txt, line 3 is not UTF-8"):
        read_all(tmp_path, format="files")


def test_input_that_shrinks(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(SENTENCES)
    (piece,) = plan_slices(*find_files(path), "auto", 1 << 20)
    before = hash_slice(piece)
    path.write_bytes(SENTENCES[:-3])
    assert hash_slice(piece) != before
    with pytest.raises(ValueError, match="a.txt ends at byte .* Let nothing write"):
        list(read_documents(piece))
