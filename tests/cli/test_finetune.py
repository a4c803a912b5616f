"""`keras-bert finetune`."""

import errno
import hashlib
import os
import signal
import zipfile

import keras
import numpy as np
import pytest
from cli.small_files import list_files, write_reviews
from family import MEMBERS

import keras_bert_suite as kbs
from keras_bert_cli import finetune as commands


@pytest.fixture
def finetune(run, workshop, tmp_path, monkeypatch):
    """Function: flags that differ from a good command line -> `run`'s result, in a new folder."""
    monkeypatch.chdir(tmp_path)

    def run_finetune(**flags):
        flags = {
            "checkpoint": workshop / "checkpoint",
            "train": workshop / "train.tsv",
            "text_column": "sentence",
            "epochs": 1,
            "output": "out/model.keras",
            **flags,
        }
        given = (
            f"--{name}" if value is True else f"--{name}={value}" for name, value in flags.items()
        )
        return run("finetune", *given)

    return run_finetune


def test_model_and_scores(finetune, workshop, tmp_path):
    dev = workshop / "dev.tsv"
    status, out, err = finetune(dev=dev, test=dev, epochs=2, output="a/preset", sequence_length=32)
    assert (status, err) == (0, "")
    assert "32 training texts, labels no, yes" in out
    classifier = kbs.TextClassifier.from_preset("a/preset")
    assert classifier.label_names == ["no", "yes"]
    assert classifier.preprocessor.sequence_length == 32
    table = [line.split("\t") for line in dev.read_text().splitlines()[1:]]
    texts, labels = zip(*table, strict=True)
    scores = classifier.score(list(texts), list(labels))
    assert f"test accuracy {scores['accuracy']:.4f}, macro_f1 {scores['macro_f1']:.4f}" in out
    assert "val_accuracy" in out
    assert list_files(tmp_path)[:2] == ["a", "a/preset"]


def test_the_card_says_what_each_file_is_for(finetune, workshop, tmp_path):
    names = {"train": "train.tsv", "test": "dev.tsv"}
    status, _, err = finetune(test=workshop / names["test"], output="preset")
    assert (status, err) == (0, "")
    digests = {
        role: hashlib.sha256((workshop / name).read_bytes()).hexdigest()
        for role, name in names.items()
    }
    files = ", ".join(f"{role} {names[role]} (SHA-256 {digests[role]})" for role in names)
    assert f"| data | {files} |" in (tmp_path / "preset" / "model_card.md").read_text()


def test_the_data_may_be_gone_after_the_training(finetune, monkeypatch, tmp_path):
    """The card has the checksum of the file that was trained on."""
    write_reviews(tmp_path / "train.tsv", 8, 1)
    digest = hashlib.sha256((tmp_path / "train.tsv").read_bytes()).hexdigest()
    train = commands.train_task

    def train_and_delete(*arguments):
        (tmp_path / "train.tsv").unlink()
        return train(*arguments)

    monkeypatch.setattr(commands, "train_task", train_and_delete)
    status, _, err = finetune(train="train.tsv", output="preset")
    assert (status, err) == (0, "")
    assert digest in (tmp_path / "preset" / "model_card.md").read_text()


