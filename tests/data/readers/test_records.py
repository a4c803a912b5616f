"""Rows that name their values: JSON lines, Parquet, and rows in memory. The oracle is pandas."""

import json
import types

import numpy as np
import pandas
import pytest

from keras_bert_suite import read_rows, read_table

TABLE = pandas.DataFrame(
    {
        "text": ["good film", "bad\tplot", "日本 \u2028 film"],
        "stars": [5, 1, 3],
        "share": [0.5, 1.0, -2.25],
        "kind": ["yes", "no", "yes"],
        "sets": [["a", "b"], [], ["b"]],
        "is_new": [True, False, True],
    }
)


@pytest.fixture(params=["lines", "ndjson", "parquet", "dicts", "frame", "dataset"])
def read(request, tmp_path, monkeypatch):
    """Function: arguments of `read_table` without the path -> `Examples` of `TABLE`."""
    kind = request.param
    if kind in ("lines", "ndjson"):
        path = tmp_path / f"table.{'jsonl' if kind == 'lines' else kind}"
        TABLE.to_json(path, orient="records", lines=True, force_ascii=False)
        return lambda *args, **kwargs: read_table(path, *args, **kwargs)
    if kind == "parquet":
        path = tmp_path / "table.parquet"
        monkeypatch.setattr(pandas, "read_parquet", lambda read: TABLE if read == path else None)
        return lambda *args, **kwargs: read_table(path, *args, **kwargs)
    rows = {"dicts": TABLE.to_dict("records"), "frame": TABLE, "dataset": Rows()}[kind]
    return lambda *args, **kwargs: read_rows(rows, *args, **kwargs)


class Rows:
    """Rows as PyTorch's Dataset has them, without `__iter__`."""

    def __len__(self):
        return len(TABLE)

    def __getitem__(self, place):
        return TABLE.iloc[place].to_dict()


def test_every_kind_of_labels(read):
    texts = TABLE["text"].tolist()
    classes = read("text", "stars")
    assert (classes.x, classes.y) == (texts, TABLE["stars"].map(str).tolist())
    assert classes.label_names == ["1", "3", "5"]
    assert read("text", "kind").label_names == ["no", "yes"]
    assert read("text", "is_new").y == ["true", "false", "true"]
    sets = read("text", "sets", "multi_label_classification")
    assert sets.y == TABLE["sets"].tolist() and sets.label_names == ["a", "b"]
    scores = read(["text", "kind"], "share", "regression")
    assert scores.x == (texts, TABLE["kind"].tolist())
    assert (scores.y, scores.label_names) == (TABLE["share"].tolist(), ["share"])
    targets = read("text", "kind", None)
    assert (targets.y, targets.label_names) == (TABLE["kind"].tolist(), None)
    with pytest.raises(ValueError, match="no column 'label'. Its columns are text, stars, share"):
        read("text", "label")
    with pytest.raises(ValueError, match="label in the column 'sets' is a list.* Wanted one text"):
        read("text", "sets")


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ('{"text": "a"}', "line 3: the label in the column 'label' is missing. Add"),
        ('{"text": null, "label": 1}', "line 3: the text in the column 'text' is missing"),
        ('{"text": NaN, "label": 1}', "line 3: the text in the column 'text' is missing"),
        ('{"text": {"a": 1}, "label": 1}', "line 3: the value of 'text': dict is no text, number"),
        ('["a", 1]', 'line 3: wanted a JSON object such as {"text"'),
        ('{"text": ', "line 3: Expecting value"),
    ],
)
def test_lines_that_are_no_rows(tmp_path, line, error):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a", "label": true}\n\n' + line + "\n")
    with pytest.raises(ValueError, match=error):
        read_table(path, "text", "label")
    with pytest.raises(ValueError, match="columns of .* have names. Leave out header=False"):
        read_table(path, "1", header=False)


def test_the_columns_of_pandas(tmp_path):
    path = tmp_path / "a.json"
    TABLE.to_json(path)
    with pytest.raises(ValueError, match="with orient='records', or pass pandas.read_json") as one:
        read_table(path, "text", "kind")
    assert "dict is no text" in str(one.value)
    assert read_rows(pandas.read_json(path), "text", "kind").y == TABLE["kind"].tolist()
    TABLE.to_json(path, orient="records")
    assert read_table(path, "text", "kind").y == TABLE["kind"].tolist()


