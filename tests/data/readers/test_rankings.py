import pytest

from keras_bert_suite.heads.rankings.reader import read_rankings

TABLE = "query\ttitle\tclicked\na\tb\t0\nc\td\t1\na\te\t2.5\n"


def test_the_rows_of_a_query_are_one_list(tmp_path):
    (tmp_path / "clicks.tsv").write_text(TABLE)
    read = read_rankings(tmp_path / "clicks.tsv", text_column="title", label_column="clicked")
    assert read.x == (["a", "c"], [["b", "e"], ["d"]]) and read.y == [[0.0, 2.5], [1.0]]
    assert read.lines == [2, 3] and read.label_names is None and len(read) == 2
    (tmp_path / "clicks.csv").write_text(TABLE.replace("\t", ";").partition("\n")[2])
    again = read_rankings(tmp_path / "clicks.csv", "1", "2", "3", delimiter=";", header=False)
    assert (again.x, again.y, again.lines) == (read.x, read.y, [1, 2])


def test_json_lines_and_rows_in_memory(tmp_path):
    rows = [("a", "b", 0), ("c", "d", 1), (" a\u3000", "e", 2.5)]
    rows = [dict(zip(("query", "text", "label"), row, strict=True)) for row in rows]
    lines = "\n".join(str(row).replace("'", '"') for row in rows)
    (tmp_path / "clicks.jsonl").write_text(lines)
    for source in (tmp_path / "clicks.jsonl", rows):
        read = read_rankings(source)
        assert read.x == (["a", "c"], [["b", "e"], ["d"]]) and read.y == [[0.0, 2.5], [1.0]]


@pytest.mark.parametrize(
    ("row", "message"),
    [("a\tf\t-1", "line 5: the label is -1, wanted a relevance of at least 0"),
     ("a\tf\tyes", "line 5: the label in the column 'clicked' is 'yes'"),
     ("a\t\t1", "line 5: the text in the column 'title' is missing")],
)  # fmt: skip
def test_wrong_rows(row, message, tmp_path):
    (tmp_path / "clicks.tsv").write_text(f"{TABLE}{row}\n")
    with pytest.raises(ValueError, match=message):
        read_rankings(tmp_path / "clicks.tsv", text_column="title", label_column="clicked")
