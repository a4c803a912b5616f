"""Lists written as text in tables, and 0/1 columns. The oracles are json, ast, NumPy and pandas."""

import ast
import contextlib
import json

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_suite import read_rows, read_table
from keras_bert_suite.data.readers.list_prints import read_list_print

SETS, TAGS = "multi_label_classification", "token_classification"

#: Names that need escapes in one print or another.
NAMES = ["joy", "love", "it's", 'say "no"', "a, b", "c]d", "日本", "7", "\\", "new\nline"]


@given(st.lists(st.sampled_from(NAMES) | st.text(max_size=5), min_size=1, max_size=4))
def test_prints_are_read_as_their_programs_read_them(names):
    for text in (json.dumps(names), json.dumps(names, ensure_ascii=False)):
        assert read_list_print(text) == json.loads(text) == names
    for text in (str(names), str(tuple(names))):
        assert read_list_print(text) == list(ast.literal_eval(text)) == names
    assert read_list_print(str(set(names))) == sorted(set(names))
    with np.printoptions(linewidth=10, threshold=100):
        assert read_list_print(str(np.array(names, dtype=object))) == names


def test_a_backslash_that_escapes_nothing():
    assert read_list_print(r"['\d', 'a']") == read_list_print(r"['\d' 'a']") == [r"\d", "a"]


@given(st.lists(st.integers(-99, 99), min_size=1, max_size=30))
def test_prints_of_numbers(numbers):
    expected = list(map(str, numbers))
    for array in (np.array(numbers), np.array(numbers, "float32")):
        assert read_list_print(str(array)) == expected
        assert read_list_print(str(array.tolist())) == expected
    bits = np.array(numbers) > 0
    assert read_list_print(str(bits)) == [str(bit).lower() for bit in bits]


@pytest.mark.parametrize(
    "text",
    ["joy", "", "[", "[joy]", "(sad)", "{}", "['a' ... 'b']", "[np.int64(1)]", "[['a'], ['b']]",
     "[1, [2]]", "{'a': 1}", "a ['b']", "['a'", "[1 2 ... 3]", "[" * 9999 + "]" * 9999],
)  # fmt: skip
def test_texts_that_are_no_prints(text):
    assert read_list_print(text) is None


@pytest.mark.parametrize("write", [str, json.dumps, lambda names: str(np.array(names, object))])
def test_sets_of_a_table(tmp_path, write):
    sets = [["joy", "a, b"], ["love"], ["joy"]]
    path = tmp_path / "table.csv"
    pandas.DataFrame({"text": list("xyz"), "label": map(write, sets)}).to_csv(path, index=False)
    read = read_table(path, "text", "label", SETS)
    assert (read.y, read.label_names) == (sets, ["a, b", "joy", "love"])
    assert read_rows(pandas.read_csv(path), "text", "label", SETS).y == sets
    with pytest.raises(ValueError, match="line 2: the label in the column 'label' is a list"):
        read_table(path, "text", "label")


BITS = [[1, 0, 1], [0, 0, 0], [1, 1, 0]]


@pytest.mark.parametrize("dtype", ["int64", "float32", "bool"])
@pytest.mark.parametrize("write", [str, lambda row: str(row.tolist()), lambda row: row.tolist()])
def test_a_number_for_each_label(dtype, write):
    rows = [{"text": "x", "label": write(row)} for row in np.array(BITS, dtype)]
    read = read_rows(rows, "text", "label", SETS)
    assert read.y == [["0", "2"], [], ["0", "1"]] and read.label_names == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("labels", "error"),
    [
        (["[1, 0, 1]", "[1, 0]"], "line 2: the labels are .'1', '0', '1'.. Wanted names or ids"),
        (["[0, 2]", "[1, 0, 1]"], "line 3: the labels are"),
        (["[0.2, 0.8]", "[0.5, 0.5]"], "line 2: the labels are .'0.2', '0.8'"),
        (["[0, 1]", "[1, 0]"], "line 2: the labels .* may be the ids of two labels, or 0 and 1"),
        (["joy", "[np.str_('a'), np.str_('b')]"], "line 3: the labels .* cannot be read: .*np.str"),
        (["[joy, love]", "joy"], "line 2: the labels in the column 'label' seem to be a list"),
        (["{joy,love}", "joy"], "line 2: the labels .* seem to be a list"),
        (["['a' ... 'b']", "joy"], "line 2: the labels .* seem to be a list"),
    ],
)  # fmt: skip
def test_lists_that_cannot_be_labels(tmp_path, labels, error):
    pandas.DataFrame({"text": "x", "label": labels}).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ValueError, match=error):
        read_table(tmp_path / "a.csv", "text", "label", SETS)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["(sad)", "[NSFW]"], [["(sad)"], ["[NSFW]"]]),
        (["(a) x, (b)", "c"], [["(a) x", "(b)"], ["c"]]),
        (["[0, 1]", "[2]", "[]"], [["0", "1"], ["2"], []]),  # Ids.
        (["[1]", "[0]"], [["1"], ["0"]]),
    ],
)
def test_brackets_in_names_and_ids(tmp_path, labels, expected):
    pandas.DataFrame({"text": "x", "label": labels}).to_csv(tmp_path / "a.csv", index=False)
    assert read_table(tmp_path / "a.csv", "text", "label", SETS).y == expected


