"""`keras-bert evaluate`."""

import json

import keras
import pytest
from cli.small_files import list_files
from matplotlib.image import imread
from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support

import keras_bert_suite as kbs


def test_scores(run, finetuned, workshop, tmp_path):
    model = finetuned / "model.keras"
    arguments = ["evaluate", "--model", model, "--input", workshop / "dev.tsv"]
    arguments += ["--text_column=sentence", "--json", tmp_path / "a/scores.json"]
    status, out, err = run(*arguments, "--png", tmp_path / "matrix.png")
    assert (status, err) == (0, "")

    rows = [line.split("\t") for line in (workshop / "dev.tsv").read_text().splitlines()[1:]]
    texts, labels = map(list, zip(*rows, strict=True))
    classifier = keras.saving.load_model(model)
    logits = classifier.predict(texts, verbose=0)
    predicted = [classifier.label_names[i] for i in logits.argmax(axis=-1)]
    scores = json.loads((tmp_path / "a/scores.json").read_text())
    assert scores["accuracy"] == pytest.approx(accuracy_score(labels, predicted))
    assert scores["label_names"] == ["no", "yes"]
    assert scores["confusion_matrix"] == confusion_matrix(labels, predicted).tolist()
    expected = precision_recall_fscore_support(labels, predicted, zero_division=0)
    for i, name in enumerate(["no", "yes"]):
        assert list(scores["classes"][name].values()) == pytest.approx([row[i] for row in expected])
        figures = [f"{row[i]:.4f}" for row in expected[:3]]
        row = next(line for line in out.splitlines() if line.startswith(f"│ {name}"))
        assert [cell.strip() for cell in row.split("│")[2:-1]] == [*figures, str(expected[3][i])]
    assert out.startswith(f"rows 32, accuracy {accuracy_score(labels, predicted):.4f}, macro_f1 ")
    assert imread(tmp_path / "matrix.png").std() > 0.05
    assert list_files(tmp_path) == ["a", "a/scores.json", "matrix.png"]
    status, _, err = run(*arguments)
    assert status == 1 and "scores.json exists already" in err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"input": "absent.tsv"}, "absent.tsv: No such file or directory"),
        ({"input": "strange.tsv"}, "strange.tsv: Label 'maybe' at row 1 is not one"),
        ({"input": "strange.tsv", "label_column": "class"}, "no column 'class'"),
        ({"model": "absent.keras"}, "absent.keras does not exist"),
        ({"json": "strange.tsv"}, "strange.tsv exists already"),
    ],
)
def test_bad_input(run, finetuned, tmp_path, monkeypatch, flags, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "strange.tsv").write_text("text\tlabel\nx\tyes\ny\tmaybe\n")
    (tmp_path / "model.keras").symlink_to(finetuned / "model.keras")
    before = list_files(tmp_path)
    flags = {"model": "model.keras", "input": "strange.tsv", **flags}
    status, out, err = run("evaluate", *(f"--{name}={value}" for name, value in flags.items()))
    assert (status, out) == (1, "")
    assert err.startswith("keras-bert: ") and message in err
    assert list_files(tmp_path) == before


def test_a_path_at_home(run, finetuned, workshop, monkeypatch):
    monkeypatch.setenv("HOME", str(finetuned))
    arguments = ["--input", workshop / "dev.tsv", "--text_column=sentence"]
    wanted = run("evaluate", "--model", finetuned / "model.keras", *arguments)
    assert run("evaluate", "--model=~/model.keras", *arguments) == wanted and wanted[0] == 0


def test_noise(run, finetuned, workshop, tmp_path):
    model, dev = finetuned / "model.keras", workshop / "dev.tsv"
    arguments = ["evaluate", "--model", model, "--input", dev, "--text_column=sentence"]
    arguments += ["--noise=delete,lost_space", "--json", tmp_path / "scores.json"]
    status, out, err = run(*arguments, "--noise_rate=0.3")
    assert (status, err) == (0, "")
    scores = json.loads((tmp_path / "scores.json").read_text())
    rows = [line.split("\t") for line in dev.read_text().splitlines()[1:]]
    texts, labels = map(list, zip(*rows, strict=True))
    classifier = keras.saving.load_model(model)
    report = kbs.robustness(classifier, texts, labels, kinds=["delete", "lost_space"], rates=0.3)
    assert [part["scores"] for part in scores["noise"]] == [list(n.scores) for n in report.noises]
    assert str(report) in out and out.startswith("rows 32, accuracy ")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--noise_rate=0.3"], "--noise_rate is for --noise"),
        (["--noise=typos"], "--noise must be one of keyboard, "),
        (["--noise=swap,zz"], "got 'zz'"),
        (["--noise=swap", "--noise_rate=0.1,2"], "rate must be over 0 and at most 1, got 2.0"),
        (["--noise=swap", "--noise_rate=0"], "--noise_rate must be over 0 and at most 1, got 0.0"),
    ],
)
def test_wrong_noise(run, finetuned, workshop, flags, message):
    """It is refused before the scores, which may take hours."""
    arguments = ["--model", finetuned / "model.keras", "--input", workshop / "dev.tsv"]
    status, out, err = run("evaluate", *arguments, "--text_column=sentence", *flags)
    assert (status, out) == (2, "") and message in err
