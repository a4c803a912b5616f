"""Texts of tables and their labels."""

import contextlib
from pathlib import Path

import pytest

from keras_bert_suite import read_table
from keras_bert_suite.data.readers.field_checks import CLASSES, NUMBERS, SETS, TAGS

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "data"


@pytest.fixture
def write(tmp_path):
    """Function: the content of a .tsv file -> its path."""

    def write_file(content):
        path = tmp_path / "a.tsv"
        path.write_text(content, "utf-8")
        return path

    return write_file


@pytest.mark.parametrize(
    ("part", "counts"),
    [("train", {"negative": 1190, "positive": 1210}), ("test", {"negative": 310, "positive": 290})],
)
def test_sentences_of_the_examples(part, counts):
    # The counts are those of examples/data/README.md.
    read = read_table(EXAMPLES / f"sentences_{part}.tsv", "sentence", "label")
    assert {name: read.y.count(name) for name in set(read.y)} == counts
    assert read.label_names == ["negative", "positive"]
    assert len(read) == len(read.x) == sum(counts.values())


def test_one_text_is_a_list_and_several_are_a_tuple(write):
    path = write("a\tb\tlabel\nx\ty\t2\nz\tw\t10\n")
    single, pairs = read_table(path, "a", "label"), read_table(path, ["b", "a"], "label")
    assert single.x == ["x", "z"] and single.columns == (["x", "z"],)
    assert pairs.x == pairs.columns == (["y", "w"], ["x", "z"])
    assert pairs.y == ["2", "10"] and pairs.label_names == ["2", "10"]
    assert len(single) == len(pairs) == 2 and pairs.locate(1) == f"{path}, line 3"
    first = pairs.take(1)
    assert (first.x, first.y, first.lines) == ((["y"], ["x"]), ["2"], [2])
    assert first.label_names == pairs.label_names and pairs.take(None) == pairs
    without = read_table(path, ["a"])
    assert without.x == ["x", "z"] and without.y is None and without.label_names is None


@pytest.mark.parametrize(
    ("problem_type", "labels", "names"),
    [
        (CLASSES, ["1", "2, 10"], ["1", "2, 10"]),
        (SETS, [["1"], ["2", "10"]], ["1", "2", "10"]),
        (None, ["1", "2, 10"], None),
    ],
)
def test_kinds_of_labels(write, problem_type, labels, names):
    read = read_table(write("text\tlabel\nx\t1\ny\t2, 10\n"), "text", "label", problem_type)
    assert (read.x, read.y, read.label_names) == (["x", "y"], labels, names)


def test_numbers_and_empty_sets(write):
    path = write("text\tlabel\nx\t1e-2\ny\t-3\n")
    read = read_table(path, "text", "label", NUMBERS)
    assert read.y == [0.01, -3.0] and read.label_names == ["label"]
    path = write("x\t \ny\ta;b;\n")
    read = read_table(path, "1", "2", SETS, label_separator=";", header=False)
    assert read.y == [[], ["a", "b"]] and read.label_names == ["a", "b"]
    path = write("4\tx\n")
    assert read_table(path, "2", "1", NUMBERS, header=False).label_names == ["score"]


def test_the_print_is_short(write):
    path = write("a\tb\tlabel\n" + f"{'x' * 5000}\ty\tno\n" * 3 + "\ty\tno\n")
    read = read_table(path, ["a", "b"], "label", errors="skip")
    assert repr(read) == (
        f"Examples({str(path)!r}, 3 rows, 2 columns of x, 1 label names (no), 1 left_out, "
        f"first row '{'x' * 56}..., 'y' -> 'no')"
    )
    assert "->" not in repr(read_table(path, "b"))


def test_spaces_around_a_class_make_no_other_class(write):
    read = read_table(write("text\tlabel\n x\ta \ny\ta\nz\t b c\n"), "text", "label")
    assert (read.x, read.y, read.label_names) == ([" x", "y", "z"], ["a", "a", "b c"], ["a", "b c"])


@pytest.mark.parametrize(
    ("labels", "separator", "warned"),
    [
        (["a;b", "b"], ",", "label_separator=';'"),
        (["好；坏", "坏"], ",", "label_separator='；'"),
        (["a,b", "b"], ";", "label_separator=','"),
        (["a b", "b"], ",", "label_separator=' '"),
        (["a;b", "b,c"], ",", None),  # Some rows have two labels.
        (["a", "b c"], ",", None),
    ],
)
def test_another_separator_of_labels(write, labels, separator, warned):
    path = write("".join(f"x\t{label}\n" for label in labels))
    warns = pytest.warns(UserWarning, match=warned) if warned else contextlib.nullcontext()
    with warns:
        read_table(path, "1", "2", SETS, label_separator=separator, header=False)


