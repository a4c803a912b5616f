"""Several models of one command line, or the folder of an ensemble, answer together."""

import json

import numpy as np
import pytest
from cli.small_files import list_files
from peer_weights import randomize
from small_tasks import make_task
from small_texts import make_reviews

import keras_bert_suite as kbs

TEXTS, LABELS = make_reviews(12)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """Three classifiers, the folder of their ensemble, and a labelled table."""
    folder = tmp_path_factory.mktemp("shelf")
    tasks = [randomize(make_task("texts")[0], seed) for seed in range(3)]
    for number, task in enumerate(tasks):
        task.save_to_preset(folder / f"model{number}")
    kbs.Ensemble(tasks, [3, 1, 0]).save_to_preset(folder / "ensemble")
    randomize(make_task("words")[0]).save_to_preset(folder / "tagger")
    rows = ["text\tlabel", *map("\t".join, zip(TEXTS, LABELS, strict=True))]
    (folder / "dev.tsv").write_text("\n".join(rows) + "\n")
    (folder / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    return folder


def test_several_models(run, shelf, tmp_path):
    models = [shelf / f"model{number}" for number in range(3)]
    tasks = [kbs.TextClassifier.from_preset(model) for model in models]
    wanted = kbs.Ensemble(tasks)
    status, out, err = run("predict", "--model", *models, "--input", shelf / "texts.txt")
    assert (status, err) == (0, "")
    rows = [line.split("\t") for line in out.splitlines()[1:]]
    assert [row[0] for row in rows] == wanted.predict_labels(TEXTS, verbose=0)
    probabilities = wanted.predict_probabilities(TEXTS, verbose=0).max(axis=1)
    np.testing.assert_allclose([float(row[1]) for row in rows], probabilities, atol=1e-4)
    files = ["--json", tmp_path / "scores.json", "--errors", tmp_path / "errors.jsonl"]
    dev = ["--input", shelf / "dev.tsv"]
    assert run("evaluate", "--model", *models, *dev, *files)[0] == 0
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert scores["accuracy"] == wanted.score(TEXTS, LABELS)["accuracy"]
    errors = (tmp_path / "errors.jsonl").read_text().splitlines()
    assert len(errors) == round((1 - scores["accuracy"]) * len(TEXTS))


def test_the_folder_of_an_ensemble(run, shelf):
    status, out, err = run("evaluate", "--model", shelf / "ensemble", "--input", shelf / "dev.tsv")
    assert (status, err) == (0, "")
    wanted = kbs.Ensemble.from_preset(shelf / "ensemble").score(TEXTS, LABELS)
    assert out.startswith(f"rows 12, accuracy {wanted['accuracy']:.4f}, ")
    status, out, _ = run("show", shelf / "ensemble")
    assert status == 0 and "probabilities of 3 tasks" in out


def test_models_that_do_not_go_together(run, shelf):
    models = [shelf / "model0", shelf / "tagger"]
    status, _, err = run("predict", "--model", *models, "--input", shelf / "texts.txt")
    assert status == 1 and "tasks[0] is a TextClassifier, and tasks[1] a TokenClassifier" in err
    assert "tagger" in list_files(shelf)
