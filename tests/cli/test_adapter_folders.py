"""The folder of an adapter, which holds no base, in the commands that take a model."""

import json
import shutil

import keras
import pytest
from safetensors.numpy import load_file, save_file

import keras_bert_suite as kbs
from keras_bert_cli.saved_tasks import open_task

RECIPE = ["--text_column=sentence", "--epochs=1", "--learning_rate=1e-2", "--seed=3"]


@pytest.fixture(scope="module")
def adapters(workshop, tmp_path_factory):
    """Folder of `films`, an adapter, and of `films.keras`, the whole task."""
    from keras_bert_cli import main

    folder = tmp_path_factory.mktemp("adapters")
    files = [f"--checkpoint={workshop / 'checkpoint'}", f"--train={workshop / 'train.tsv'}"]
    output = [f"--output={folder / 'films.keras'}", f"--adapter={folder / 'films'}"]
    adapt = ["--adapt=prompt", "--adapt_values=length=2", "--sequence_length=16"]
    assert main(["finetune", *files, *output, *adapt, *RECIPE]) == 0
    return folder


def test_it_answers_as_the_whole_task(run, adapters, workshop, tmp_path):
    adapter = ["--model", adapters / "films", "--base", workshop / "checkpoint"]
    whole = ["--model", adapters / "films.keras"]
    texts = ["--input", workshop / "dev.tsv", "--text_column=sentence"]
    for command, flags in (("predict", ["--format=jsonl"]), ("evaluate", ())):
        wanted = run(command, *whole, *texts, *flags)
        assert wanted[0] == 0 and wanted[1]
        assert run(command, *adapter, *texts, *flags) == wanted
    two = ["--model", adapters / "films", adapters / "films.keras", *adapter[2:]]
    got = run("predict", *two, *texts, "--format=jsonl")
    wanted = run("predict", *whole, *texts, "--format=jsonl")
    for line, other in zip(*(x[1].splitlines() for x in (got, wanted)), strict=True):
        shares = (json.loads(part)["probabilities"] for part in (line, other))
        assert [*next(shares).values()] == pytest.approx([*next(shares).values()], abs=1e-5)


def test_its_base_is_named(run, adapters, workshop, tmp_path):
    texts = ["--input", workshop / "dev.tsv", "--text_column=sentence"]
    model = ["--model", adapters / "films"]
    for command in ("predict", "evaluate"):
        status, _, err = run(command, *model, *texts)
        assert status == 1 and "films holds an adapter on checkpoint, whose place" in err
        assert "Pass the path of this checkpoint: --base" in err
        status, _, err = run(command, *model, *texts, "--base=absent")
        assert status == 1 and "absent does not exist" in err
    shutil.copytree(workshop / "checkpoint", tmp_path / "other")
    tensors = load_file(tmp_path / "other/model.safetensors")
    save_file({name: x + 0.1 for name, x in tensors.items()}, tmp_path / "other/model.safetensors")
    status, _, err = run("predict", *model, *texts, "--base", tmp_path / "other")
    assert status == 1 and "was trained on other weights than those of this BertBackbone" in err
    status, _, err = run(
        "predict", "--model", adapters / "films.keras", *texts, "--base", workshop / "checkpoint"
    )
    assert status == 2 and "--base is for the folder of an adapter, which has adapter.json" in err
    status, _, err = run("predict", "--model", adapters / "films.keras", *texts, "--adapter=films")
    assert status == 2 and "--adapter is for a SavedModel of adapters" in err
    status, _, err = run("show", "--model", adapters / "films")
    assert status == 1 and "holds an adapter, and not the model that it was trained on" in err
    status, _, err = run("embed", *model, *texts, "--base=hf://a/b", "--output", tmp_path / "a.npy")
    assert status == 1 and "films holds the adapter of a TextClassifier, wanted one of" in err


def test_an_address_that_it_names_is_opened(adapters, workshop, monkeypatch, tmp_path):
    shutil.copytree(adapters / "films", tmp_path / "films")
    (tmp_path / "films/SHA256SUMS").unlink()
    file = tmp_path / "films/adapter.json"
    description = json.loads(file.read_text())
    description["base"]["name"] = "hf://owner/name"
    file.write_text(json.dumps(description))
    opened = []

    def from_adapter(path, base):
        opened.append(base)

    monkeypatch.setattr(kbs.TextClassifier, "from_adapter", from_adapter)
    open_task(str(tmp_path / "films"))
    open_task(str(tmp_path / "films"), base="here")
    assert opened == ["hf://owner/name", "here"]


def test_a_folder_of_peft_names_no_labels(run, adapters, workshop, tmp_path):
    task = keras.saving.load_model(adapters / "films.keras")
    task.save_peft(tmp_path / "peft", base="owner/name")
    status, _, err = run("predict", "--model", tmp_path / "peft", "--input", workshop / "dev.tsv")
    assert status == 1 and "is a folder of peft, which does not name labels" in err
