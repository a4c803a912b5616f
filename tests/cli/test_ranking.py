"""`finetune`, `evaluate` and `predict` on tables of queries and candidates."""

import json

import numpy as np
import pytest
from small_texts import make_reviews

from keras_bert_cli import main


def write_clicks(path, num_queries, seed):
    """Three candidates of each query, all first ones first. The relevant one has "good"."""
    texts = [text.replace("good", "bad") for text in make_reviews(3 * num_queries, seed)[0]]
    rows = [
        (f"the film {'very ' * (query % 7)}{query}", f"{'good ' * clicked}{texts.pop()}", clicked)
        for place in range(3)
        for query in range(num_queries)
        for clicked in [int((query + seed) % 3 == place)]
    ]
    lines = ("\t".join(map(str, row)) for row in [("asked", "title", "clicked"), *rows])
    path.write_text("\n".join(lines) + "\n")


COLUMNS = ("--text_column=asked", "--text_pair_column=title", "--label_column=clicked")


@pytest.fixture(scope="module")
def ranking(workshop, tmp_path_factory):
    """Folder of a model and its data. Not to be written to."""
    folder = tmp_path_factory.mktemp("ranking")
    write_clicks(folder / "train.tsv", 48, seed=1)
    write_clicks(folder / "dev.tsv", 16, seed=2)
    arguments = [
        *("finetune", "--task=ranking", f"--checkpoint={workshop / 'checkpoint'}", "--epochs=6"),
        *(f"--train={folder / 'train.tsv'}", f"--dev={folder / 'dev.tsv'}", "--batch_size=8"),
        *("--learning_rate=5e-3", "--sequence_length=32", f"--output={folder / 'ranker.keras'}"),
    ]
    assert main([*arguments, *COLUMNS]) == 0
    return folder


def test_a_model_is_trained_and_evaluated(ranking, run, tmp_path):
    model = ("--model", ranking / "ranker.keras", "--input", ranking / "dev.tsv")
    status, out, err = run("evaluate", *model, COLUMNS[2], "--json", tmp_path / "scores.json")
    assert (status, err) == (0, "") and "ndcg@10" in out
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert scores["rows"] == 16 and scores["mrr"] > 0.8 and scores["recall@5"] == 1
    status, out, err = run("predict", *model)
    assert (status, err) == (0, "") and out.startswith("relevance\n")
    relevance = np.array(out.split()[1:], float).reshape(3, 16)
    clicked = [line[-1] == "1" for line in (ranking / "dev.tsv").read_text().splitlines()[1:]]
    ranks = 1 + (relevance > relevance.T.ravel()[np.array(clicked).reshape(3, 16).T.ravel()]).sum(0)
    assert np.mean(1 / ranks) == pytest.approx(scores["mrr"])
    status, out, err = run("predict", *model, "--format=jsonl")
    row = json.loads(out.splitlines()[0])
    assert set(row) == {"asked", "title", "relevance"} and row["relevance"] == relevance[0, 0]


def test_what_is_refused(ranking, run, workshop, tmp_path):
    (tmp_path / "alone.tsv").write_text("query\ttext\tlabel\na\tb\t1\nc\td\t0\nc\te\t1\n")
    train = ("finetune", "--task=ranking", "--checkpoint", workshop / "checkpoint")
    train += ("--train", tmp_path / "alone.tsv", "--output", tmp_path / "other.keras")
    for arguments, message in (
        (train, "Row 0, 'a', has one candidate, as have 1 of 2 rows"),
        ((*train, "--text_column=query"), "--task ranking needs --text_column"),
        ((*train, "--class_weight=balanced"), "--class_weight is for labels"),
    ):
        status, _, err = run(*arguments)
        assert status in (1, 2) and message in err, err
