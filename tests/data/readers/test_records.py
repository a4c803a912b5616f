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
    with pytest.raises(ValueError, match="label in the column 'sets' is a list. Wanted one text"):
        read("text", "sets")


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ('{"text": "a"}', "line 3: the label in the column 'label' is missing, as in 1 of 2"),
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
    with pytest.raises(ValueError, match="rows has no rows"):
        read_rows([], "text")
    lines = json.dumps(rows[1])
    assert read_rows(iter([json.loads(lines)]), "text", "label").y == ["1"]
