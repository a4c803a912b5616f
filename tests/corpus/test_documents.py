"""Documents of slices, and what is wrong with a file."""

import gzip
import json

import pytest

from keras_bert_suite.corpus.documents import find_faults, hash_slice, read_documents
from keras_bert_suite.corpus.faults import Faults
from keras_bert_suite.corpus.input_files import InputOptions, find_files, plan_slices

# Carriage returns, lines of spaces of all kinds, and characters where `splitlines` would split.
SENTENCES = (
    "\ufeffOne . not split\nzwei\r\n\n \t\n\u3000\n\nthree\r\n\r\n四\x0b\u2028 end\n\xa0\nlast"
).encode()
EXPECTED = [["One . not split", "zwei"], ["three"], ["四\x0b\u2028 end"], ["last"]]


def read_with_faults(path, slice_bytes=1 << 20, format="auto", **options):
    """The documents of all slices that have a sentence, and the `Faults`."""
    options = InputOptions(format, **options)
    folder, names = find_files(path)
    slices = plan_slices(folder, names, format, slice_bytes, options.encoding)
    documents, faults, found = [], Faults(), Faults()
    for piece in slices:
        documents += read_documents(piece, options, faults)
        found.update(find_faults(piece, options))
    assert faults == found
    return [document for document in documents if document], faults


def read_all(*arguments, **options):
    """The documents; raises what cannot be read."""
    documents, faults = read_with_faults(*arguments, **options)
    if faults:
        raise faults.error(find_files(arguments[0])[0])
    return documents


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
    with pytest.raises(ValueError, match=r"a.jsonl.gz cannot be unpacked: Compressed file ended"):
        read_all(tmp_path / "*.gz", 10, format)


@pytest.mark.parametrize("slice_bytes", [1, 1000])
@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.txt", b"one\n\ntwo\nth\xffree\n", "a.txt, line 4 is not UTF-8: byte 0xff.*`encoding`"),
        ("a.txt", b"one\n\n\xe4\xb8\n", "line 3 is not UTF-8: byte 0xe4"),
        ("a.jsonl", b'{"text": "a"}\n{"text": "b}\n', "line 2 is not JSON: Unterminated .* 10"),
        ("a.jsonl", b'{"text": "a"}\n\n{"txt": "b"}', r"line 3: .* under 'text', got .* \[txt\]"),
        ("a.jsonl", b'{"text": "a"}\n{"text": 7}', r"line 2: .* got 7 under it.*text_key"),
        ("wiki_00", b'{"id": "1", "text": "a"}\n', "line 1 is an object of JSON. `format` 'jsonl'"),
        ("a.csv", b"text,label\na,1\n", "line 1 is of a table. Write its texts to a .jsonl file"),
        ("a.csv", b"\xef\xbb\xbftext,label\na,1\n", "line 1 is of a table. Write its texts to a"),
        ("a.jsonl", b'"a text"\n', "line 1: wanted an object .* got a str"),
        ("a.jsonl", b'{"text": "\xff"}\n', "line 1 is not UTF-8: byte 0xff"),
    ],
)
def test_damaged_input(tmp_path, name, content, message, slice_bytes):
    (tmp_path / name).write_bytes(content)
    message = f"(?s){message}"
    with pytest.raises(ValueError, match=message):
        read_all(tmp_path / name, slice_bytes)
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content))
    with pytest.raises(ValueError, match=message.replace("a.txt", "a.txt.gz")):
        read_all(tmp_path / f"{name}.gz", slice_bytes)


def test_a_named_format_is_believed(tmp_path):
    path = tmp_path / "wiki_00"
    path.write_text('{"text": "One. Two."}\n')
    assert read_all(path, format="jsonl") == [["One.", "Two."]]
    assert read_all(path, format="sentences") == [['{"text": "One. Two."}']]
    path.write_text("{ a brace\n")
    assert read_all(path) == [["{ a brace"]]


