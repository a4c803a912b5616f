"""The recipes of examples/ as they are, on a tiny checkpoint and few rows."""

import runpy
import sys

import pytest

# A head that no checkpoint has is named in a warning.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.* has no weights for:UserWarning"),
]


@pytest.fixture
def run(examples, monkeypatch, capsys):
    """Runs a script in its folder, and returns its names and the lines it printed."""

    def run_script(name, *arguments):
        monkeypatch.chdir(examples)
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        names = runpy.run_path(str(examples / name))
        return names, capsys.readouterr().out.splitlines()

    return run_script


def test_find_entities(run, examples):
    names, _ = run("find_entities.py")
    assert set(names["scores"]["types"]) == {"PER", "LOC", "ORG", "DATE"}
    assert (examples / "entity_f1.png").stat().st_size > 5000


def test_answer_questions(run):
    names, lines = run("answer_questions.py")
    assert set(names["questions"]) <= set(lines)
    assert all(names["context"][a.start : a.end] == a.text for a in names["best"])


def test_search_by_meaning(run, examples):
    names, lines = run("search_by_meaning.py")
    assert lines[-1].startswith("MRR before ") and lines[0] in names["queries"]
    assert (examples / "similarities.png").stat().st_size > 5000


def test_show_attention(run, examples):
    names, _ = run("show_attention.py", "--layer", "0")
    assert names["heads"].shape == (2, len(names["tokens"]), len(names["tokens"]))
    assert (examples / "attention.png").stat().st_size > 5000


@pytest.mark.long("examples")
def test_serve_model(run):
    _, lines = run("serve_model.py")
    assert any(line.startswith("serving_default(text) -> ") for line in lines)
    assert float(lines[-1].split(": ")[1]) < 1e-5


@pytest.mark.long("examples")
def test_label_emotions(run, examples):
    names, lines = run("label_emotions.py")
    assert "gratitude" in names["names"] and "macro F1" in "\n".join(lines)
    assert (examples / "emotion_thresholds.png").stat().st_size > 5000


@pytest.mark.long("examples")
def test_date_speeches(run, examples):
    names, _ = run("date_speeches.py")
    assert len(names["years"]) == len(names["test"][0])
    assert (examples / "years.png").stat().st_size > 5000


@pytest.mark.long("examples")
def test_guess_words(run):
    _, lines = run("guess_words.py")
    assert "God [MASK] America." in lines


@pytest.mark.long("examples")
def test_write_titles(run):
    names, lines = run("write_titles.py")
    assert len(names["written"]) == len(names["test_titles"]) == 16
    assert f"ROUGE-L {names['scores']['rouge_l']:.1f}" in "\n".join(lines)


@pytest.mark.long("examples")
def test_choose_endings(run):
    names, lines = run("choose_endings.py")
    assert [line[5:] for line in lines[-3:]] == [f"{names['prompt']} {e}" for e in names["endings"]]


@pytest.mark.long("examples")
def test_search_settings(run):
    names, lines = run("search_settings.py")
    assert len(names["study"].trials) == 8 and len(names["accuracies"]) == 3
    assert lines[-2] == f"best of 8 trials {names['study'].best_value:.3f}"
