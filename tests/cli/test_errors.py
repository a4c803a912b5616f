"""`--errors` of `keras-bert evaluate` and `keras-bert finetune`."""

import csv
import json
import os

import keras
import pytest
from cli.small_files import list_files

import keras_bert_suite as kbs
from keras_bert_cli import finetune
from keras_bert_cli.error_files import make_page


@pytest.fixture
def evaluate(run, finetuned, workshop, tmp_path):
    """Function: a file name -> the result of `evaluate --errors`, and the path."""

    def run_evaluate(name, *flags):
        arguments = ["--model", finetuned / "model.keras", "--input", workshop / "dev.tsv"]
        arguments += ["--text_column=sentence", "--errors", tmp_path / name, *flags]
        return run("evaluate", *arguments), tmp_path / name

    return run_evaluate


def test_tables(evaluate, finetuned, workshop):
    (status, out, err), table = evaluate("errors.csv")
    assert (status, err) == (0, "")
    lines = (workshop / "dev.tsv").read_text().splitlines()
    texts, labels = zip(*(line.split("\t") for line in lines[1:]), strict=True)
    wrong = keras.saving.load_model(finetuned / "model.keras").inspect(list(texts), list(labels))
    assert out.splitlines()[-1].startswith(f"wrote {table}: {len(wrong)} wrong answers, ")
    assert table.read_bytes().startswith(b"\xef\xbb\xbfline,")  # Excel reads UTF-8 with this mark.
    with open(table, newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(wrong) > 0
    assert [*rows[0]] == [
        *("line", "text", "label", "predicted", "probability", "label_probability", "loss"),
        "label_looks_wrong",
    ]
    for row, answer in zip(rows, wrong, strict=True):
        assert lines[int(row["line"]) - 1] == f"{row['text']}\t{row['label']}"
        assert row["predicted"] == answer.predicted and float(row["loss"]) == answer.loss

    (status, _, _), table = evaluate("errors.jsonl")
    records = [json.loads(line) for line in table.read_text().splitlines()]
    assert [record["line"] for record in records] == [int(row["line"]) for row in rows]
    assert records[0]["loss"] == wrong[0].loss and records[0]["text"] == wrong[0].texts[0]


def test_a_page(evaluate, monkeypatch):
    calls, predict_with = [], kbs.TextClassifier.predict_with

    def count(*args, **kwargs):
        calls.append(args)
        return predict_with(*args, **kwargs)

    monkeypatch.setattr(kbs.TextClassifier, "predict_with", count)
    (status, _, err), page = evaluate("errors.html")
    assert (status, err) == (0, "")
    assert len(calls) == 1, "the scores and the page are of the same outputs"
    text = page.read_text()
    assert text.startswith("<!doctype html>") and "model.keras in dev.tsv</h1>" in text
    assert "http" not in text.replace("http-equiv", ""), "the page loads nothing"


def test_a_page_shows_texts_as_they_are():
    record = {"line": 1, "text": "<script>alert('&')</script>\n\"x\"", "label": "<b>", "loss": 2.5}
    record |= {"predicted": ["a", "b"], "probability": 0.25, "label_looks_wrong": True}
    page = "".join(make_page([record, record], 7, "a < b"))
    assert "<title>a &lt; b</title>" in page and "2 wrong answers in 7 rows" in page
    assert "&lt;script&gt;alert(&#x27;&amp;&#x27;)&lt;/script&gt;\n&quot;x&quot;" in page
    assert "<td>&lt;b&gt;<td>a, b<td><button" in page
    assert page.count("<script>") == 1
    assert 'class="any p0 issue"' in page


def test_no_wrong_answers():
    assert "0 wrong answers in 7 rows" in "".join(make_page([], 7, "title"))


def test_refusals(evaluate, run, tmp_path):
    (status, _, err), _ = evaluate("errors.txt")
    assert status == 2 and "--errors needs a name that ends in .csv, .jsonl, .html, got" in err
    (tmp_path / "errors.csv").touch()
    (status, _, err), _ = evaluate("errors.csv")
    assert status == 1 and "errors.csv exists already" in err


def test_training_rows_are_checked_before_a_training(run, workshop, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ["finetune", "--checkpoint", workshop / "checkpoint", "--text_column=sentence"]
    arguments += ["--train", workshop / "train.tsv", "--epochs=1", "--output=model.keras"]
    status, _, err = run(*arguments, "--folds=2")
    assert status == 2 and "--folds needs --errors" in err
    status, out, err = run(*arguments, "--errors=suspects.csv", "--folds=2")
    assert (status, err) == (0, "")
    assert "wrote suspects.csv: " in out
    with open("suspects.csv", newline="", encoding="utf-8-sig") as file:
        lines = [int(row["line"]) for row in csv.DictReader(file)]
    assert len({*lines}) == len(lines) > 0 and {*lines} <= {*range(2, 34)}
    assert list_files(tmp_path) == ["model.keras", "suspects.csv"]

    def kill(values, *others, **further):
        assert not os.path.exists(values.errors)
        raise KeyboardInterrupt

    # A run that was killed in its check would take an older file for its own when it resumes.
    monkeypatch.setattr(finetune, "check_labels", kill)
    run(*arguments, "--errors=suspects.csv", "--overwrite")
    assert not os.path.exists("suspects.csv")


def test_a_task_without_labels_is_refused(run, workshop, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "titles.tsv").write_text("text\ttitle\na good film\tgood\n")
    arguments = ["finetune", "--checkpoint", workshop / "checkpoint", "--task=seq2seq"]
    arguments += ["--train=titles.tsv", "--target_column=title", "--output=model.keras"]
    status, _, err = run(*arguments, "--errors=errors.csv")
    assert status == 2 and "--errors is for labels of rows or of words, not for a Seq2Seq" in err