def test_a_document_that_is_not_utf8(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\ntwo\nth\xffree")
    with pytest.raises(ValueError, match="a.txt, line 3 is not UTF-8"):
        read_all(tmp_path, format="files")


@pytest.mark.parametrize(
    "encoding, text",
    [
        ("utf-8-sig", "\ufeff他来了。\n\u3000\n\n她走了。\n"),
        ("gb18030", "\ufeff他来了。\n\u3000\n\n她走了。\n"),
        ("shift_jis", "ソ表示\n\u3000\n雨\r\n"),
        ("cp1252", "déjà vu\n\xa0\n€ 5\n"),
        ("latin-1", "déjà\n\x85\nvu"),
        ("iso2022_jp", "雨です\n\n雪です\n"),
    ],
)
def test_encodings(tmp_path, encoding, text):
    """As a decoder of the whole file reads them, however the file is cut."""
    (tmp_path / "a.txt").write_bytes(text.encode(encoding.replace("-sig", "")))
    lines = [line.strip() for line in text.removeprefix("\ufeff").split("\n")]
    expected = [[line] for line in lines if line]
    for slice_bytes in range(1, 2 * len(text)):
        documents = read_all(tmp_path / "a.txt", slice_bytes, encoding=encoding)
        assert documents == expected, slice_bytes


@pytest.mark.parametrize(
    "options, message",
    [
        ({"encoding": "utf-16"}, "encoding='utf-16' cannot be read: .*byte 0x0a.*iconv"),
        ({"encoding": "utf-9"}, "encoding='utf-9' cannot be read: Python must know the encoding"),
        ({"encoding": "hex"}, "encoding='hex' cannot be read"),
        ({"errors": "ignore"}, "`errors` must be one of strict, replace, got 'ignore'"),
        ({"on_error": "warn"}, "`on_error` must be one of stop, skip, got 'warn'"),
        ({"format": "xml"}, "`format` must be one of auto, .* got 'xml'"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        InputOptions(**options)


FAULTY = {
    "a.txt": b"one\n\ntwo\nth\xffree\nfo\xfeur\n\nfive\n",
    "b.jsonl": b'{"text": "six."}\n{"text": "\xff"}\n{"text\n[1]\n{}\n{"text": "seven."}',
    "c.jsonl": b"[" * 100_000 + b"\n" + b"1" * 5000 + b"\n",
    "d.jsonl.gz": gzip.compress(b'{"text": "eight."}\n{"text": "nine."}\n')[:-4],
    "e.jsonl.gz": b"nine",
    "f.txt": b"ten\n",
}
FAULTS = """\
10 places of the input cannot be read:
{}/a.txt, line 4 is not UTF-8: byte 0xff at offset 11, invalid start byte.
{}/a.txt, line 5 is not UTF-8: byte 0xfe at offset 18, invalid start byte.
{}/b.jsonl, line 2 is not UTF-8: byte 0xff at offset 27, invalid start byte.
{}/b.jsonl, line 3 is not JSON: Unterminated string starting at (character 2).
{}/b.jsonl, line 4: wanted an object with a string under 'text', got a list.
{}/b.jsonl, line 5: wanted an object with a string under 'text', got an object with the keys [].
{}/c.jsonl, line 1 is not JSON: maximum recursion depth exceeded
{}/c.jsonl, line 2 is not JSON: Exceeds the limit (4300 digits)
{}/d.jsonl.gz cannot be unpacked: Compressed file ended before the end-of-stream marker was reached.
{}/e.jsonl.gz cannot be unpacked: Not a gzipped file (b'ni').
Correct them, or read the files with another `encoding`, `format` or `text_key`. `errors` \
'replace' puts U+FFFD in place of bad bytes. `on_error` 'skip' leaves out the documents"""


@pytest.fixture
def faulty(tmp_path):
    for name, content in FAULTY.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.mark.parametrize("slice_bytes", [1, 40, 1000])
def test_everything_that_cannot_be_read_is_listed(faulty, slice_bytes):
    documents, faults = read_with_faults(faulty, slice_bytes)
    found = str(faults.error(str(faulty))).splitlines()
    wanted = FAULTS.replace("{}", str(faulty)).splitlines()
    assert len(found) == len(wanted)
    for line, start in zip(found, wanted, strict=True):
        assert line.startswith(start)
    assert documents == [
        *(["one"], ["five"], ["six."], ["seven."], ["eight."], ["nine."], ["ten"]),
    ]
    # The lines 4 and 5 of a.txt are of one document.
    assert faults.documents == 9 and faults.replaced_texts == 0


def test_bytes_are_replaced(faulty):
    documents, faults = read_with_faults(faulty, errors="replace")
    assert documents[1] == ["two", "th\ufffdree", "fo\ufffdur"]
    assert ["\ufffd"] in documents
    assert faults.replaced_texts == 3 and faults.documents == 7
    (faulty / "g").write_bytes(b"One. Tw\xffo.\n\xff")
    documents, faults = read_with_faults(faulty / "g", format="files", errors="replace")
    assert documents == [["One.", "Tw\ufffdo.", "\ufffd"]] and faults.replaced_texts == 1


def test_long_lists_are_cut(tmp_path):
    for number in range(6):
        (tmp_path / f"{number}.jsonl").write_bytes(b'{"te\xffxt": ""}\n' * 7)
    (tmp_path / "0.jsonl").write_text(json.dumps({"k" * 900 + str(i): "" for i in range(30)}))
    _, faults = read_with_faults(tmp_path)
    assert len(faults) == faults.documents == 1 + 5 * 7
    first, *lines = str(faults.error(str(tmp_path))).splitlines()
    assert first == "36 places of the input cannot be read:"
    assert len(lines[0]) < 3000 and lines[0].endswith("kkk19, ... and 10 more].")
    assert all(line.count("is not UTF-8") for line in lines[1:20])
    assert lines[5].startswith(f"{tmp_path}/1.jsonl, line 5 is not UTF-8: byte 0xff at offset 60")
    assert lines[6].startswith(f"{tmp_path}/2.jsonl, line 1 is not UTF-8")
    assert lines[20] == "16 more" and len(lines) == 22


def test_input_that_shrinks(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(SENTENCES)
    (piece,) = plan_slices(*find_files(path), "auto", 1 << 20)
    before = hash_slice(piece)
    path.write_bytes(SENTENCES[:-3])
    assert hash_slice(piece) != before
    with pytest.raises(ValueError, match="a.txt ends at byte .* Let nothing write"):
        list(read_documents(piece, InputOptions(), Faults()))
