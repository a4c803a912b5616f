"""Reading TSV and CSV files."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_suite.data.tables import list_label_names, read_lines, read_table

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "data"


@pytest.fixture
def write(tmp_path):
    """Function: file name and content, bytes or str -> path."""

    def write_file(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write_file


@pytest.mark.parametrize(
    ("part", "counts"),
    [("train", {"negative": 1190, "positive": 1210}), ("test", {"negative": 310, "positive": 290})],
)
def test_sentences_of_the_examples(part, counts):
    # The counts are those of examples/data/README.md.
    table = read_table(EXAMPLES / f"sentences_{part}.tsv", ["sentence", "label"])
    labels = table.columns["label"]
    assert {name: labels.count(name) for name in set(labels)} == counts
    assert len(table) == len(table.columns["sentence"]) == sum(counts.values())


def test_tsv_has_no_quotes_and_ends_lines_at_line_feeds(write):
    path = write("a.tsv", '\ufefftext\tid\tlabel\r\n"one\ttwo\x85\u2028"\tyes\r\n\t\'\tno')
    table = read_table(path, ["label", "text", "id"])
    assert table.columns == {
        "label": ["yes", "no"],
        "text": ['"one', ""],
        "id": ['two\x85\u2028"', "'"],
    }
    assert table.locate(1) == f"{path}, line 3"


def test_csv_counts_lines_within_quotes(write):
    path = write("a.csv", 'text,label\n"two\nlines, ""quoted""",yes\nx,no\n\n\n')
    table = read_table(path, ["text", "label"])
    assert table.columns["text"] == ['two\nlines, "quoted"', "x"]
    assert table.line_numbers == [2, 4]


FIELDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)


@given(st.lists(st.tuples(FIELDS, FIELDS), min_size=1))
def test_csv_reads_what_python_writes(tmp_path_factory, rows):
    stream = io.StringIO(newline="")
    csv.writer(stream, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *rows])
    path = tmp_path_factory.getbasetemp() / "written.csv"
    path.write_bytes(stream.getvalue().encode())
    columns = read_table(path, ["a", "b"]).columns
    assert list(zip(columns["a"], columns["b"], strict=True)) == rows


def test_a_field_may_be_long(write):
    limit = csv.field_size_limit()
    word = "a" * 1_000_000
    for name, separator in (("long.csv", ","), ("long.tsv", "\t")):
        path = write(name, f"text{separator}label\n{word}{separator}yes\n")
        assert read_table(path, ["text"]).columns == {"text": [word]}
    assert csv.field_size_limit() == limit


def test_other_encodings(write):
    path = write("a.tsv", "text\nnaïve\n".encode("utf-16"))
    assert read_table(path, ["text"], encoding="utf-16").columns == {"text": ["naïve"]}


def test_a_single_column_may_hold_empty_lines(write):
    for name in ("a.tsv", "a.csv"):
        table = read_table(write(name, "text\n\nx\n\n"), ["text"])
        assert table.columns["text"] == ["", "x", ""]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "", "a.tsv is empty"),
        ("a.csv", "", "a.csv is empty"),
        ("a.tsv", "\ntext\tlabel\n", "begins with an empty line"),
        ("a.tsv", "text\tlabel\n", "no row below it"),
        ("a.tsv", "sentence\tlabel\nx\ty\n", "no column 'text'. Its columns are 'sentence',"),
        ("a.csv", "sentence\tlabel\nx\ty\n", r"are 'sentence\\tlabel'"),
        ("a.tsv", f"{'x' * 2000}\tlabel\n", r"Its columns are 'x{999}\.\.\. \(2 columns"),
        ("a.tsv", "text\ttext\tlabel\nx\ty\tz\n", "two columns 'text'"),
        ("a.tsv", "text\tlabel\nx\ty\nz\n", "line 3: wanted the 2 fields .* has 1 of them"),
        ("a.tsv", "text\tlabel\nx\ty\tz\n", "line 2: .* has 3 of them"),
        ("a.tsv", "text\tlabel\nx\ty\n\nz\ty\n", "line 3: .* is empty"),
        ("a.csv", "text,label\nx,y\n\nz,y\n", "line 3: .* is empty"),
        ("a.csv", 'text,label\nx,y\n"z,y\nx,y\n', "line 3: unexpected end of data"),
        ("a.tsv", b"text\tlabel\nna\xefve\ty\n", "line 2: .* byte 0xef in position 13"),
        ("a.tsv", "text\n".encode("utf-16"), "byte 0xff in position 0"),
        ("a.txt", "text\n", "neither a .tsv nor a .csv file"),
        ("a.tsv", "I loved it\tpos\n", "header=False or --noheader, and numbers of columns"),
    ],
)  # fmt: skip
def test_bad_files(write, name, content, message):
    path = write(name, content)
    with pytest.raises(ValueError, match=message) as raised:
        read_table(path, ["text"])
    assert path in str(raised.value)


def test_columns_by_number(write):
    path = write("a.tsv", "I loved it\tpos\n\n")
    table = read_table(path, ["2", "1"], header=False)
    assert table.columns == {"2": ["pos"], "1": ["I loved it"]}
    assert table.locate(0) == f"{path}, line 1"
    for column in ("0", "3", "text", "-1", "\u00b2"):
        with pytest.raises(ValueError, match="by its number, from 1 to 2, got "):
            read_table(path, [column], header=False)
    path = write("b.tsv", "a\tb\nc\n")
    with pytest.raises(ValueError, match="line 2: wanted the 2 fields of the first line, and the"):
        read_table(path, ["1"], header=False)
    with pytest.raises(ValueError, match="is empty .* Wanted columns 1"):
        read_table(write("c.tsv", ""), ["1"], header=False)


def test_other_delimiters(write):
    path = write("a.txt", 'text;label\n"one; ""two""";yes\n')
    assert read_table(path, ["text"], delimiter=";").columns == {"text": ['one; "two"']}
    path = write("a.csv", 'text\tlabel\n"one\tyes\n')
    assert read_table(path, ["text"], delimiter="\t").columns == {"text": ['"one']}
    for delimiter in ("", ";;", '"', "\n"):
        with pytest.raises(ValueError, match="one character, no quote"):
            read_table(path, ["text"], delimiter=delimiter)


def test_bad_paths(tmp_path, write):
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "absent.tsv", ["text"])
    with pytest.raises(ValueError, match="unknown encoding: utf-9"):
        read_table(write("a.tsv", "text\nx\n"), ["text"], encoding="utf-9")


def test_lines(write, monkeypatch):
    assert read_lines(write("a.txt", "one\r\n\n two\ttabs \nlast")) == [
        "one",
        "",
        " two\ttabs ",
        "last",
    ]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("é\n".encode())))
    assert read_lines("-") == ["é"]
    with pytest.raises(ValueError, match="b.txt is empty"):
        read_lines(write("b.txt", ""))


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["b", "a", "b"], ["a", "b"]),
        (["10", "9", "-1"], ["-1", "9", "10"]),
        (["10", "9", "x"], ["10", "9", "x"]),
    ],
)
def test_label_names(labels, names):
    assert list_label_names(labels) == names