def test_pairs_numbered_labels_and_precision(finetune, tmp_path):
    write_reviews(tmp_path / "train.tsv", 32, 1, names=("9", "10"))
    rows = (tmp_path / "train.tsv").read_text().splitlines()
    rows = [f"b{i}\t{row}" for i, row in enumerate(rows)]
    (tmp_path / "pairs.tsv").write_text("\n".join(rows))
    status, _, err = finetune(
        train="pairs.tsv", text_column="b0", text_pair_column="sentence", dtype="mixed_bfloat16"
    )
    # Most processors are slow at bfloat16.
    assert status == 0 and all("bfloat16 takes longer" in line for line in err.splitlines())
    classifier = keras.saving.load_model("out/model.keras")
    assert classifier.label_names == ["9", "10"]
    assert classifier.input_names == ("b0", "sentence")
    assert classifier.backbone.dtype_policy.name == "mixed_bfloat16"
    assert classifier.preprocessor.sequence_length == 128


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"text_column": "text"}, "no column 'text'. Its columns are 'sentence', 'label'."),
        ({"label_column": "class"}, "no column 'class'"),
        ({"train": "absent.tsv"}, "absent.tsv: No such file or directory"),
        ({"train": "."}, "neither a .tsv nor a .csv"),
        ({"train": "empty.tsv"}, "empty.tsv is empty"),
        ({"train": "short.tsv"}, "short.tsv, line 3: wanted the 2 fields"),
        (
            {"train": "latin1.tsv"},
            "latin1.tsv, line 2: 'utf-8' codec can't decode byte 0xef in position 17",
        ),
        (
            {"train": "unlabelled.tsv"},
            "unlabelled.tsv, line 2: the label in the column 'label' is missing",
        ),
        ({"train": "one.tsv"}, "needs 2 or more different labels, got ['yes']"),
        ({"train": "blank.tsv"}, "blank.tsv, line 3: the text in the column 'sentence' is missing"),
        ({"dev": "spaces.tsv"}, "'neg' at row 0"),
        ({"dev": "shouted.tsv"}, "'NO' at row 0"),
        ({"dev": "strange.tsv"}, "strange.tsv: Label 'maybe' at row 1 is not one"),
        ({"test": "strange.tsv"}, "strange.tsv: Label 'maybe' at row 1 is not one"),
        ({"output": "one.tsv"}, "one.tsv exists already. Choose another path, or pass --overwrite"),
        ({"export": "folder/1"}, "folder/1 exists already"),
        ({"export": "e", "text_pair_column": "a b"}, "must be different names"),
        ({"output": "one.tsv/a.keras"}, "one.tsv is not a folder"),
        ({"checkpoint": "absent"}, "absent does not exist"),
        ({"checkpoint": "folder"}, "folder holds no model. Pass the folder that"),
        ({"checkpoint": "damaged"}, "model.safetensors"),
        ({"sequence_length": 129}, "--sequence_length=129 is more than the 128 positions"),
    ],
)
def test_bad_input(finetune, workshop, tmp_path, monkeypatch, flags, message):
    for name, content in {
        "empty.tsv": b"",
        "short.tsv": b"sentence\tlabel\nx\ty\nz\n",
        "latin1.tsv": b"sentence\tlabel\nna\xefve\tyes\n",
        "unlabelled.tsv": b"sentence\tlabel\nx\t\n",
        "blank.tsv": b"sentence\tlabel\nx\ty\n \tz\n",
        "spaces.tsv": b"sentence\tlabel\nx\tneg\ny\tpos\nz\t neg\n",
        "shouted.tsv": b"sentence\tlabel\nx\tNO \n",
        "one.tsv": b"sentence\tlabel\nx\tyes\ny\tyes\n",
        "strange.tsv": b"sentence\tlabel\nx\tyes\ny\tmaybe\n",
    }.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder/1").mkdir(parents=True)
    (tmp_path / "damaged").mkdir()
    for file in (workshop / "checkpoint").iterdir():
        data = file.read_bytes()
        size = len(data) - 100 * file.name.endswith(".safetensors")
        (tmp_path / "damaged" / file.name).write_bytes(data[:size])
    before = list_files(tmp_path)
    status, _, err = finetune(**flags)
    assert status == 1
    assert err.startswith("keras-bert: ") and message in err
    assert list_files(tmp_path) == before


