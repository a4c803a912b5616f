"""`finetune`, `evaluate` and `predict` of sets of labels, of numbers, and of long texts."""

import functools
import json

import keras
import numpy as np
import pytest
from small_texts import make_reviews

import keras_bert_suite as kbs

TEXTS, _ = make_reviews(32)
NAMES = ["bad", "good", "plot"]
SETS = [[name for name in NAMES if name in text.split()] for text in TEXTS]
NUMBERS = [len(text.split()) / 4 for text in TEXTS]


def write_table(path, labels):
    rows = zip(TEXTS, labels, strict=True)
    path.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows))
    return path


def write_lines(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    write_table(folder / "multilabel.tsv", map("; ".join, SETS))
    write_table(folder / "regress.tsv", NUMBERS)
    return folder


def finetune(run, workshop, table, task, output, *flags):
    return run(
        "finetune", f"--task={task}", f"--checkpoint={workshop / 'checkpoint'}",
        f"--train={table}", f"--dev={table}", f"--output={output}", "--epochs=1",
        "--sequence_length=16", "--learning_rate=1e-3", *flags,
    )  # fmt: skip


def test_sets_of_labels(run, workshop, tables, tmp_path):
    table, model = tables / "multilabel.tsv", tmp_path / "model.keras"
    separator = "--label_separator=;"
    status, out, err = finetune(
        run, workshop, table, "multilabel", model, separator, "--class_weight=balanced"
    )
    assert (status, err) == (0, "")
    assert "32 training texts, labels bad, good, plot" in out and "dev micro_f1" in out
    classifier = keras.saving.load_model(model)
    assert classifier.problem_type == "multi_label_classification"
    assert classifier.thresholds != [0.5] * 3
    json_file, png = tmp_path / "scores.json", tmp_path / "scores.png"
    status, out, err = run(
        "evaluate", f"--model={model}", f"--input={table}", separator, f"--json={json_file}",
        f"--png={png}",
    )  # fmt: skip
    assert (status, err) == (0, "")
    scores = json.loads(json_file.read_text())
    wanted = classifier.score(TEXTS, SETS)
    assert scores.pop("rows") == 32 and scores == wanted
    assert png.read_bytes()[:4] == b"\x89PNG"

    status, out, _ = run("predict", f"--model={model}", f"--input={table}")
    lines = [line.split("\t") for line in out.splitlines()]
    assert lines[0] == ["labels", "probabilities"]
    labels = classifier.predict_labels(TEXTS, verbose=0)
    # A server computes the sigmoid by another library, which may differ in the last bit.
    logits = keras.ops.convert_to_tensor(classifier.predict(TEXTS, verbose=0))
    served = keras.ops.greater(keras.ops.sigmoid(logits), np.array(classifier.thresholds))
    wanted = [",".join(np.array(NAMES)[row]) for row in keras.ops.convert_to_numpy(served)]
    assert [line[0] for line in lines[1:]] == wanted
    status, out, _ = run("predict", f"--model={model}", f"--input={table}", "--format=jsonl")
    answer = json.loads(out.splitlines()[0])
    assert answer["text"] == TEXTS[0] and answer["labels"] == labels[0]
    assert list(answer["probabilities"]) == NAMES

    status, _, err = run("evaluate", f"--model={model}", f"--input={table}")
    assert status == 1 and "Label 'bad; good' at row " in err


def test_numbers(run, workshop, tables, tmp_path):
    table, model = tables / "regress.tsv", tmp_path / "model"
    status, out, err = finetune(run, workshop, table, "regress", model)
    assert (status, err) == (0, "")
    json_file = tmp_path / "scores.json"
    arguments = ("evaluate", f"--model={model}", f"--input={table}")
    status, out, err = run(*arguments, f"--json={json_file}")
    assert (status, err) == (0, "") and "pearson" in out
    scores = json.loads(json_file.read_text())
    assert scores["rows"] == 32
    status, _, err = run(*arguments, f"--png={tmp_path / 'scores.png'}")
    assert status == 2 and "--png is for --task" in err
    status, out, _ = run("predict", f"--model={model}", f"--input={table}")
    lines = out.splitlines()
    assert lines[0] == "label"
    error = sum(abs(float(x) - y) for x, y in zip(lines[1:], NUMBERS, strict=True)) / 32
    assert error == pytest.approx(scores["mean_absolute_error"], abs=1e-4)
    status, out, _ = run("predict", f"--model={model}", f"--input={table}", "--format=jsonl")
    assert json.loads(out.splitlines()[0])["scores"].keys() == {"label"}


def test_columns_beside_the_texts(run, workshop, tables, tmp_path):
    table, model = tmp_path / "rows.tsv", tmp_path / "model"
    rows = zip(TEXTS, SETS, range(32), strict=True)
    rows = [(text, len(names) % 2, "" if i == 3 else i, i % 5) for text, names, i in rows]
    rows = [("text", "label", "price", "shop"), *rows]
    write_lines(table, ("\t".join(map(str, row)) for row in rows))
    flags = "--feature_columns=price,shop=category"
    status, out, err = finetune(run, workshop, table, "classify", model, flags)
    assert (status, err) == (0, "") and "features: price number, shop category" in out
    classifier = kbs.TextClassifier.from_preset(model)
    assert classifier.features["price"]["mean"] == np.mean([i for i in range(32) if i != 3])
    assert classifier.features["shop"]["categories"] == [*"01234"]
    status, out, err = run("evaluate", f"--model={model}", f"--input={table}")
    assert (status, err) == (0, "") and "accuracy" in out
    status, out, _ = run("predict", f"--model={model}", f"--input={table}", "--format=jsonl")
    answer = json.loads(out.splitlines()[3])
    assert (answer["text"], answer["price"], answer["shop"]) == (TEXTS[3], None, "3")
    row = {"text": TEXTS[3:4], "price": [None], "shop": ["3"]}
    assert classifier.predict_labels(row, verbose=0) == [answer["label"]]

    write_lines(table, ["text\tlabel\tprice\tshop", "good film\t1\tcheap\ta"])
    for flag, message in {
        "": r"rows.tsv, line 2: the feature 'price' is a number, got 'cheap'",
        "--feature_columns=price": r"has 1 columns, and the model has 2 features: price, shop",
    }.items():
        status, _, err = run(*f"predict --model={model} --input={table} {flag}".split())
        assert status != 0 and message in err
    write_lines(tmp_path / "texts.txt", TEXTS)
    status, _, err = run("predict", f"--model={model}", f"--input={tmp_path / 'texts.txt'}")
    assert status != 0 and "must be a table with these columns" in err
    status, _, err = finetune(run, workshop, table, "ner", tmp_path / "other", flags)
    assert status != 0 and "--feature_columns is for --task classify" in err


def test_long_texts(run, workshop, tables, tmp_path):
    """A text that is longer than a window is read whole by each command."""
    table, model = tables / "multilabel.tsv", tmp_path / "model"
    flags = ("--window_pooling=transformer", "--max_windows=3", "--training_windows=2")
    separator = "--label_separator=;"
    status, _, err = finetune(run, workshop, table, "multilabel", model, separator, *flags)
    assert (status, err) == (0, "")
    classifier = kbs.DocumentClassifier.from_preset(model)
    assert (classifier.max_windows, classifier.training_windows) == (3, 2)
    status, out, err = run("evaluate", f"--model={model}", f"--input={table}", separator)
    assert (status, err) == (0, "") and "micro_f1" in out

    first = " ".join(TEXTS[:9])
    write_lines(tmp_path / "texts.txt", [first + f" {word}" * 9 for word in ("good", "bad")])
    arguments = ("--input", tmp_path / "texts.txt", "--format=jsonl")
    status, out, err = run("predict", f"--model={model}", *arguments)
    assert (status, err) == (0, "")
    answers = [json.loads(line)["probabilities"] for line in out.splitlines()]
    assert answers[0] != answers[1]


@pytest.mark.parametrize(
    ("task", "flags", "message"),
    [
        ("classify", ["--max_windows=2"], "--max_windows needs --window_pooling"),
        (
            "ner",
            ["--window_pooling=max"],
            "is for --task classify, multilabel, regress, not",
        ),
        ("classify", ["--head=crf"], "--head is for --task ner, not for --task classify"),
        ("multilabel", ["--label_separator="], "--label_separator must not be empty"),
        ("regress", ["--label_separator=;"], "is for --task multilabel, not for --task regress"),
    ],
)
def test_flags_of_other_tasks(run, workshop, tables, tmp_path, task, flags, message):
    table = tables / "regress.tsv"
    status, _, err = finetune(run, workshop, table, task, tmp_path / "model.keras", *flags)
    assert status == 2 and message in err


def test_wrong_tables(run, workshop, tmp_path):
    words = write_table(tmp_path / "words.tsv", ["much"] * 32)
    status, _, err = finetune(run, workshop, words, "regress", tmp_path / "model.keras")
    assert status == 1 and "words.tsv, line 2: the label in the column 'label' is 'much'" in err
    empty = write_table(tmp_path / "empty.tsv", [""] * 32)
    status, _, err = finetune(run, workshop, empty, "multilabel", tmp_path / "model.keras")
    assert status == 1 and "needs 1 or more different labels, got []" in err


@pytest.fixture(scope="module")
def twins(finetuned, tmp_path_factory):
    """function(problem_type) to the path of a model that differs from `finetuned` in its type."""
    classifier = keras.saving.load_model(finetuned / "model.keras")

    def make(problem_type):
        config = {**classifier.get_config(), "problem_type": problem_type, "thresholds": None}
        twin = kbs.TextClassifier.from_config(config)
        twin.preprocessor = classifier.preprocessor
        path = tmp_path_factory.mktemp("twin") / "model.keras"
        twin.save(path)
        return path

    return functools.cache(make)


#: `problem_type` -> the first line of `predict`.
PROBLEM_TYPES = {
    "single_label_classification": "label\tprobability",
    "multi_label_classification": "labels\tprobabilities",
    "regression": "no\tyes",
}


@pytest.mark.parametrize("problem_type", PROBLEM_TYPES)
def test_outputs_are_read_as_the_model_says(run, tables, twins, problem_type):
    """Logits of classes are no numbers, and the largest of several probabilities is no class."""
    model = ("--model", twins(problem_type), "--input", tables / "regress.tsv")
    status, out, err = run("predict", *model)
    assert (status, err) == (0, "") and out.startswith(PROBLEM_TYPES[problem_type] + "\n")


def test_tabs_and_lines_in_labels(run, finetuned, tmp_path):
    """A label stays in its field."""
    classifier = keras.saving.load_model(finetuned / "model.keras")
    classifier.label_names = ["a\tb", "c\u2028d\re"]
    classifier.save(tmp_path / "model.keras")
    (tmp_path / "texts.txt").write_text("good\nbad\n")
    status, out, _ = run(
        "predict", "--model", tmp_path / "model.keras", "--input", tmp_path / "texts.txt"
    )
    assert status == 0 and all(len(line.split("\t")) == 2 for line in out.splitlines()[1:])
    classifier.label_names = ["a", "b\nc"]
    with pytest.raises(ValueError, match="'b.nc' has a line feed"):
        kbs.export_saved_model(classifier, tmp_path / "1")
