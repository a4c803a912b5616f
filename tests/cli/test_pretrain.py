"""`keras-bert pretrain` and `keras-bert fill-mask`."""

import csv
import json
import random

import numpy as np
import pytest
from cli.small_files import list_files, save_tiny_checkpoint
from peer_weights import to_numpy
from small_texts import VOCABULARY, WORDS

import keras_bert_suite as kbs
from keras_bert_cli import main

SETTINGS = ("--size=tiny", "--batch_size=4", "--sequence_length=16", "--max_predictions=3")
STEPS = ("--steps=6", "--report_every=2", "--checkpoint_every=2", "--evaluation_batches=2")


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """Folder that `keras-bert prepare` wrote. Not to be written to."""
    folder = tmp_path_factory.mktemp("corpus")
    rng = random.Random(0)
    documents = [
        "\n".join(" ".join(rng.choices(WORDS, k=rng.randint(3, 8))) for _ in range(6))
        for _ in range(60)
    ]
    (folder / "corpus.txt").write_text("\n\n".join(documents) + "\n")
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    arguments = ["--input", str(folder / "corpus.txt"), "--vocab", str(folder / "vocab.txt")]
    assert main(["prepare", *arguments, "--output", str(folder / "shards"), "--workers=1"]) == 0
    return folder / "shards"


@pytest.fixture(scope="session")
def pretrained(corpus, tmp_path_factory):
    """Folder of a finished run. Not to be written to."""
    output = tmp_path_factory.mktemp("runs") / "run"
    arguments = ["--corpus", str(corpus), "--output", str(output), "--held_out=0.3"]
    assert main(["pretrain", *arguments, *SETTINGS, *STEPS]) == 0
    return output


def test_what_a_run_leaves(pretrained):
    assert {"checkpoints", "curves.png", "log.csv", "model", "settings.json"} == {
        path.name for path in pretrained.iterdir()
    }
    with open(pretrained / "log.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == ["2", "4", "6"]
    for name in ("mlm_loss", "nsp_accuracy", "perplexity", "val_mlm_loss", "val_nsp_accuracy"):
        assert all(float(row[name]) >= 0 for row in rows), name
    assert float(rows[0]["learning_rate"]) > float(rows[-1]["learning_rate"])
    assert (pretrained / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_a_finished_run_is_left_alone(run, corpus, pretrained):
    before = {path: path.read_bytes() for path in pretrained.rglob("*") if path.is_file()}
    arguments = ["--corpus", corpus, "--output", pretrained, "--held_out=0.3"]
    status, out, err = run("pretrain", *arguments, *SETTINGS, *STEPS)
    assert (status, err) == (0, "") and "is finished: 6 steps" in out
    status, _, err = run("pretrain", *arguments, *SETTINGS, *STEPS[1:], "--steps=8")
    assert status == 1 and "--steps was 6 and is 8" in err
    assert {path: path.read_bytes() for path in pretrained.rglob("*") if path.is_file()} == before


def test_fill_mask(run, pretrained):
    status, out, err = run(
        "fill-mask", "--model", pretrained / "model", "--text=the [MASK] was good", "--top_k=2"
    )
    assert (status, err) == (0, "")
    text, guesses = out.splitlines()
    tokens = guesses.split()[::2]
    assert text == "the [MASK] was good" and len(tokens) == 2 and set(tokens) <= set(VOCABULARY)
    status, _, err = run("fill-mask", "--model", pretrained / "model", "--text=no mask")
    assert status == 1 and "has no [MASK]" in err


@pytest.mark.parametrize("to", ["huggingface", "google_tf1", "preset"])
def test_heads_go_along(run, pretrained, tmp_path, to):
    arguments = ["--input", pretrained / "model", "--to", to, "--output", tmp_path / "model"]
    assert run("convert", *arguments)[::2] == (0, "")
    guess = ("fill-mask", "--text=the [MASK] was good", "--model")
    assert run(*guess, tmp_path / "model") == run(*guess, pretrained / "model")


def test_a_run_goes_on_without_pairs(run, corpus, pretrained, tmp_path):
    """And with longer sequences: the second phase of Google's recipe."""
    status, out, err = run(
        *("pretrain", "--corpus", corpus, "--checkpoint", pretrained / "model"),
        *("--output", tmp_path / "run", "--steps=2", "--batch_size=4", "--sequence_length=48"),
        *("--held_out=0", "--mode=full_sentences"),
    )
    assert status == 0, err
    before, after = (
        kbs.Pretrainer.from_preset(str(run_folder / "model"))
        for run_folder in (pretrained, tmp_path / "run")
    )
    assert after.next_sentence is None and after.preprocessor.sequence_length == 48
    moved = [
        np.abs(to_numpy(new) - to_numpy(old)).max(axis=-1)
        for old, new in zip(before.backbone.weights, after.backbone.weights, strict=True)
        if "position_embedding" in old.path
    ]
    assert (moved[0][:48] > 1e-5).all() and not (moved[0][48:] > 1e-5).any()


def test_it_goes_on_from_a_checkpoint(run, corpus, tmp_path):
    save_tiny_checkpoint(tmp_path / "checkpoint")
    status, out, err = run(
        *("pretrain", "--corpus", corpus, "--checkpoint", tmp_path / "checkpoint"),
        *("--output", tmp_path / "run", "--steps=2", "--batch_size=4", "--sequence_length=16"),
        *("--held_out=0", "--optimizer=lamb", "--mode=sop", "--unit=word"),
    )
    assert status == 0, err
    assert "step 2/2" in out
    config = json.loads((tmp_path / "run" / "model" / "config.json").read_text())
    assert config["config"]["num_layers"] == 1


@pytest.mark.backend_free
@pytest.mark.parametrize(
    ("flags", "status", "message"),
    [
        (["--report_every=4"], 2, "--report_every=4 does not divide --steps=6"),
        (["--corpus=absent"], 1, "absent"),
        (["--batch_size=100000"], 1, "batch_size=100000 is more than"),
        (["--output=full"], 1, "is no run of keras-bert pretrain"),
    ],
)
def test_bad_input(run, corpus, tmp_path, monkeypatch, flags, status, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").touch()
    arguments = ["--corpus", corpus, "--output", "run", *SETTINGS, "--steps=6", *flags]
    got, _, err = run("pretrain", *arguments)
    assert got == status and message in err
    assert "full/thesis.txt" in list_files(tmp_path)


@pytest.mark.backend_free
def test_a_checkpoint_of_another_vocabulary(run, corpus, tmp_path):
    save_tiny_checkpoint(tmp_path / "checkpoint")
    vocabulary = (tmp_path / "checkpoint" / "vocab.txt").read_text().replace("film", "movie")
    (tmp_path / "checkpoint" / "vocab.txt").write_text(vocabulary)
    status, _, err = run(
        *("pretrain", "--corpus", corpus, "--checkpoint", tmp_path / "checkpoint"),
        *("--output", tmp_path / "run", "--steps=2", "--sequence_length=16"),
    )
    assert status == 1 and "tokenizers of different vocabulary" in err