def test_nothing_is_left_of_a_run_that_ends_early(finetune, tmp_path, monkeypatch):
    def interrupt(self, *args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(kbs.TextClassifier, "fit", interrupt)
    assert finetune()[0] == 130
    assert list_files(tmp_path) == []

    (tmp_path / "out").mkdir()
    (tmp_path / "out/model.keras").write_text("the former one")
    assert finetune(overwrite=True)[0] == 130
    assert list_files(tmp_path) == ["out", "out/model.keras"]
    assert (tmp_path / "out/model.keras").read_text() == "the former one"


def test_a_model_without_a_place_can_be_made_again(finetune, tmp_path, monkeypatch):
    def save(self, path, *args, **kwargs):
        path.write_bytes(b"half of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(kbs.TextClassifier, "save", save)
        status, _, err = finetune()
    assert (status, err) == (1, "keras-bert: No space left on device\n")
    assert list_files(tmp_path / "out")[0] == "model.keras.training"
    status, out, err = finetune()
    assert (status, err) == (0, "")
    assert "1/1" not in out, "the training has begun anew"
    assert keras.saving.load_model("out/model.keras").label_names == ["no", "yes"]


@pytest.mark.parametrize(
    ("kill", "status"),
    [
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.long("faults")),
        (signal.SIGTERM, 143),
    ],
)
def test_a_killed_run_goes_on(finetune, tmp_path, monkeypatch, kill, status):
    """Interrupted in the middle of an epoch it ends with the weights of an uninterrupted run."""
    flags = {"epochs": 2, "batch_size": 8, "checkpoint_every": 1, "sequence_length": 16}
    if kill == signal.SIGINT:
        flags["class_weight"] = "balanced"
    else:
        flags["sequence_packing"] = True
    assert finetune(output="whole.keras", **flags)[0] == 0
    # A shell starts what it runs in the background with this signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    update = kbs.TrainingCheckpoint.on_train_batch_end

    def interrupt(self, batch, logs=None):
        if self.progress.batches == 5:
            os.kill(os.getpid(), kill)
        update(self, batch, logs)

    with monkeypatch.context() as patched:
        patched.setattr(kbs.TrainingCheckpoint, "on_train_batch_end", interrupt)
        got, out, _ = finetune(**flags)
    signal.signal(signal.SIGINT, before)
    assert got == status
    assert ("stopped; the same command resumes the run" in out) == (kill == signal.SIGTERM)
    assert not (tmp_path / "out/model.keras").exists()

    status, _, err = finetune(**{**flags, "seed": 1})
    assert status == 1 and "--seed was 0 and is 1. Give the same flags to resume it" in err
    status, out, err = finetune(**flags)
    assert (status, err) == (0, "")
    assert list_files(tmp_path) == ["out", "out/model.keras", "whole.keras"]
    whole, resumed = map(keras.saving.load_model, ("whole.keras", "out/model.keras"))
    for expected, got in zip(whole.get_weights(), resumed.get_weights(), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_a_folder_of_checkpoints_that_is_none(finetune, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").touch()
    status, _, err = finetune(checkpoint_dir="mine")
    assert status == 1 and "mine holds files, but no run" in err
    assert list_files(tmp_path) == ["mine", "mine/notes.txt"]


def test_numbered_columns_and_another_delimiter(finetune, workshop, tmp_path):
    rows = [line.split("\t") for line in (workshop / "train.tsv").read_text().splitlines()[1:]]
    (tmp_path / "train.txt").write_text("".join(f'{y};0;"{x}"\n' for x, y in rows))
    flags = {"train": "train.txt", "noheader": True, "delimiter": ";", "checkpoint_every": 0}
    status, out, err = finetune(**flags, text_column=3, label_column=1)
    assert (status, err) == (0, "")
    assert "32 training texts, labels no, yes" in out
    status, _, err = finetune(**flags, output="other.keras")
    assert status == 1 and "'sentence'" in err


def test_a_quoted_table_with_rows_without_a_label(finetune, workshop, tmp_path):
    rows = [line.split("\t") for line in (workshop / "train.tsv").read_text().splitlines()]
    rows.insert(3, ["the film", "-"])
    (tmp_path / "train.tsv").write_text("".join(f'"{x}"\t"{y}"\n' for x, y in rows))
    flags = {"train": "train.tsv", "checkpoint_every": 0}
    status, _, err = finetune(**flags, left_out_labels="-")
    assert status == 1 and "Its names are in quotes" in err and "--quoting minimal" in err
    status, out, err = finetune(**flags, left_out_labels="-", quoting="minimal")
    assert (status, err) == (0, "")
    assert "train.tsv: 1 rows with the label '-' are left out, first line 4" in out
    assert "32 training texts, labels no, yes" in out


def test_overwrite(finetune, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/model.keras").write_text("the former one")
    assert finetune(overwrite=True)[0] == 0
    assert zipfile.is_zipfile(tmp_path / "out/model.keras")
    assert list_files(tmp_path) == ["out", "out/model.keras"]


def test_an_xlnet_of_transformers(finetune, tmp_path):
    MEMBERS["xlnet"].save_peer(tmp_path / "xlnet")
    status, _, err = finetune(checkpoint="xlnet", output="preset", sequence_length=16)
    assert (status, err) == (0, "")
    classifier = kbs.TextClassifier.from_preset("preset")
    assert type(classifier.backbone) is kbs.XLNetBackbone
    assert type(classifier.preprocessor.tokenizer) is kbs.XLNetTokenizer
