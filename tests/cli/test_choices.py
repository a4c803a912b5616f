"""`finetune`, `evaluate` and `predict` on files of SWAG's form."""

import csv
import json

import pytest
from small_texts import make_reviews

from keras_bert_cli import main


def write_swag(path, num_rows, seed):
    """The right ending is the one with "good"."""
    texts = [text.replace("good", "bad") for text in make_reviews(4 * num_rows, seed)[0]]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["sent1", "sent2", *(f"ending{i}" for i in range(4)), "label"])
        for row in range(num_rows):
            endings, label = texts[4 * row : 4 * row + 4], (seed + row) % 4
            endings[label] = f"good good {endings[label]}"
            writer.writerow(["the film", "it was", *endings, label])


@pytest.fixture(scope="module")
def choosing(workshop, tmp_path_factory):
    """Folder of a model and its data. Not to be written to."""
    folder = tmp_path_factory.mktemp("choosing")
    write_swag(folder / "train.csv", 48, seed=1)
    write_swag(folder / "dev.csv", 16, seed=2)
    arguments = [
        *("finetune", "--task=choice", f"--checkpoint={workshop / 'checkpoint'}", "--epochs=6"),
        *(f"--train={folder / 'train.csv'}", f"--dev={folder / 'dev.csv'}", "--batch_size=8"),
        *("--learning_rate=5e-3", "--sequence_length=32", f"--output={folder / 'chooser.keras'}"),
    ]
    assert main(arguments) == 0
    return folder


def test_a_model_is_trained_and_evaluated(choosing, run, tmp_path):
    files = ("--json", tmp_path / "scores.json")
    arguments = ("--input", choosing / "dev.csv", *files)
    status, out, err = run("evaluate", "--model", choosing / "chooser.keras", *arguments)
    assert (status, err) == (0, "")
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert scores["rows"] == 16 and scores["accuracy"] > 0.8 and "accuracy" in out
    arguments = ("--model", choosing / "chooser.keras", "--input", choosing / "dev.csv")
    status, out, err = run("predict", *arguments, "--format=jsonl")
    assert (status, err) == (0, "")
    answers = [json.loads(line)["choice"] for line in out.splitlines()]
    right = [row["label"] for row in csv.DictReader(open(choosing / "dev.csv", encoding="utf-8"))]
    matches = sum(str(a) == b for a, b in zip(answers, right, strict=True))
    assert matches / 16 == scores["accuracy"]
    status, out, _ = run("predict", *arguments)
    assert status == 0 and out.startswith("choice\tprobability\n") and len(out.splitlines()) == 17


@pytest.mark.long("serving")
@pytest.mark.backend("tensorflow")
def test_a_saved_model_chooses_as_the_model(choosing, run):
    models = (choosing / "chooser.keras", choosing / "saved/1")
    assert run("export", "--model", models[0], "--output", models[1])[0] == 0
    answers = []
    for model in models:
        arguments = ("--model", model, "--input", choosing / "dev.csv", "--format=jsonl")
        status, out, err = run("predict", *arguments)
        assert (status, err) == (0, "")
        answers.append([json.loads(line)["choice"] for line in out.splitlines()])
    assert answers[0] == answers[1]


def test_wrong_rows(choosing, run, workshop, tmp_path):
    (tmp_path / "wrong.csv").write_text(
        (choosing / "dev.csv").read_text(encoding="utf-8").replace(",3\n", ",4\n", 1), "utf-8"
    )
    (tmp_path / "train.txt").touch()
    evaluate = ("evaluate", "--model", choosing / "chooser.keras", "--input")
    for arguments, message in (
        ((tmp_path / "wrong.csv",), "the label is '4', wanted 0, 1, 2 or 3"),
        ((workshop / "train.tsv",), "has no column 'sent1'"),
        ((choosing / "dev.csv", "--text_column=sent1"), "--text_column is for other tables"),
        (
            (tmp_path / "train.txt",),
            "neither a .tsv nor a .csv",
        ),
    ):
        status, _, err = run(*evaluate, *arguments)
        assert status in (1, 2) and message in err