def test_columns_beside_the_texts(write):
    rows = "a\t1.5\ttrue\tx\ty\nb\t\tFALSE\t\tn\nc\t2\t\t7\ty\n"
    path = write(f"text\tprice\tnew\tshop\tlabel\n{rows}")
    train = read_table(path, "text", "label", features=["shop", "price", "new"])
    values = {"shop": ["x", None, "7"], "price": [1.5, None, 2.0], "new": [True, False, None]}
    assert train.x == {"text": ["a", "b", "c"], **values}
    assert train.features == {"shop": "category", "price": "number", "new": "boolean"}
    assert (train.y, train.columns, len(train)) == (["y", "n", "y"], (["a", "b", "c"],), 3)
    known = {"price": {"kind": "category"}, "new": "boolean", "shop": ["x", "7"]}
    again = read_table(path, "text", "label", features=known, left_out_labels=["n"])
    assert again.x == {
        "text": ["a", "c"], "price": ["1.5", "2"], "new": [True, None], "shop": ["x", "7"]
    }  # fmt: skip
    plain = read_table(write(rows), 1, 5, header=False, features={2: "number"})
    assert plain.x == {"column_1": ["a", "b", "c"], "column_2": values["price"]}
    assert plain.features == {"column_2": "number"}


def test_an_argument_of_pandas(write):
    with pytest.raises(TypeError, match="has no argument 'sep'. Did you mean 'delimiter'"):
        read_table(write("text\na\n"), "text", sep=";")


def test_missing_cells_of_columns(write):
    rows = ["a\t1\ttrue\tNA", "b\tNaN\tnull\tSE", "c\tN/A\tfalse\tnan", "d\t4\t<NA>\t"]
    path = write("text\tprice\tnew\tland\n" + "".join(f"{row}\n" for row in rows))
    train = read_table(path, "text", features=["price", "new", "land"])
    assert train.features == {"price": "number", "new": "boolean", "land": "category"}
    assert train.x["price"] == [1.0, None, None, 4.0]
    assert train.x["new"] == [True, None, False, None]
    assert train.x["land"] == ["NA", "SE", "nan", None]
    path = write("text\tland\na\tNA\nb\t\n")
    namibia = read_table(path, "text", features=["land"])
    assert namibia.features == {"land": "category"} and namibia.x["land"] == ["NA", None]
    path = write("text\tprice\n" + "".join(f"x\t{price}\n" for price in (1, "?", 2.5, "3 kg", 4)))
    warned = r"has 3 numbers, and 2 other fields: '\?' \(.*line 3\), '3 kg' \(.*line 5\)"
    with pytest.warns(UserWarning, match=warned):
        assert read_table(path, "text", features=["price"]).features == {"price": "category"}
    read_table(path, "text", features={"price": "category"})
    with pytest.raises(ValueError, match=r"is a number, got '\?'"):
        read_table(path, "text", features={"price": "number"})
    skipped = read_table(path, "text", features={"price": "number"}, errors="skip")
    assert skipped.x["price"] == [1.0, 2.5, 4.0]


@pytest.mark.parametrize(
    ("content", "arguments", "error"),
    [
        ("x\ta\n", {"features": {"label": "date"}}, "kind of the column 'label' must be one of n"),
        ("x\ta\n", {"features": ["label"]}, "different columns, got text, label, label"),
        ("x\ta\n \tb\n\tb\n", {}, "line 3: the text in the column 'text' is missing, also in "),
        ("x\ta\ny\t \n", {}, "line 3: the label in the column 'label' is missing. Add"),
        ("x\ta\ny\t\n", {"problem_type": None}, "line 3: the text in the column 'label'"),
        ("x\t1\ny\ta\n", {"problem_type": NUMBERS}, "line 3: the label in the column .* is 'a'"),
        ("x\tnan\n", {"problem_type": NUMBERS}, "line 2: .* is 'nan'. Wanted a finite number"),
        ("x\ta\n", {"label_column": "text"}, "different columns, got text, text"),
        ("x\ta\n", {"problem_type": "classes"}, "problem_type must be .* got 'classes'"),
        ("x\ta\n", {"label_column": ["label"]}, "got .'label'.. For a column of 0 and 1"),
        ("x\ta\n", {"label_separator": ""}, "label_separator must not be empty"),
        ("x\ta\n", {"label_names": "ab"}, "must be a list of str, got 'ab'.* pass train.label_na"),
        ("x\ta\n", {"label_names": [0, "a"]}, r"must be a list of str, got \[0, 'a'\]. For a dev"),
        (
            *("[]\t[]\n", {"problem_type": TAGS, "features": ["label"], "label_column": None}),
            "Features are for texts, not for words with tags: label",
        ),
    ],
)  # fmt: skip
def test_wrong_files_and_arguments(write, content, arguments, error):
    path = write(f"text\tlabel\n{content}")
    with pytest.raises(ValueError, match=error):
        read_table(path, "text", **{"label_column": "label", **arguments})


def test_words_with_tags_are_one_column(write):
    path = write('a\tb\ttags\n["x"]\t["y"]\t["O"]\n')
    with pytest.raises(ValueError, match="Wanted one column of lists of words, got b, a."):
        read_table(path, ["b", "a"], "tags", TAGS)


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["b", "a", "b"], ["a", "b"]),
        (["10", "9", "-1"], ["-1", "9", "10"]),
        (["10", "9", "x"], ["10", "9", "x"]),
    ],
)
def test_label_names(write, labels, names):
    rows = "".join(f"x\t{label}\n" for label in labels)
    assert read_table(write(f"text\tlabel\n{rows}"), "text", "label").label_names == names
