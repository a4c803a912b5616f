"""`finetune`, `evaluate` and `predict` on tables with a label of each of several attributes."""

import json

import pytest

from keras_bert_cli import main

WORDS = {"tone": ["good", "bad"], "what": ["film", "plot", "acting"]}


def write_table(path, repeats):
    """In every other row a label is missing."""
    texts = [f"{a} {b}" for a in WORDS["tone"] for b in WORDS["what"]] * repeats
    rows = [text.split() for text in texts]
    lines = [
        f"{text}\t{tone if row % 2 else ''}\t{what if row % 3 else ''}"
        for row, (text, (tone, what)) in enumerate(zip(texts, rows, strict=True))
    ]
    path.write_text("text\ttone\twhat\n" + "\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def described(workshop, tmp_path_factory):
    """Folder of a model and its data. Not to be written to."""
    folder = tmp_path_factory.mktemp("described")
    write_table(folder / "train.tsv", 17)
    write_table(folder / "dev.tsv", 3)
    arguments = [
        *("finetune", "--task=attributes", f"--checkpoint={workshop / 'checkpoint'}"),
        *(f"--train={folder / 'train.tsv'}", f"--dev={folder / 'dev.tsv'}", "--epochs=16"),
        *("--attribute_columns=tone,what", "--attribute_weights=tone=2", "--learning_rate=1e-2"),
        *("--batch_size=16", f"--output={folder / 'model.keras'}"),
    ]
    assert main(arguments) == 0
    return folder


def test_a_model_is_trained_and_evaluated(described, run, tmp_path):
    model = ("--model", described / "model.keras", "--input", described / "dev.tsv")
    status, out, err = run("evaluate", *model, "--json", tmp_path / "scores.json")
    assert (status, err) == (0, "")
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert scores["accuracy"] > 0.75 and "tone" in out
    assert {name: part["rows"] for name, part in scores["attributes"].items()} == {
        "tone": 9,
        "what": 12,
    }
    status, out, err = run("predict", *model)
    assert (status, err) == (0, "") and out.startswith("tone\twhat\n")
    rows = [line.split("\t") for line in out.splitlines()[1:]]
    table = (described / "dev.tsv").read_text().splitlines()[1:]
    pairs = zip(table, rows, strict=True)
    right = [
        a == b for line, row in pairs for a, b in zip(line.split("\t")[1:], row, strict=True) if a
    ]
    assert sum(right) / len(right) == scores["accuracy"]
    status, out, err = run("predict", *model, "--format=jsonl")
    first = json.loads(out.splitlines()[0])
    assert first["text"] == "good film" and first["attributes"]["what"]["label"] == rows[0][1]
    assert first["attributes"]["tone"]["probability"] >= 0.5


def train_on(workshop):
    return ("finetune", "--task=attributes", "--checkpoint", workshop / "checkpoint")


def test_wrong_flags(described, run, workshop, tmp_path):
    (tmp_path / "gap.tsv").write_text("text\ttone\twhat\n\tgood\tfilm\n")
    (tmp_path / "spaces.tsv").write_text("text\ttone\nx\tgood\ny\tgood \n")
    (tmp_path / "lists.jsonl").write_text('{"text": "x", "tone": ["good"], "what": "film"}\n')
    spaces = (*train_on(workshop), "--train", tmp_path / "spaces.tsv", "--output", tmp_path / "x")
    train = (
        *train_on(workshop),
        "--train",
        described / "train.tsv",
        "--output",
        described / "other.keras",
    )
    evaluate = ("evaluate", "--model", described / "model.keras", "--input")
    for arguments, message in (
        (train, "--task attributes needs --attribute_columns"),
        ((*train, "--attribute_columns=tone", "--label_column=tone"), "is for other tables"),
        (
            (*train, "--attribute_columns=tone", "--attribute_weights=what=2"),
            "--attribute_weights has 'what=2', wanted NAME=NUMBER with one of tone",
        ),
        (
            (*evaluate, described / "dev.tsv", "--attribute_columns=tone"),
            "has 1 columns, wanted one for each attribute of the model, in this order: tone, what",
        ),
        ((*evaluate, workshop / "dev.tsv"), "no column"),
        ((*evaluate, tmp_path / "gap.tsv"), "line 2: the text in the column 'text' is missing"),
        ((*evaluate, tmp_path / "lists.jsonl"), "line 1: the label in the column 'tone' is a list"),
        ((*spaces, "--attribute_columns=tone"), "the column 'tone' has the labels ['good']"),
    ):
        status, _, err = run(*arguments)
        assert status in (1, 2) and message in err, message
