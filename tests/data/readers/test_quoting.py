"""Quotes around the fields of tables. The oracles are pandas and csv."""

import contextlib
import csv

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_suite import read_rankings, read_swag, read_table
from keras_bert_suite.data.readers.columns import read_columns

TEXTS = ['He said "hi"', "plain", "a\tb, c", 'two\nlines\r\n"', '"', '""', "\x02 x", " good "]
FIELDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)


@pytest.mark.parametrize("writer_quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize("delimiter", ["\t", ",", ";", "\x01", "\x02"])
@pytest.mark.parametrize("suffix", ["tsv", "csv", "txt"])
def test_what_pandas_writes(tmp_path, suffix, delimiter, writer_quoting):
    path = tmp_path / f"table.{suffix}"
    table = pandas.DataFrame({"text": TEXTS, "label": list("abababab")})
    table.to_csv(path, sep=delimiter, index=False, quoting=writer_quoting)
    arguments = {"delimiter": delimiter, "quoting": csv.QUOTE_MINIMAL}
    read = read_table(path, "text", "label", **arguments)
    assert read.x == pandas.read_csv(path, sep=delimiter)["text"].tolist() == TEXTS
    assert read.y == table["label"].tolist()


@given(st.lists(st.tuples(FIELDS, FIELDS), min_size=1))
def test_what_csv_writes_with_tabs(tmp_path_factory, rows):
    path = tmp_path_factory.getbasetemp() / "written.tsv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, "excel-tab", quoting=csv.QUOTE_ALL).writerows([("a", "b"), *rows])
    columns = read_columns(path, ["a", "b"], quoting=csv.QUOTE_MINIMAL).x
    assert list(zip(*columns, strict=True)) == rows


@pytest.mark.parametrize("delimiter", ["\t", ",", "\x02"])
def test_quotes_without_a_meaning(tmp_path, delimiter):
    texts = ['5" screen', '"', '"a "" b"', '"c', "d"]
    path = tmp_path / "table.csv"
    path.write_text("".join(f"{text}{delimiter}x\n" for text in ["text", *texts]))
    arguments = {"delimiter": delimiter, "quoting": csv.QUOTE_NONE}
    expected = pandas.read_csv(path, sep=delimiter, quoting=csv.QUOTE_NONE)
    assert read_table(path, "text", **arguments).x == expected["text"].tolist() == texts


@pytest.mark.parametrize(
    ("texts", "warned"),
    [
        (['"He said ""hi"""', "plain"], "line 2: quotes .* and of 1 fields of 2. .*--quoting min"),
        (["plain", '"a ""b"" c"', '"""d"""'], "line 3: quotes .* and of 2 fields of 3"),
        (['"good"', '"bad"'], "line 2: quotes are read .* and of 2 fields of 2"),
        (['"good"', "bad"], None),  # A title, perhaps.
        (['"He" and "she"', '5" by 3"', '"', '"a', 'b""'], None),
    ],
)
def test_a_tsv_that_seems_to_be_quoted(tmp_path, texts, warned):
    path = tmp_path / "table.tsv"
    path.write_text("".join(f"{text}\tx\n" for text in ["text", *texts]))
    warns = pytest.warns(UserWarning, match=warned) if warned else contextlib.nullcontext()
    with warns as found:
        assert read_table(path, "text").x == texts
    assert not warned or len(found) == 1
    assert read_table(path, "text", quoting=csv.QUOTE_NONE).x == texts


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ('"text"\t"label"\nx\ty\n', {}, "Its names are in quotes: pass quoting=csv.QUOTE_MINIMAL"),
        ('text\tlabel\n"a\tb"\ty\n', {}, "has 3 of them. Correct it. If quotes hold a '.t' or a"),
        ('text\tlabel\n"a\nb"\ty\n', {}, "has 1 of them. Correct it. If quotes hold a '.t' or a"),
        ("text\tlabel\na\tb\ty\n", {}, r"has 3 of them. Correct it\. errors="),
        ("text\tlabel\nx\ty\n", {"quoting": True}, "csv.QUOTE_NONE or None, got True"),
        ("text\tlabel\nx\ty\n", {"quoting": csv.QUOTE_NONNUMERIC}, "or None, got 2"),
    ],
)
def test_messages_of_a_tsv(tmp_path, content, arguments, message):
    (tmp_path / "a.tsv").write_text(content)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "a.tsv", "text", **arguments)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            '"text"\t"label"\nx\ty\n',
            "pass delimiter='.t', and quoting=csv.QUOTE_MINIMAL, --quoting",
        ),
        ('text\tlabel\n"x"\t"y"\n', "seems to be '.t': pass delimiter='.t'"),
        ("text\x02label\nx\x02y\n", r"seems to be '.x02': pass delimiter='.x02'"),
        ("text|label\nx|y\n", "seems to be '|': pass delimiter='|'"),
        ('text,label\n"x" y,z\n', "If quotes have no meaning, pass quoting=csv.QUOTE_NONE"),
    ],
)
def test_messages_of_a_csv(tmp_path, content, message):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(ValueError, match=message.replace("|", "[|]")):
        read_table(tmp_path / "a.csv", "text")


def test_every_reader_of_tables(tmp_path):
    clicks = pandas.DataFrame({"query": ['"a"', '"a"'], "text": ["b", 'c "d"'], "label": [0, 1]})
    clicks.to_csv(tmp_path / "clicks.tsv", sep="\t", index=False)
    read = read_rankings(tmp_path / "clicks.tsv", quoting=csv.QUOTE_MINIMAL)
    assert read.x == (['"a"'], [["b", 'c "d"']])
    endings = {f"ending{i}": ['x "y"'] for i in range(4)}
    swag = pandas.DataFrame({"sent1": ["a"], "sent2": ["b"], **endings, "label": [1]})
    swag.to_csv(tmp_path / "swag.tsv", sep="\t", index=False)
    read = read_swag(tmp_path / "swag.tsv", quoting=csv.QUOTE_MINIMAL)
    assert read.x == (["a"], [['b x "y"'] * 4])
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    with pytest.raises(ValueError, match="need no quoting"):
        read_table(tmp_path / "a.jsonl", "text", quoting=csv.QUOTE_NONE)
