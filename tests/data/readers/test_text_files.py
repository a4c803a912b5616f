"""Reading lines."""

import io

import pytest

from keras_bert_suite.corpus.documents import read_documents
from keras_bert_suite.corpus.faults import Faults
from keras_bert_suite.corpus.input_files import InputOptions, find_files, plan_slices
from keras_bert_suite.data.readers import read_table
from keras_bert_suite.data.readers.text_files import read_lines, split_lines
from keras_bert_suite.heads.questions.reader import read_squad
from keras_bert_suite.heads.relations.reader import read_semeval


def test_lines(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\r\n\n two\ttabs \nlast")
    assert read_lines(path) == ["one", "", " two\ttabs ", "last"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("é\n".encode())))
    assert read_lines("-") == ["é"]
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="a.txt is empty"):
        read_lines(path)


LINE_ENDS = ["\n", "\r\n", "\r", "\r\r\n"]


@pytest.mark.parametrize("end", LINE_ENDS)
@pytest.mark.parametrize("last", ["", "its end", "a line feed"])
def test_ends_of_lines(end, last):
    """As Python's universal newlines. Other characters at which `splitlines` breaks stay."""
    lines = ["one", "", "two\x85\u2028\x0b\x1c", " three "]
    text = end.join(lines) + {"its end": end, "a line feed": "\n"}.get(last, "")
    assert split_lines(text) == lines
    if end != "\r\r\n":
        universal = io.StringIO(text, newline=None).read().removesuffix("\n")
        assert split_lines(text) == universal.split("\n")


def test_a_text_may_hold_a_carriage_return():
    assert split_lines("one\rtwo\nthree\n") == ["one\rtwo", "three"]


def read_sentences(path, encoding="utf-8"):
    options, (folder, names) = InputOptions(encoding=encoding), find_files(path)
    faults = Faults()
    slices = plan_slices(folder, names, "auto", 9, encoding)
    read = [document for piece in slices for document in read_documents(piece, options, faults)]
    if faults:
        raise faults.error(folder)
    return [sentence for document in read for sentence in document]


QUESTIONS = [
    f'{{"id": {i}, "question": "{q}", "context": "a"}}' for i, q in enumerate(["good", "bad"])
]

#: The name of a file, its lines, and a function from its path to the texts in it.
READERS = [
    ("a.txt", ["good", "bad"], read_lines),
    ("a.txt", ["good", "", "bad"], read_sentences),
    ("a.jsonl", ['{"text": "good"}', "", '{"text": "bad"}'], read_sentences),
    ("a.tsv", ["text", "good", "bad"], lambda path: read_table(path, "text").x),
    ("a.csv", ["text", "good", "bad"], lambda path: read_table(path, "text").x),
    ("a.jsonl", ['{"text": "good"}', '{"text": "bad"}'], lambda path: read_table(path, "text").x),
    ("a.txt", ["text\tlabel", "good\t1", "bad\t2"], lambda path: read_table(path, "text").x),
    ("a.txt", ['1 "good"', "X", "", '2 "bad"', "Y"], lambda path: read_semeval(path).x),
    ("a.json", QUESTIONS, lambda path: read_squad(path, labelled=False).x[0]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "lines", "read"), READERS)
@pytest.mark.parametrize("end", LINE_ENDS)
def test_every_reader_of_lines(name, lines, read, end, tmp_path):
    path = tmp_path / name
    path.write_bytes("".join(line + end for line in lines).encode())
    assert [text for text in read(path) if text] == ["good", "bad"]


@pytest.mark.parametrize("read", [read_lines, read_sentences])
@pytest.mark.parametrize("end", LINE_ENDS[:3])
def test_the_line_that_cannot_be_decoded(read, end, tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(end.join(["one", "", "n\xefve", "last"]).encode("latin-1"))
    with pytest.raises(ValueError, match="line 3"):
        read(path)


@pytest.mark.parametrize(
    ("encoding", "named"), [("utf-16", "utf-16"), ("gb18030", "such as gb18030")]
)
def test_the_encoding_that_an_error_names(encoding, named, tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("房间干净\n".encode(encoding))
    with pytest.raises(ValueError, match=f"name the encoding it is in, {named}"):
        read_lines(path)
    assert read_lines(path, encoding) == ["房间干净"]
