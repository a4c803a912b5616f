"""What `predict` makes of the answers of a SavedModel, by its documented outputs.

No TensorFlow is needed: the answers stand here, as `serving/signatures.py` describes them, and the
head in `task.json`. Real SavedModels are in test_export.py, and of each kind in the long part
"serving".
"""

import json

import numpy as np
import pytest
from cli.kind_cases import CASES

from keras_bert_cli import ask_saved_model

#: --task -> what `task.json` says of the task.
DESCRIPTIONS = {name: case.export for name, case in CASES.items()}
DESCRIPTIONS["masks"] = {"head": "MaskedLM", "task": "MyMaskedLM"}

#: --task -> the outputs for two rows, a row a batch; and the lines of `predict`.
ANSWERS = {name: (case.outputs, case.answers) for name, case in CASES.items()}

TEXTS = ["a good film", "it was bad"]
TABLES = {name: case.rows for name, case in CASES.items() if case.rows}


@pytest.fixture
def served(tmp_path, monkeypatch):
    """function(task): the path of a SavedModel whose answers stand in `ANSWERS`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    for name, text in TABLES.values():
        (tmp_path / name).write_text(text)
    extra = tmp_path / "saved" / "assets.extra"
    extra.mkdir(parents=True)
    (tmp_path / "saved" / "saved_model.pb").touch()

    def serve(task):
        outputs, _ = ANSWERS[task]
        (extra / "task.json").write_text(json.dumps(DESCRIPTIONS[task]))

        def load(model, path, adapter=None):
            model.description = said = ask_saved_model.read_description(path, adapter)
            model.label_names, model.problem_type = said.get("labels"), said.get("problem_type")
            model.input_names = ["context", "question"] if task == "qa" else ["text"]

        def answer(model, columns, batch_size):
            assert all(len(column) == 2 for column in columns.values()) and batch_size == 1
            for row in range(2):
                batch = {name: values[row : row + 1] for name, values in outputs.items()}
                if "num_labels" in batch:  # As many columns as the batch has labels.
                    batch["labels"] = batch["labels"][:, : batch["num_labels"].max()]
                yield batch

        monkeypatch.setattr(ask_saved_model.SavedModel, "__init__", load)
        monkeypatch.setattr(ask_saved_model.SavedModel, "answer", answer)
        return tmp_path / "saved"

    return serve


@pytest.mark.parametrize("task", ANSWERS)
def test_the_kind_is_that_of_the_head(run, served, task):
    name = TABLES[task][0] if task in TABLES else "texts.txt"
    arguments = ("predict", "--model", served(task), "--input", name, "--format=jsonl")
    status, out, err = run(*arguments, "--batch_size=1")
    assert (status, err) == (0, "")
    lines = list(map(json.loads, out.splitlines()))
    for line, wanted in zip(lines, ANSWERS[task][1], strict=True):
        assert line | wanted == line
    if task not in TABLES:
        assert [line["text"] for line in lines] == TEXTS


@pytest.mark.parametrize("task", CASES)
def test_lines_of_a_table(run, served, task):
    name = TABLES[task][0] if task in TABLES else "texts.txt"
    flags = ("--input", name, "--format=tsv", "--batch_size=1")
    status, out, err = run("predict", "--model", served(task), *flags)
    if CASES[task].table is None:
        assert status == 2 and "Choose --format jsonl" in err
    else:
        assert (status, out) == (0, "\n".join([*CASES[task].table, ""]))


def test_an_export_draws_nothing(run, served):
    arguments = ("--model", served("causal_lm"), "--input", "texts.txt", "--top_k=3")
    status, _, err = run("predict", *arguments)
    assert status == 2 and "an export, whose answers do not change" in err


def test_a_saved_model_of_another_head_or_origin(run, served, monkeypatch):
    monkeypatch.setitem(ANSWERS, "masks", ({"labels": np.array([b"a", b"b"])}, []))
    model = served("masks")
    status, _, err = run("predict", "--model", model, "--input", "texts.txt")
    assert status == 1 and "holds the export of a MyMaskedLM. Wanted a model" in err
    (model / "assets.extra" / "task.json").unlink()
    status, _, err = run("predict", "--model", model, "--input", "texts.txt")
    assert status == 1 and "task.json does not say what" in err and "Export the task again" in err
