"""`keras-bert pretrain` and `keras-bert fill-mask`."""

import argparse
import csv
import json
import os
import shutil
import signal
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from cli.small_files import MODEL, SETTINGS, STEPS, list_files, save_tiny_checkpoint
from small_texts import VOCABULARY

from keras_bert_cli import pretrain
from keras_bert_cli.command_flags import Flags
from keras_bert_cli.objectives import check_tokenizer
from keras_bert_cli.pretraining_report import PretrainingReport
from keras_bert_suite import Pretrainer, WordPieceTokenizer
from keras_bert_suite.corpus import read_tokenizer
from keras_bert_suite.corpus.preparation import prepare_corpus
from keras_bert_suite.files import folder_lock
from keras_bert_suite.files.atomic_file import parse_sealed_json, write_sealed_json
from keras_bert_suite.runs.run_checkpoints import read_arrays


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
    config = json.loads((pretrained / "model" / "config.json").read_text())["config"]
    assert [config[name] for name in ("dropout", "attention_dropout", "initializer_range")] == [
        *(0, 0, 0.05)
    ]


def test_a_finished_run_is_left_alone(run, corpus, pretrained):
    before = {path: path.read_bytes() for path in pretrained.rglob("*") if path.is_file()}
    arguments = ["--corpus", corpus, "--output", pretrained, "--held_out=0.3"]
    status, out, err = run("pretrain", *arguments, *SETTINGS, *MODEL, *STEPS)
    assert (status, err) == (0, "") and "is finished: 6 steps" in out
    status, _, err = run("pretrain", *arguments, *SETTINGS, *MODEL, *STEPS[1:], "--steps=4")
    assert status == 1 and "--steps was 6 and is 4" in err
    status, _, err = run("pretrain", *arguments, *SETTINGS, *MODEL, *STEPS[1:], "--steps=9")
    assert status == 2 and "--report_every=2 does not divide --steps=9; choose --steps=10" in err
    assert {path: path.read_bytes() for path in pretrained.rglob("*") if path.is_file()} == before


def test_two_runs_on_one_folder(run, corpus, tmp_path, monkeypatch):
    """The second says which folder, and leaves it as it is; killed runs do not hold it."""
    monkeypatch.setattr(folder_lock, "SECONDS_TO_WAIT", 0)
    output = tmp_path / "run"
    output.mkdir()
    # What a run leaves that is killed as it begins.
    (output / ".lock").write_text("process 1 on another")
    (output / ".settings.json.0123.tmp").write_text("{")
    arguments = ["pretrain", "--corpus", corpus, "--output", output, *SETTINGS, *STEPS]
    with folder_lock.lock_folder(output):
        before = list_files(output)
        status, _, err = run(*arguments)
        assert status == 1 and err.count("\n") == 1
        assert f"{output} is being written by another run, process {os.getpid()} on" in err
        assert "Wait until it ends, or write to another folder." in err
        assert list_files(output) == before
    values = Flags("pretrain", pretrain).parse(list(map(str, arguments[1:])))
    with pretrain.begin_run(values, output):
        assert (output / "settings.json").exists()
        # A flipped bit in "finished": the run would seem to be done.
        content = (output / "settings.json").read_text()
        (output / "settings.json").write_text(content.replace('"finished": 0', '"finished": 6'))
        status, _, err = run(*arguments)
        assert status == 1 and "settings.json does not have the checksum under" in err