def test_text_files_with_tabs(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("good film\t1\nbad, film\t0\n")
    read = read_table(path, "1", "2", header=False)
    wanted = pandas.read_csv(path, sep="\t", header=None, dtype=str)
    assert (read.x, read.y) == (wanted[0].tolist(), wanted[1].tolist())
    path.write_text("good film, 1\n")
    with pytest.raises(ValueError, match=".txt file with a tab in its first line. Name its delim"):
        read_table(path, "1", "2", header=False)


def test_real_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    TABLE.to_parquet(tmp_path / "a.parquet")
    read = read_table(tmp_path / "a.parquet", "text", "sets", "multi_label_classification")
    assert (read.x, read.y) == (TABLE["text"].tolist(), TABLE["sets"].tolist())


def test_parquet_without_its_library(tmp_path, monkeypatch):
    def read_parquet(path):
        raise ImportError("Missing optional dependency 'pyarrow'")

    monkeypatch.setattr(pandas, "read_parquet", read_parquet)
    with pytest.raises(ValueError, match="Missing optional .*pip install pandas pyarrow"):
        read_table(tmp_path / "a.parquet", "text")


class HubDataset(list):
    """What `read_rows` uses of a Dataset of Hugging Face."""

    features = {"label": types.SimpleNamespace(names=["neg", "pos"]), "text": object()}


def test_names_of_classes_of_a_dataset():
    rows = HubDataset([{"text": "a", "label": np.int64(1)}, {"text": "b", "label": 1}])
    read = read_rows(rows, "text", "label")
    assert (read.y, read.label_names) == (["pos", "pos"], ["neg", "pos"])
    assert read_rows(rows, "text").y is None
    named = [{"text": "a", "sets": "x, y;z"}]
    read = read_rows(named, "text", "sets", "multi_label_classification", label_separator=";")
    assert read.y == [["x, y", "z"]]
    with pytest.raises(ValueError, match="A row must be a dict of its columns, got .*'a'"):
        read_rows(["a"], "text")
    for splits in ({"train": rows}, types.MappingProxyType({"train": rows, "test": rows})):
        with pytest.raises(ValueError, match="got a dict of train.*splits .* pass one of them"):
            read_rows(splits, "text")
    with pytest.raises(ValueError, match="If they are columns, pass pandas.DataFrame"):
        read_rows({"text": ["a"], "label": [1]}, "text")
    with pytest.raises(ValueError, match="rows has no rows"):
        read_rows([], "text")
    lines = json.dumps(rows[1])
    assert read_rows(iter([json.loads(lines)]), "text", "label").y == ["1"]


class ClassLabel(types.SimpleNamespace):
    """What `read_rows` uses of the feature of the `datasets` library."""

    def __init__(self, *names):
        super().__init__(names=list(names))

    def int2str(self, number):
        return self.names[number]


def make_dataset(feature, labels):
    """A Dataset with a column "label" of a feature."""
    rows = HubDataset({"text": f"text {row}", "label": label} for row, label in enumerate(labels))
    rows.features = {"text": object(), "label": feature}
    return rows


LABEL = ClassLabel("neg", "neutral", "pos")


def test_ids_of_a_class_label():
    rows = make_dataset(LABEL, [2, np.int64(0), 1, 0])
    read = read_rows(rows, "text", "label")
    assert read.y == [LABEL.int2str(row["label"]) for row in rows]
    assert (read.label_names, read.left_out) == (LABEL.names, {})


@pytest.mark.parametrize(
    ("labels", "error", "remedy"),
    [
        ([0, -1, 1, -1], "row 1: the label in the column 'label' is missing, -1, also in ", [-1]),
        ([0, None], "row 1: the label in the column 'label' is missing. Leave", [""]),
        ([0, 3], "row 1: the label in the column 'label' is 3, which is none of neg", ["3"]),
        ([0, -2], "row 1: the label in the column 'label' is -2, which is none of neg", [-2]),
    ],
)  # fmt: skip
def test_ids_that_have_no_name(labels, error, remedy):
    rows = make_dataset(LABEL, labels)
    with pytest.raises(ValueError, match=error):
        read_rows(rows, "text", "label")
    read = read_rows(rows, "text", "label", left_out_labels=remedy)
    is_id = [label in (0, 1, 2) for label in labels]
    assert read.y == [
        LABEL.int2str(label) for label, is_one in zip(labels, is_id, strict=True) if is_one
    ]
    assert read.x == [f"text {row}" for row, is_one in enumerate(is_id) if is_one]
    (lines,) = read.left_out.values()
    assert lines == [row for row, is_one in enumerate(is_id) if not is_one]


def test_a_test_split_without_labels():
    rows = make_dataset(LABEL, [-1, -1])
    with pytest.raises(ValueError, match="2 of 2 rows.* the texts alone, without a label"):
        read_rows(rows, "text", "label")
    with pytest.raises(ValueError, match="no row is left, because the labels of all 2 rows"):
        read_rows(rows, "text", "label", left_out_labels=["-1"])
    assert read_rows(rows, "text").x == ["text 0", "text 1"]


@pytest.mark.parametrize(
    "wrap", [lambda label: types.SimpleNamespace(feature=label), lambda x: [x]]
)
def test_lists_of_a_class_label_keep_its_names(wrap):
    rows = make_dataset(wrap(LABEL), [[0, 2], [], np.array([1])])
    read = read_rows(rows, "text", "label", "multi_label_classification")
    assert (read.y, read.label_names) == ([["neg", "pos"], [], ["neutral"]], LABEL.names)
    # Names that look like numbers are no 0/1 for each label.
    rows = make_dataset(wrap(ClassLabel("1", "0")), [[0, 0], [1, 0]])
    assert read_rows(rows, "text", "label", "multi_label_classification").y == [
        ["1", "1"],
        ["0", "1"],
    ]
    for ids in ([0, 3], [-1]):
        with pytest.raises(ValueError, match=f"row 1: the label .* {ids[-1]}"):
            rows = make_dataset(wrap(LABEL), [[0], ids])
            read_rows(rows, "text", "label", "multi_label_classification")
        read = read_rows(
            rows, "text", "label", "multi_label_classification", left_out_labels=ids[-1:]
        )
        assert list(read.left_out.values()) == [[1]] and read.y == [["neg"]]
    tags = make_dataset(wrap(ClassLabel("O", "B-X")), [[1, 0], [0]])
    for row, words in zip(tags, [["a", "b"], ["c"]], strict=True):
        row["text"] = words
    read = read_rows(tags, "text", "label", "token_classification")
    assert (read.x, read.y) == ([["a", "b"], ["c"]], [["B-X", "O"], ["O"]])
    assert read.label_names == ["O", "B-X"]


@pytest.mark.parametrize("content", ["{}\n{}", "{}\n\n{}\n", "[{},\n {}]", "\n[{}, {}]\n"])
def test_json_with_objects(tmp_path, content):
    # Lines of objects, as in CLUE, or one list of them.
    rows = [json.dumps({"text": text, "label": label}) for text, label in ("ax", "by")]
    (tmp_path / "train.json").write_text(content.replace("{}", "%s") % tuple(rows))
    read = read_table(tmp_path / "train.json", "text", "label")
    assert (read.x, read.y) == (["a", "b"], ["x", "y"])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", 'text,label\n{"text": "a"}\n', "line 1: .* If 'text,label' is a line of names"),
        ("a.jsonl", '["text"]\n["a"]\n', "line 1: wanted a JSON object.* is a line of names above"),
        ("a.jsonl", "text\tlabel\na\tb\n", "line 1: .* table, pass its delimiter"),
        ("a.jsonl", '{\n "text": "a"\n}\n', "line 1: .* one JSON document, take its rows from"),
        ("a.json", '{"data": [\n]}', "line 1: .* in the form of SQuAD are for read_squad"),
        ("a.json", '{"version": "1", "data": []}', "no column 'text'. Its columns are version, d"),
        ("a.json", '["a"]', "row 0: wanted a JSON object such as .* got 'a'"),
        ("a.json", '[{"text": "a"},\n{]', "a.json: .* line 2 .* list of JSON objects. Correct it."),
        ("a.json", '{"text": "a"}\n{"text": }\n', r"line 2: Expecting.* object\. Correct it\. err"),
    ],
)  # fmt: skip
def test_json_of_another_form(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / name, "text")


def test_texts_of_tensorflow_datasets_are_bytes():
    rows = [{"text": "日本 film".encode(), "label": 1}, {"text": b"plot", "label": 0}]
    read = read_rows(rows, "text", "label")
    assert (read.x, read.y) == (["日本 film", "plot"], ["1", "0"])


def test_a_list_is_no_feature(tmp_path):
    rows = [{"text": "a", "tags": "x"}, {"text": "b", "tags": ["x", "y"]}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(ValueError, match="line 2: .*'tags'"):
        read_table(tmp_path / "a.jsonl", "text", features=["tags"])
