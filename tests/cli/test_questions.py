"""`finetune`, `evaluate` and `predict` on questions about contexts."""

import json
import sys

import pytest
from small_questions import NO_ANSWER, make_questions

import keras_bert_suite as kbs
from keras_bert_cli import main


def write_squad(path, num_rows, seed, answerable=0.7):
    """A file of SQuAD's form with an article for each question."""
    articles = []
    for row, (question, context, span) in enumerate(
        zip(*make_questions(num_rows, seed, answerable=answerable), strict=True)
    ):
        answers = [{"text": context[slice(*span)], "answer_start": span[0]}]
        entry = {"id": f"{seed}-{row}", "question": question, "answers": answers}
        if span == NO_ANSWER:
            entry.update(answers=[], is_impossible=True)
        articles.append({"paragraphs": [{"context": context, "qas": [entry]}]})
    path.write_text(json.dumps({"version": "v2.0", "data": articles}))


# The command line does the same on every backend.


@pytest.fixture(scope="module")
def answering(workshop, tmp_path_factory):
    """Folder of a model, its SavedModel and its data. Not to be written to."""
    folder = tmp_path_factory.mktemp("answering")
    write_squad(folder / "train.json", 96, seed=1)
    write_squad(folder / "dev.json", 24, seed=2)
    arguments = [
        *("finetune", "--task=qa", f"--checkpoint={workshop / 'checkpoint'}", "--epochs=6"),
        *(f"--train={folder / 'train.json'}", f"--dev={folder / 'dev.json'}", "--batch_size=16"),
        *("--learning_rate=5e-3", "--sequence_length=80", f"--output={folder / 'answerer.keras'}"),
        f"--export={folder / 'saved' / '1'}",
    ]
    assert main(arguments) == 0
    return folder


def test_a_model_is_trained_and_evaluated(answering, run, tmp_path):
    arguments = ("--model", answering / "answerer.keras", "--input", answering / "dev.json")
    files = ("--json", tmp_path / "scores.json", "--png", tmp_path / "scores.png")
    status, out, err = run("evaluate", *arguments, *files)
    assert (status, err) == (0, "")
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert scores["questions"] == 24 and scores["f1"] > 80
    assert f"{scores['f1']:.2f}" in out and "without an answer" in out
    assert (tmp_path / "scores.png").read_bytes()[:4] == b"\x89PNG"
    # The SavedModel answers as the model does.
    saved = ("--model", answering / "saved/1", "--input", answering / "dev.json", "--task=qa")
    assert run("evaluate", *saved)[1] == out.partition("wrote")[0]
    # All answers have two words or three.
    files = ("--json", tmp_path / "short.json", "--max_answer_length=1")
    assert run("evaluate", *arguments, *files)[::2] == (0, "")
    found = json.loads((tmp_path / "short.json").read_text())["has_answer"]
    assert found["exact_match"] == 0 < scores["has_answer"]["exact_match"]
    status, _, err = run("evaluate", *saved, "--max_answer_length=1")
    assert status == 2 and "--max_answer_length is a part of the graph" in err


def test_answers_as_lines(answering, run, tmp_path):
    lines = {}
    for model in ("answerer.keras", "saved/1"):
        arguments = ("--model", answering / model, "--input", answering / "dev.json")
        status, out, err = run("predict", *arguments)
        assert (status, err) == (0, "")
        lines[model] = list(map(json.loads, out.splitlines()))
    read = json.loads((answering / "dev.json").read_text())["data"]
    for line, served, article in zip(*lines.values(), read, strict=True):
        assert list(line) == ["id", "question", "answer", "start", "end", "score", "null_odds"]
        assert line["answer"] == served["answer"]
        assert line["score"] == pytest.approx(served["score"], abs=1e-4)
        context = article["paragraphs"][0]["context"]
        if line["answer"]:
            assert context[line["start"] : line["end"]] == line["answer"]
    status, out, err = run("predict", *arguments, "--format=tsv")
    assert (status, err) == (0, "") and len(out.splitlines()) == 25


