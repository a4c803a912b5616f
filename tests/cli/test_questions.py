"""`finetune`, `evaluate` and `predict` on questions about contexts."""

import json

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


@pytest.fixture(scope="module")
def answering(workshop, tmp_path_factory):
    """Folder of a model and its data. Not to be written to."""
    folder = tmp_path_factory.mktemp("answering")
    write_squad(folder / "train.json", 96, seed=1)
    write_squad(folder / "dev.json", 24, seed=2)
    arguments = [
        *("finetune", "--task=qa", f"--checkpoint={workshop / 'checkpoint'}", "--epochs=6"),
        *(f"--train={folder / 'train.json'}", f"--dev={folder / 'dev.json'}", "--batch_size=16"),
        *("--learning_rate=5e-3", "--sequence_length=80", f"--output={folder / 'answerer.keras'}"),
    ]
    assert main(arguments) == 0
    return folder


def test_a_model_is_trained_and_evaluated(answering, run, tmp_path):
    arguments = ("--model", answering / "answerer.keras", "--input", answering / "dev.json")
    files = ("--json", tmp_path / "scores.json")
    status, out, err = run("evaluate", *arguments, *files)
    assert (status, err) == (0, "")
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert scores["questions"] == 24 and scores["f1"] > 80
    assert f"f1 {scores['f1']:.4f}" in out and "no_answer" in out
    assert scores["has_answer"]["exact_match"] > 0


def test_answers_as_lines(answering, run):
    arguments = ("--model", answering / "answerer.keras", "--input", answering / "dev.json")
    status, out, err = run("predict", *arguments)
    assert (status, err) == (0, "")
    read = json.loads((answering / "dev.json").read_text())["data"]
    for line, article in zip(map(json.loads, out.splitlines()), read, strict=True):
        assert list(line) == ["id", "question", "answer", "start", "end", "score", "null_odds"]
        context = article["paragraphs"][0]["context"]
        if line["answer"]:
            assert context[line["start"] : line["end"]] == line["answer"]
    status, out, err = run("predict", *arguments, "--format=tsv")
    assert (status, err) == (0, "") and len(out.splitlines()) == 25


@pytest.mark.long("serving")
@pytest.mark.backend("tensorflow")
def test_a_saved_model_answers_as_the_model(answering, run):
    saved = answering / "saved/1"
    models = (answering / "answerer.keras", saved)
    assert run("export", "--model", models[0], "--output", saved)[0] == 0
    outs = [run("predict", "--input", answering / "dev.json", "--model", m) for m in models]
    assert outs[0][0] == outs[1][0] == 0
    for line, served in zip(*(map(json.loads, out[1].splitlines()) for out in outs), strict=True):
        assert line["answer"] == served["answer"]
        assert line["score"] == pytest.approx(served["score"], abs=1e-4)
    check_half_characters(run, saved, answering)


def check_half_characters(run, model, folder):
    """JSON may hold them, and UTF-8 may not."""
    path, output = folder / "halves.json", folder / "halves.jsonl"
    write_squad(path, 2, seed=4)
    path.write_text(path.read_text().replace('"question": "', '"question": "\\ud83d '))
    arguments = ("--model", model, "--input", path)
    assert run("predict", *arguments, "--output", output, "--overwrite") == (0, "", "")
    status, out, err = run("predict", *arguments)
    assert (status, err) == (0, "") and output.read_text() == out
    assert json.loads(out.splitlines()[0])["question"].startswith("\ud83d ")


def test_half_characters(answering, run):
    check_half_characters(run, answering / "answerer.keras", answering)
    arguments = ("--model", answering / "answerer.keras", "--input", answering / "halves.json")
    assert run("evaluate", *arguments)[0] == 0


def test_one_question(answering, run, tmp_path):
    (tmp_path / "article.txt").write_text("the film was\nvery good . it was fine\n")
    arguments = ("--model", answering / "answerer.keras", "--input", tmp_path / "article.txt")
    status, out, err = run("predict", *arguments, "--question", "what was it")
    assert (status, err) == (0, "")
    assert json.loads(out)["answer"] == "very good" and json.loads(out)["start"] == 13
    table = tmp_path / "questions.tsv"
    table.write_text("context\tquestion\nit was very good\twas it\n")
    status, out, _ = run("predict", *arguments[:2], "--input", table)
    assert status == 0 and json.loads(out)["answer"] == "very good"
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
    # Some questions have no answer, and the checkpoint answers all. Its scores say so.
    status, out, err = run("evaluate", *arguments)
    assert status == 0 and "questions 24" in out, err


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
        ([*finetune, tmp_path / "wrong.json"], "question 2-1 has 1 answers"),
        (
            [*finetune, tmp_path / "all.json", "--dev", answering / "dev.json"],
            "has no answer, and this task answers every question",
        ),
        (
            [*finetune, tmp_path / "all.json", "--text_column=x"],
            "--text_column is for other tables",
        ),
        ([*finetune, tmp_path / "all.json", "--class_weight=balanced"], "Leave it out with --task"),
    ):
        status, _, err = run(*arguments)
        assert status in (1, 2) and message in err
    evaluate = ("evaluate", "--model", answering / "answerer.keras", "--input")
    status, _, err = run(*evaluate, tmp_path / "absent.json")
    assert status == 1 and "absent.json" in err
