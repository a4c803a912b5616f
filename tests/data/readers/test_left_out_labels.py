"""Labels that mean that a row has none. The oracle is a filter of pandas."""

import contextlib

import pandas
import pytest

from keras_bert_suite import read_rankings, read_rows, read_table

SETS, CLASSES = "multi_label_classification", "single_label_classification"

TABLE = pandas.DataFrame(
    {
        "premise": [f"p{i}" for i in range(6)],
        "hypothesis": [f"h{i}" for i in range(6)],
        "gold": ["-", "neutral", "entailment", "-", "neutral", "-1"],
        "score": ["1", "-1", "0.5", "-1", "2", "3"],
    }
)


@pytest.fixture(params=["csv", "jsonl", "rows"])
def read(request, tmp_path):
    """Function: arguments of `read_table` without the path -> `Examples`; and the first line."""
    path = tmp_path / f"table.{request.param}"
    if request.param == "csv":
        TABLE.to_csv(path, index=False)
    else:
        TABLE.to_json(path, orient="records", lines=True)
    source, read = (TABLE, read_rows) if request.param == "rows" else (path, read_table)
    first = {"csv": 2, "jsonl": 1, "rows": 0}[request.param]
    return lambda *args, **kwargs: read(source, *args, **kwargs), first


@pytest.mark.parametrize("left_out", [["-"], ["-", -1], ("-1",), ["maybe"]])
def test_rows_are_left_out_and_counted(read, left_out):
    read, first = read
    found = read(["premise", "hypothesis"], "gold", left_out_labels=left_out)
    is_kept = ~TABLE["gold"].isin(list(map(str, left_out)))
    kept = TABLE[is_kept]
    assert found.x == (kept["premise"].tolist(), kept["hypothesis"].tolist())
    assert found.y == kept["gold"].tolist() and found.label_names == sorted({*found.y})
    assert not found.lines or found.lines == (kept.index + first).tolist()
    lines = sorted(line for lines in found.left_out.values() for line in lines)
    assert lines == (TABLE[~is_kept].index + first).tolist()


def test_every_kind_of_labels(read):
    read, first = read
    numbers = read("premise", "score", "regression", left_out_labels=[-1])
    assert numbers.y == [1.0, 0.5, 2.0, 3.0]
    assert numbers.left_out == {"the label '-1'": [1 + first, 3 + first]}
    assert read("premise", "gold", SETS, left_out_labels=["-", "-1"]).label_names == [
        "entailment",
        "neutral",
    ]
    assert len(read("premise", "gold", None, left_out_labels=["-"])) == 4
    bits = read("premise", problem_type="regression", label_columns=["score"], left_out_labels=[-1])
    assert bits.y == [[1.0], [0.5], [2.0], [3.0]]
    with pytest.raises(ValueError, match="left_out_labels must be a list of labels, got '-'"):
        read("premise", "gold", left_out_labels="-")
    with pytest.raises(ValueError, match="left_out_labels needs a label_column"):
        read("premise", left_out_labels=["-"])


def test_unscored_rows_of_0_and_1(tmp_path):
    """As in the test labels of Jigsaw's toxic comments."""
    path = tmp_path / "a.csv"
    path.write_text("text,toxic,insult\na,-1,-1\nb,1,0\nc,0,0\n")
    columns = {"problem_type": SETS, "label_columns": ["toxic", "insult"]}
    with pytest.raises(ValueError, match="line 2: the column 'toxic' has '-1'. .*left_out_labels"):
        read_table(path, "text", **columns)
    read = read_table(path, "text", **columns, left_out_labels=[-1])
    assert (read.x, read.y, read.lines) == (["b", "c"], [["toxic"], []], [3, 4])


@pytest.mark.parametrize(
    ("fields", "problem_type", "left_out", "kept"),
    [
        (["joy,-", "-", "joy,love"], SETS, ["-"], [["joy", "love"]]),
        (["['-']", "[]", "['joy', '-']"], SETS, ["-"], [[]]),
        (["a,b", "a"], SETS, ["a,b"], [["a", "b"], ["a"]]),
        (["-1.0", "1.0", "-1"], "regression", [-1], [1.0]),
        (["-1", "1.0", "-1.0"], "regression", ["-1.0"], [1.0]),
        (["nan", "1.0"], "regression", ["nan"], [1.0]),
        (["['-1']", "['O']"], "token_classification", [-1], [["O"]]),
        (["[-]", "-"], None, ["-"], ["[-]"]),
    ],
)
def test_labels_are_compared_as_they_are_read(tmp_path, fields, problem_type, left_out, kept):
    path = tmp_path / "a.tsv"
    text = "['x']" if problem_type == "token_classification" else "x"
    path.write_text("text\tlabel\n" + "".join(f"{text}\t{field}\n" for field in fields))
    assert read_table(path, "text", "label", problem_type, left_out_labels=left_out).y == kept


@pytest.mark.parametrize("problem_type", [CLASSES, SETS, "regression"])
def test_no_label_columns_are_no_unlabelled_file(problem_type):
    with pytest.raises(ValueError, match=r"a list of columns, at least one, .*got \[\] and None"):
        read_rows([{"text": "a"}], "text", problem_type=problem_type, label_columns=[])


def test_an_error_names_the_row_of_the_user():
    rows = [{"q": "a", "t": "b", "l": -1}, {"q": "a", "t": "", "l": 1}]
    with pytest.raises(ValueError, match="rows, row 1: the text in the column 't' is missing"):
        read_rankings(rows, "q", "t", "l", left_out_labels=[-1])
    rows[1]["t"] = "c"
    assert read_rankings(rows, "q", "t", "l", left_out_labels=[-1]).y == [[1.0]]


@pytest.mark.parametrize(
    ("labels", "warned"),
    [
        (["-", "neutral", "-"], "line 2: the label '-' is read as a class, in 2 of 3 rows"),
        (
            ["0", "-1", "1"],
            "line 3: the label '-1' .* left_out_labels=..-1'., --left_out_labels=-1",
        ),
        (["-1", "-1"], "line 2: the label '-1' is read as a class, in 2 of 2 rows"),
        (["a", "nan"], "line 3: the label 'nan' is read as a class"),
        (["+", "-"], None),
        (["1", "-1"], None),
        (["-2", "-1", "0", "1", "2"], None),
        (["none", "other"], None),
    ],
)
@pytest.mark.parametrize("problem_type", [CLASSES, SETS])
def test_a_label_that_may_be_none(tmp_path, labels, warned, problem_type):
    path = tmp_path / "table.tsv"
    path.write_text("text\tlabel\n" + "".join(f"x\t{label}\n" for label in labels))
    warns = pytest.warns(UserWarning, match=warned) if warned else contextlib.nullcontext()
    with warns as found:
        read_table(path, "text", "label", problem_type)
    assert not warned or len(found) == 1
    read_table(path, "text", "label", problem_type, left_out_labels=[])


@pytest.mark.parametrize(
    ("labels", "warned"),
    [
        (["1", "0", "１"], "line 4: the labels '1' and '１' are read as two .* 1 of 2 labels"),
        (["ＩＴ", "IT", "it"], "line 4: the labels 'IT' and 'it' are read as two classes"),
        (["好", "坏", "好评"], None),
    ],
)
def test_labels_that_differ_in_width_or_case_only(tmp_path, labels, warned):
    path = tmp_path / "table.tsv"
    path.write_text("text\tlabel\n" + "".join(f"x\t{label}\n" for label in labels), "utf-8")
    warns = pytest.warns(UserWarning, match=warned) if warned else contextlib.nullcontext()
    with warns:
        assert read_table(path, "text", "label").y == labels