def test_half_characters(answering, run, tmp_path):
    """JSON may hold them, and UTF-8 may not."""
    write_squad(tmp_path / "questions.json", 2, seed=4)
    text = (
        (tmp_path / "questions.json").read_text().replace('"question": "', '"question": "\\ud83d ')
    )
    (tmp_path / "questions.json").write_text(text)
    for model in ("answerer.keras", "saved/1"):
        arguments = ("--model", answering / model, "--input", tmp_path / "questions.json")
        output = ("--output", tmp_path / f"{model}.jsonl")
        assert run("predict", *arguments, *output) == (0, "", "")
        status, out, err = run("predict", *arguments)
        assert (status, err) == (0, "") and (tmp_path / f"{model}.jsonl").read_text() == out
        assert json.loads(out.splitlines()[0])["question"].startswith("\ud83d ")
        assert run("evaluate", *arguments, "--task=qa")[0] == 0


def test_one_question(answering, run, tmp_path, monkeypatch):
    (tmp_path / "article.txt").write_text("the film was\nvery good . it was fine\n")
    arguments = ("--model", answering / "answerer.keras", "--input", tmp_path / "article.txt")
    status, out, err = run("predict", *arguments, "--question", "what was it")
    assert (status, err) == (0, "")
    assert json.loads(out)["answer"] == "very good" and json.loads(out)["start"] == 13
    table = tmp_path / "questions.tsv"
    table.write_text("context\tquestion\nit was very good\twas it\n")
    for model in ("answerer.keras", "saved/1"):
        status, out, _ = run("predict", "--model", answering / model, "--input", table)
        assert status == 0 and json.loads(out)["answer"] == "very good"
    # On a terminal the context is shown, with its answer marked.
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda stream: True, raising=False)
    status, out, _ = run("predict", *arguments, "--question", "what was it")
    assert status == 0 and "the film was" in out and not out.startswith("{")
    status, _, err = run("predict", *arguments)
    assert status == 2 and "a question needs its context" in err
    status, _, err = run("predict", *arguments[:2], "--input", table, "--question=who")
    assert status == 2 and "--question is about one text" in err


def test_heads_of_checkpoints(answering, run, tmp_path):
    """A head for answers is kept by `convert`, and found by `predict`."""
    arguments = ("--input", answering / "answerer.keras", "--to=huggingface")
    assert run("convert", *arguments, "--output", tmp_path / "hf")[::2] == (0, "")
    assert kbs.QuestionAnswerer.from_preset(tmp_path / "hf").no_answer_threshold is None
    arguments = ("--model", tmp_path / "hf", "--input", answering / "dev.json")
    status, out, err = run("predict", *arguments)
    assert (status, err) == (0, "") and len(out.splitlines()) == 24


def test_wrong_questions(answering, run, workshop, tmp_path):
    write_squad(tmp_path / "all.json", 8, seed=3, answerable=1)
    content = json.loads((answering / "dev.json").read_text())
    content["data"][1]["paragraphs"][0]["qas"][0]["answers"] = [{"text": "x", "answer_start": 0}]
    (tmp_path / "wrong.json").write_text(json.dumps(content))
    finetune = [
        *("finetune", "--task=qa", "--checkpoint", workshop / "checkpoint"),
        *("--output", tmp_path / "out.keras", "--train"),
    ]
    for arguments, message in (
        ([*finetune, tmp_path / "wrong.json"], "article 2, paragraph 1, question 1 (2-1)"),
        ([*finetune, tmp_path / "all.json", "--dev", answering / "dev.json"], "it has no answer"),
        ([*finetune, tmp_path / "all.json", "--text_column=x"], "--text_column is for tables"),
        ([*finetune, tmp_path / "all.json", "--class_weight=balanced"], "Leave it out with --task"),
    ):
        status, _, err = run(*arguments)
        assert status in (1, 2) and message in err
    evaluate = ("evaluate", "--model", answering / "answerer.keras", "--input")
    status, _, err = run(*evaluate, tmp_path / "absent.json")
    assert status == 1 and "absent.json" in err
