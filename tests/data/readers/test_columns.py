"""Reading TSV and CSV files."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_suite import read_table
from keras_bert_suite.data.readers.columns import read_columns


@pytest.fixture
def write(tmp_path):
    """Function: file name and content, bytes or str -> path."""

    def write_file(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write_file


def test_tsv_has_no_quotes_and_ends_lines_at_line_feeds(write):
    path = write("a.tsv", '\ufefftext\tid\tlabel\r\n"one\ttwo\x85\u2028"\tyes\r\n\t\'\tno')
    table = read_columns(path, ["label", "text", "id"])
    assert table.x == (["yes", "no"], ['"one', ""], ['two\x85\u2028"', "'"])
    assert table.locate(1) == f"{path}, line 3"


def test_csv_counts_lines_within_quotes(write):
    path = write("a.csv", 'text,label\n"two\nlines, ""quoted""",yes\nx,no\n\n\n')
    table = read_columns(path, ["text", "label"])
    assert table.x[0] == ['two\nlines, "quoted"', "x"]
    assert table.lines == [2, 4]


FIELDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)


@given(st.lists(st.tuples(FIELDS, FIELDS), min_size=1))
def test_csv_reads_what_python_writes(tmp_path_factory, rows):
    stream = io.StringIO(newline="")
    csv.writer(stream, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *rows])
    path = tmp_path_factory.getbasetemp() / "written.csv"
    path.write_bytes(stream.getvalue().encode())
    assert list(zip(*read_columns(path, ["a", "b"]).x, strict=True)) == rows


def test_a_field_may_be_long(write):
    limit = csv.field_size_limit()
    word = "a" * 1_000_000
    for name, separator in (("long.csv", ","), ("long.tsv", "\t")):
        path = write(name, f"text{separator}label\n{word}{separator}yes\n")
        assert read_columns(path, ["text"]).x == ([word],)
    assert csv.field_size_limit() == limit


def test_other_encodings(write):
    path = write("a.tsv", "text\nnaïve\n".encode("utf-16"))
    assert read_columns(path, ["text"], encoding="utf-16").x == (["naïve"],)


def test_a_single_column_may_hold_empty_lines(write):
    for name in ("a.tsv", "a.csv"):
        table = read_columns(write(name, "text\n\nx\n\n"), ["text"])
        assert table.x == (["", "x", ""],)


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
        ("a.tsv", "text\tlabel\nx\ty\ntext\tlabel\n", "line 3: the line of names .* once more"),
        ("a.csv", "text,label\nx,y\n\nz,y\n", "line 3: .* is empty"),
        ("a.csv", 'text,label\nx,y\n"z,y\nx,y\n', "line 3: unexpected end of data"),
        ("a.tsv", b"text\tlabel\nna\xefve\ty\n", "line 2: .* byte 0xef in position 13"),
        ("a.tsv", "text\n".encode("utf-16"), "byte 0xff in position 0"),
        ("a.txt", "text\n", "neither a .tsv nor a .csv file"),
        ("train.data", "text\tlabel\nx\ty\n", r"Name its delimiter, such as delimiter='\\t'"),
        ("a.xlsx", "PK", "Save it as CSV, or pass the rows of pandas.read_excel"),
        ("a.csv", "text;label\nx, y;z\n", "Name the delimiter, which seems to be ';'"),
        ("a.csv", '"text";"label"\nx;z\n', "to have ';' between them: pass delimiter=';'"),
        ("a.tsv", "text,label\nx,y\n", "seems to be ','"),
        ("a.csv", "label, text\nx, y\n", "sep=',', skipinitialspace=True"),
        ("a.csv", '"label", "text"\n"x", "y"\n', "sep=',', skipinitialspace=True"),
        ("a.csv", "sep=;\ntext;label\nx;y\n", "Remove it, and pass delimiter=';'"),
        ("a.tsv", "I loved it\tpos\n", "header=False or --noheader, and numbers of columns"),
    ],
)  # fmt: skip
def test_bad_files(write, name, content, message):
    path = write(name, content)
    with pytest.raises(ValueError, match=message) as raised:
        read_columns(path, ["text"])
    assert path in str(raised.value)


def test_columns_by_number(write):
    path = write("a.tsv", "I loved it\tpos\n\n")
    table = read_columns(path, ["2", "1"], header=False)
    assert table.x == (["pos"], ["I loved it"])
    assert table.locate(0) == f"{path}, line 1"
    assert read_columns(write("mac.tsv", "I loved it\tpos\rbad\tneg\r"), ["2"], header=False).x == (
        ["pos", "neg"],
    )
    assert read_table(path, 1, 2, header=False) == read_table(path, ["1"], "2", header=False)
    for column in ("0", "3", "text", "-1", "\u00b2"):
        with pytest.raises(ValueError, match="by its number, from 1 to 2, got "):
            read_columns(path, [column], header=False)
    path = write("b.tsv", "a\tb\nc\n")
    with pytest.raises(ValueError, match="line 2: wanted the 2 fields of the first line, and the"):
        read_columns(path, ["1"], header=False)
    with pytest.raises(ValueError, match="is empty .* Wanted columns 1"):
        read_columns(write("c.tsv", ""), ["1"], header=False)


def test_other_delimiters(write):
    path = write("a.txt", 'text;label\n"one; ""two""";yes\n')
    assert read_columns(path, ["text"], delimiter=";").x == (['one; "two"'],)
    path = write("a.csv", 'text\tlabel\n"one\tyes\n')
    assert read_columns(path, ["text"], delimiter="\t").x == (['"one'],)
    for delimiter in ("", ";;", '"', "\n"):
        with pytest.raises(ValueError, match="one character, no quote"):
            read_columns(path, ["text"], delimiter=delimiter)


def test_bad_paths(tmp_path, write):
    with pytest.raises(FileNotFoundError):
        read_columns(tmp_path / "absent.tsv", ["text"])
    with pytest.raises(ValueError, match="unknown encoding: utf-9"):
        read_columns(write("a.tsv", "text\nx\n"), ["text"], encoding="utf-9")


def test_broken_rows_are_left_out_and_counted(write):
    path = write("a.tsv", "text\tlabel\nx\ty\nz\n\ta\tb\n")
    table = read_columns(path, ["text"], leave_out_broken=True)
    assert table.x == (["x"],) and table.lines == [2]
    assert table.left_out == {"another number of fields than the first line": [3, 4]}
    path = write("b.tsv", "text\tlabel\nx\ty\n")
    assert read_columns(path, ["text"], leave_out_broken=True).left_out == {}