def test_a_run_is_prolonged(run, corpus, tmp_path, monkeypatch):
    """With more steps, also when it has finished and when it is killed on the way."""

    def interrupt(report, epoch, logs=None):
        raise KeyboardInterrupt

    def read_log():
        with open(tmp_path / "run" / "log.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        return [(int(row["step"]), float(row["learning_rate"])) for row in rows]

    arguments = ["--corpus", corpus, "--output", tmp_path / "run", "--held_out=0", *SETTINGS]
    arguments += ["--warmup_steps=0", "--learning_rate=0.6", "--report_every=2"]
    assert run("pretrain", *arguments, "--steps=4")[0] == 0
    assert read_log() == [(2, pytest.approx(0.3)), (4, 0)]
    before = (tmp_path / "run/model/model.weights.h5").read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(PretrainingReport, "on_epoch_begin", interrupt)
        assert run("pretrain", *arguments, "--steps=8")[0] == 130
    assert (tmp_path / "run/model/model.weights.h5").read_bytes() == before
    # --report_every is that of the run.
    status, out, err = run("pretrain", *arguments[:-1], "--steps=8")
    assert status == 0, err
    assert read_log()[2:] == [(6, pytest.approx(0.15)), (8, 0)]
    assert (tmp_path / "run/model/model.weights.h5").read_bytes() != before
    assert "is finished: 8 steps" in run("pretrain", *arguments, "--steps=8")[1]


def test_steps_that_are_taken_again_have_one_line(tmp_path):
    """A run that goes on from a checkpoint repeats the steps after it."""
    report = PretrainingReport(tmp_path, tokens_per_step=8, steps_per_epoch=2, total_steps=4)
    report.set_model(SimpleNamespace(optimizer=SimpleNamespace(learning_rate=0.1)))
    for loss, epoch in enumerate((0, 1, 0, 1)):
        report.on_epoch_begin(epoch)
        report.on_train_batch_end(0)
        report.on_epoch_end(epoch, {"loss": loss})
    assert [(row["step"], row["loss"]) for row in report.read_log()] == [("2", "2.0"), ("4", "3.0")]


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


@pytest.mark.parametrize("to", ["huggingface", "google_tf1"])
def test_heads_go_along(run, pretrained, tmp_path, to):
    arguments = ["--input", pretrained / "model", "--to", to, "--output", tmp_path / "model"]
    assert run("convert", *arguments)[::2] == (0, "")
    guess = ("fill-mask", "--text=the [MASK] was good", "--model")
    assert run(*guess, tmp_path / "model") == run(*guess, pretrained / "model")


@pytest.mark.parametrize("mode", ["sop", "full_sentences"])
def test_it_goes_on_from_a_checkpoint(run, corpus, tmp_path, mode):
    save_tiny_checkpoint(tmp_path / "checkpoint")
    status, out, err = run(
        *("pretrain", "--corpus", corpus, "--checkpoint", tmp_path / "checkpoint"),
        *("--output", tmp_path / "run", "--steps=2", "--batch_size=4", "--sequence_length=16"),
        *("--held_out=0", "--optimizer=lamb", f"--mode={mode}", "--unit=word"),
    )
    assert status == 0, err
    (line,) = [line for line in out.splitlines() if line.startswith("step 2/2")]
    assert ["mlm_accuracy" in line, "nsp_accuracy" in line] == [True, mode == "sop"]
    config = json.loads((tmp_path / "run" / "model" / "config.json").read_text())
    assert config["config"]["num_layers"] == 1


def test_corpora_are_mixed(run, corpus, tmp_path):
    copy, other = tmp_path / "copy", tmp_path / "other"
    shutil.copytree(corpus, copy)
    arguments = ["--output", tmp_path / "run", *SETTINGS, *MODEL, *STEPS, "--held_out=0.3"]
    status, out, err = run("pretrain", "--corpus", f"{corpus}=0.75,{copy}=0.25", *arguments)
    assert status == 0, err
    assert "120 documents" in out and (tmp_path / "run/model").exists()

    shutil.copytree(corpus, other)
    manifest = parse_sealed_json((other / "manifest.json").read_bytes())
    manifest["tokenizer"]["lowercase"] = not manifest["tokenizer"]["lowercase"]
    write_sealed_json(other / "manifest.json", manifest)
    arguments[1] = tmp_path / "failed"
    for shares, wanted, message in (
        (f"{corpus}=0.75,{copy}=0.5", 2, "sum is 1.25; the shares must be over 0"),
        (f"{corpus}=0.95,{copy}=0.05", 1, "less than a row of a batch of 4"),
        (f"{corpus}=0.75,{copy / 'none'}=0.25", 1, "none holds no finished corpus"),
        (f"{corpus}=0.75,{other}=0.25", 1, "other was prepared with another tokenizer than"),
    ):
        status, _, err = run("pretrain", "--corpus", shares, *arguments)
        assert status == wanted and message in err
    assert not (tmp_path / "failed").exists()


@pytest.mark.long("faults")
def test_sigterm(run, corpus, tmp_path, monkeypatch):
    """What a run has written that was stopped within its second line is what one left alone has."""

    def read_rows(folder):
        with open(folder / "log.csv", newline="") as file:
            return [{**row, "tokens/s": None} for row in csv.DictReader(file)]

    def terminate_third_step(report, batch, logs=None):
        end(report, batch, logs)
        if (report._epoch, report._steps) == (1, 1):
            os.kill(os.getpid(), signal.SIGTERM)

    end = PretrainingReport.on_train_batch_end
    arguments = ["--corpus", corpus, "--output", tmp_path / "run", "--held_out=0.3"]
    arguments += [*SETTINGS, *STEPS, "--report_every=3"]
    status, out, err = run("pretrain", *arguments)
    assert status == 0, err
    wanted = read_rows(tmp_path / "run")
    arguments[3] = tmp_path / "stopped"
    with monkeypatch.context() as patched:
        patched.setattr(PretrainingReport, "on_train_batch_end", terminate_third_step)
        status, out, err = run("pretrain", *arguments)
    assert (status, err) == (143, "") and "stopped; the same command resumes the run" in out
    assert read_rows(tmp_path / "stopped") == wanted[:1]
    assert not (tmp_path / "stopped" / "model").exists()
    status, _, err = run("pretrain", *arguments)
    assert status == 0, err
    assert read_rows(tmp_path / "stopped") == wanted


def read_positions(path):
    """The position embeddings of a preset."""
    pretrainer = Pretrainer.from_preset(str(path))
    return keras.ops.convert_to_numpy(pretrainer.backbone.embeddings.position_embedding.embeddings)


def read_scalars(folder):
    """[(name, step)] of all event files of TensorBoard in a folder, the oldest first."""
    tf = pytest.importorskip("tensorflow")
    files = sorted(folder.glob("events.*"), key=lambda path: path.stat().st_mtime_ns)
    events = [e for path in files for e in tf.compat.v1.train.summary_iterator(str(path))]
    return [(value.tag, event.step) for event in events for value in event.summary.value]


@pytest.mark.long("faults")
def test_tensorboard(run, corpus, tmp_path, monkeypatch):
    """The steps of a run that was interrupted go on in a second file.

    The newest checkpoint is of the last batch of the first epoch, so the run that resumes validates
    this epoch and logs it again.
    """
    pytest.importorskip("tensorboard")

    def interrupt_second_epoch(report, epoch, logs=None):
        if epoch == 1:
            raise KeyboardInterrupt
        begin(report, epoch, logs)

    begin = PretrainingReport.on_epoch_begin
    arguments = ["--corpus", corpus, "--output", tmp_path / "run", "--held_out=0.3"]
    arguments += [*SETTINGS, *STEPS, "--tensorboard"]
    with monkeypatch.context() as patched:
        patched.setattr(PretrainingReport, "on_epoch_begin", interrupt_second_epoch)
        assert run("pretrain", *arguments)[0] == 130
    status, _, err = run("pretrain", *arguments)
    assert status == 0, err
    training = read_scalars(tmp_path / "run" / "tensorboard" / "train")
    assert [step for name, step in training if name == "epoch_mlm_loss"] == [0, 0, 1, 2]
    validation = read_scalars(tmp_path / "run" / "tensorboard" / "validation")
    assert [step for name, step in validation if name == "epoch_mlm_loss"] == [0, 0, 1, 2]
    name = "evaluation_mlm_loss_vs_iterations"
    assert [step for tag, step in validation if tag == name] == [2, 2, 4, 6]


def test_accumulated_batches_are_steps(run, corpus, tmp_path, monkeypatch):
    """The schedule, the log and the checkpoints count batches; an update is of two of them."""
    folders = []

    def log_to(folder):
        folders.append(folder)
        return keras.callbacks.Callback()

    monkeypatch.setattr(keras.callbacks, "TensorBoard", log_to)
    arguments = ["--corpus", corpus, "--output", tmp_path / "run", "--held_out=0"]
    # A warm-up of two batches is one update, and that of the first line has the whole rate.
    arguments += [*SETTINGS, *STEPS, "--warmup_steps=2", "--learning_rate=0.6", "--keep=9"]
    status, _, err = run("pretrain", *arguments, "--accumulate=2", "--tensorboard")
    assert status == 0, err
    assert folders == [tmp_path / "run" / "tensorboard"]
    with open(tmp_path / "run" / "log.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == ["2", "4", "6"]
    assert [float(row["learning_rate"]) for row in rows] == pytest.approx([0.4, 0.2, 0.0])
    checkpoints = sorted((tmp_path / "run" / "checkpoints").iterdir())
    assert [path.name for path in checkpoints] == [f"step-{n:08d}" for n in (2, 4, 6)]
    arrays = read_arrays(checkpoints[1])
    assert int(arrays["optimizer/adamw/iteration"]) == 4


def test_a_run_whose_steps_are_all_skipped(run, corpus, tmp_path, monkeypatch):
    def fail(report, epoch, logs=None):
        raise FloatingPointError("No step was taken")

    monkeypatch.setattr(PretrainingReport, "on_epoch_begin", fail)
    arguments = ["--corpus", corpus, "--output", tmp_path / "run", *SETTINGS, "--steps=2"]
    status, _, err = run("pretrain", *arguments)
    assert status == 1 and err.endswith("keras-bert: No step was taken\n")
    assert list_files(tmp_path) == []


def test_a_run_that_fails_before_its_first_checkpoint(run, corpus, tmp_path, monkeypatch):
    """A line of the log is written. The corrected command has other settings."""

    def fail(report, batch, logs=None):
        if report._epoch == 1:
            raise ValueError("out of memory")
        end(report, batch, logs)

    end = PretrainingReport.on_train_batch_end
    (tmp_path / "run").mkdir()
    arguments = ["--corpus", corpus, "--output", tmp_path / "run", "--held_out=0"]
    arguments += [*SETTINGS, *STEPS[:2]]
    with monkeypatch.context() as patched:
        patched.setattr(PretrainingReport, "on_train_batch_end", fail)
        status, out, err = run("pretrain", *arguments)
    assert status == 1 and "step 2/6" in out and "out of memory" in err
    assert list_files(tmp_path) == ["run"]
    assert run("pretrain", *arguments, "--batch_size=2")[::2] == (0, "")


def test_two_phases(run, corpus, tmp_path):
    """Short sequences, then long ones, whose later positions only the second phase trains.

    The second is not of pairs, and leaves their head behind.
    """
    phases = []
    for length, mode in ((16, "pairs"), (48, "full_sentences")):
        folder = tmp_path / str(length)
        first = ["--checkpoint", phases[0]] if phases else ["--size=tiny"]
        status, _, err = run(
            *("pretrain", "--corpus", corpus, "--output", folder, *first, "--held_out=0"),
            *("--steps=2", "--batch_size=4", "--max_predictions=3", "--warmup_steps=0"),
            *(f"--sequence_length={length}", f"--mode={mode}", "--learning_rate=1e-3"),
        )
        assert status == 0, err
        phases.append(folder / "model")
    before, after = (read_positions(path) for path in phases)
    assert before.shape == after.shape == (512, 128)
    decay = np.median(after[48:] / before[48:])
    np.testing.assert_allclose(after[48:], before[48:] * decay, rtol=1e-5)
    # What is no more than decayed was not trained.
    change = np.abs(after - before * decay).max(axis=1)
    assert (change[:48] > 1e-4).all()


@pytest.mark.parametrize(
    ("flags", "status", "message"),
    [
        (["--accumulate=4"], 2, "--accumulate=4 does not divide --steps=6"),
        (["--report_every=4"], 2, "--report_every=4 does not divide --steps=6"),
        (["--corpus=absent"], 1, "absent"),
        (["--batch_size=100000"], 1, "batch_size=100000 is more than"),
        (["--output=full"], 1, "full holds files, but no run"),
    ],
)
def test_bad_input(run, corpus, tmp_path, monkeypatch, flags, status, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").touch()
    arguments = ["--corpus", corpus, "--output", "run", *SETTINGS, "--steps=6", *flags]
    got, _, err = run("pretrain", *arguments)
    assert got == status and message in err
    assert list_files(tmp_path) == ["full", "full/thesis.txt"]


def test_a_run_goes_on_with_a_moved_corpus_but_not_with_another(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards/manifest.json").write_text("1")

    def begin(corpus):
        command = [f"--corpus={corpus}", "--output=run", "--steps=4"]
        values = Flags("pretrain", pretrain).parse(command)
        with pretrain.begin_run(values, tmp_path / "run"):
            (tmp_path / "run/checkpoints/step-00000002").mkdir(parents=True, exist_ok=True)

    begin("shards")
    (tmp_path / "shards").rename("moved")
    begin("moved")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/manifest.json").write_text("2")
    (tmp_path / "moved/manifest.json").write_text("2")
    for corpus in ("other", "moved"):
        with pytest.raises(ValueError, match=r"--corpus \(SHA-256\) was .* and is "):
            begin(corpus)
    with pytest.raises(FileNotFoundError, match="shards holds no finished corpus"):
        begin("shards")


def test_a_file_of_a_pretrainer_is_refused_by_its_name(run, pretrained, tmp_path):
    file = tmp_path / "run.keras"
    Pretrainer.from_preset(pretrained / "model").save(file)
    for command in (
        ("fill-mask", "--model", file, "--text=the [MASK]"),
        ("convert", "--input", file, "--to=huggingface", "--output", tmp_path / "out"),
        ("export", "--model", file, "--output", tmp_path / "out"),
    ):
        status, _, err = run(*command)
        assert status == 1 and "run.keras holds a Pretrainer, wanted a" in err


def test_a_checkpoint_of_another_vocabulary(run, corpus, tmp_path):
    save_tiny_checkpoint(tmp_path / "checkpoint")
    vocabulary = (tmp_path / "checkpoint" / "vocab.txt").read_text().replace("film", "movie")
    (tmp_path / "checkpoint" / "vocab.txt").write_text(vocabulary)
    status, _, err = run(
        *("pretrain", "--corpus", corpus, "--checkpoint", tmp_path / "checkpoint"),
        *("--output", tmp_path / "run", "--steps=2", "--sequence_length=16"),
    )
    assert status == 1 and "tokenizers of different vocabulary" in err


def test_a_piece_that_ends_in_a_line_separator(tmp_path):
    """That of bert-base-chinese, in a tokenizer.json. The vocab.txt of a corpus is read without."""
    (tmp_path / "texts.txt").write_text("a good film\n")
    tokenizer = WordPieceTokenizer([*VOCABULARY, "##\u2028"])
    prepare_corpus(tmp_path / "texts.txt", tokenizer, tmp_path / "corpus")
    of_corpus = read_tokenizer(tmp_path / "corpus")
    assert of_corpus.get_vocabulary()[-1] == "##"
    check_tokenizer(argparse.Namespace(checkpoint="bert"), of_corpus, tokenizer)
    with pytest.raises(ValueError, match="vocabulary"):
        check_tokenizer(
            argparse.Namespace(checkpoint="bert"), of_corpus, WordPieceTokenizer(VOCABULARY)
        )