@pytest.mark.parametrize(
    ("texts", "warned"),
    [
        (["['a', 'b']", '["c"]'], "line 2: the text .* written as text, .* as in 2 of 2 rows"),
        (["x", "['a' 'b']", "('c',)"], "line 3: the text .* as in 2 of 3 rows"),
        (["['a']", "x"], None),
        (["[1, 2]", "[3]"], None),  # Texts about numbers.
        (["[NSFW] x", "(b)"], None),
    ],
)
def test_texts_that_are_lists(tmp_path, texts, warned):
    pandas.DataFrame({"text": texts}).to_csv(tmp_path / "a.csv", index=False)
    warns = pytest.warns(UserWarning, match=warned) if warned else contextlib.nullcontext()
    with warns as found:
        assert read_table(tmp_path / "a.csv", "text").x == texts
    assert not warned or len(found) == 1


@pytest.fixture
def table(tmp_path):
    """The path of a table with columns of labels."""
    (tmp_path / "a.csv").write_text("text,joy,love,sure\nx,1,0,.5\ny,0.0,1.0,2\nz,0,0,3\n")
    return tmp_path / "a.csv"


def test_columns_of_labels(table):
    frame = pandas.read_csv(table)
    for read, source in ((read_table, table), (read_rows, frame)):
        sets = read(source, "text", problem_type=SETS, label_columns=["love", "joy"])
        assert (sets.y, sets.label_names) == ([["joy"], ["love"], []], ["love", "joy"])
        numbers = read(source, "text", problem_type="regression", label_columns=["sure", "joy"])
        assert numbers.y == frame[["sure", "joy"]].to_numpy().tolist()
        assert numbers.label_names == ["sure", "joy"]
    classes = read_rows(frame[:2], "text", label_columns=["love", "joy"])
    assert (classes.y, classes.label_names) == (["joy", "love"], ["love", "joy"])
    path = table.with_name("b.csv")
    pandas.get_dummies(["joy", "love"]).assign(text="x").to_csv(path)  # True and False.
    assert read_table(path, "text", label_columns=["love", "joy"]).y == ["joy", "love"]
    path.write_text(table.read_text().partition("\n")[2])
    numbered = read_table(path, 1, problem_type=SETS, label_columns=[2, 3], header=False)
    assert (numbered.y, numbered.label_names) == ([["2"], ["3"], []], ["2", "3"])


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"label_columns": ["joy", "love"]}, "line 4: the row has the labels .., wanted one."),
        ({"label_columns": ["joy", "sure"], "problem_type": SETS}, "line 2: the column 'sure' has"),
        ({"label_columns": "joy", "problem_type": SETS}, "must be a list of columns"),
        ({"label_columns": ["joy"], "label_column": "love"}, "label_column None, got .* 'love'"),
        ({"label_columns": ["joy"], "problem_type": None}, "got problem_type=None"),
        ({"label_columns": ["joy", "joy"], "problem_type": SETS}, "different columns"),
    ],
)  # fmt: skip
def test_wrong_columns_of_labels(table, arguments, error):
    with pytest.raises(ValueError, match=error):
        read_table(table, "text", **arguments)


def test_words_and_their_tags(tmp_path):
    words, tags = [["EU", "rejects"], ["it's"]], [["B-ORG", "O"], ["O"]]
    frame = pandas.DataFrame({"words": words, "tags": tags})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    for path in (tmp_path / "a.csv", tmp_path / "a.jsonl"):
        read = read_table(path, "words", "tags", TAGS)
        assert (read.x, read.y, read.label_names) == (words, tags, ["B-ORG", "O"])
    for column, wrong, error in (
        ("tags", [["O"], ["O"]], "row 0: got 2 words and 1 tags"),
        (
            "tags",
            ["O", "O"],
            "row 0: the tags in the column 'tags' are 'O', also in row 1.* Wanted a list",
        ),
        ("words", ["a b", "c"], "row 0: the words in the column 'words' are 'a b'"),
    ):
        with pytest.raises(ValueError, match=error):
            read_rows(frame.assign(**{column: wrong}), "words", "tags", TAGS)
    with pytest.raises(ValueError, match="is a list. .*'token_classification' for lists of words"):
        read_rows(frame, "words", "tags")
