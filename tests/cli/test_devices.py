"""`--devices` of `keras-bert pretrain` and `finetune`."""

import contextlib
import csv
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from cli.small_files import MODEL, SETTINGS, STEPS, write_reviews
from small_texts import make_reviews

from keras_bert_cli import devices
from keras_bert_cli.command_flags import UsageError
from keras_bert_suite import TextClassifier


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", ""])
def test_a_wrong_number_is_an_error(value):
    with pytest.raises(UsageError, match="all or a number of at least 1"):
        devices.check_devices(value)


def test_devices_that_are_not_there_are_an_error():
    assert devices.choose_number("all", "GPU", 8) == 8
    assert devices.choose_number("3", "CPU", 2) == 3
    with pytest.raises(UsageError, match="--devices=9, but there are 8 devices of kind GPU"):
        devices.choose_number("9", "GPU", 8)


def test_the_backend_is_found_without_keras(monkeypatch, tmp_path):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    assert devices.find_backend("torch") == "torch"
    assert devices.find_backend(None) == "jax"
    monkeypatch.delenv("KERAS_BACKEND")
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    assert devices.find_backend(None) == "tensorflow"
    (tmp_path / "keras.json").write_text('{"backend": "torch"}')
    assert devices.find_backend(None) == "torch"


@pytest.mark.long("faults")
def test_torchrun_runs_the_command_on_each_device(capfd):
    """The commands end before they import Keras."""
    assert devices.run_processes("2", ["--version"]) == 0
    version, again = capfd.readouterr().out.splitlines()
    assert version == again
    assert devices.run_processes("2", ["fly"]) == 2
    assert "unknown command 'fly'" in capfd.readouterr().err


def test_the_first_process_alone_prints(monkeypatch, capsys):
    distributed = pytest.importorskip("torch").distributed
    monkeypatch.setattr(distributed, "init_process_group", lambda backend: None)
    monkeypatch.setattr(distributed, "destroy_process_group", lambda: None)
    for rank in range(3):
        monkeypatch.setattr(distributed, "get_rank", lambda rank=rank: rank)
        with devices._USES["torch"]("3"):
            print(f"process {rank}")
    assert capsys.readouterr().out == "process 0\n"


@pytest.mark.long("faults")
def test_two_devices_pretrain_as_one(corpus, tmp_path):
    def pretrain(name, *flags):
        arguments = ["--corpus", str(corpus), "--output", str(tmp_path / name), *flags]
        command = [sys.executable, "-m", "keras_bert_cli", "pretrain", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def read(name):
        with open(tmp_path / name / "log.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        names = ("loss", "mlm_loss", "nsp_accuracy", "val_mlm_loss", "val_mlm_accuracy")
        return np.array([[float(row[name]) for name in names] for row in rows])

    flags = ("--held_out=0.3", *SETTINGS, *MODEL, *STEPS)
    pretrain("alone", *flags)
    output = pretrain("pair", *flags, "--devices=2")
    assert output.count("wrote ") == 1
    np.testing.assert_allclose(read("pair"), read("alone"), rtol=1e-4, atol=1e-5)
    assert f"{tmp_path / 'pair'} is finished" in pretrain("pair", *flags)


@pytest.mark.long("faults")
def test_sigterm_goes_to_all_processes(corpus, tmp_path):
    output, steps = tmp_path / "run", [flag for flag in STEPS if not flag.startswith("--steps")]
    arguments = [f"--corpus={corpus}", f"--output={output}", *SETTINGS, *MODEL, *steps]
    command = [sys.executable, "-m", "keras_bert_cli", "pretrain", *arguments]
    process = subprocess.Popen([*command, "--steps=100000", "--devices=2"], start_new_session=True)
    try:
        for _ in range(1200):
            if list(output.glob("checkpoints/*")) or process.poll() is not None:
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 143
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)  # None of its processes is left.
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.long("faults")
def test_two_devices_finetune_and_score_as_one(workshop, tmp_path):
    # The devices do not divide the last batch of the test file.
    write_reviews(tmp_path / "test.tsv", 7, seed=3)
    arguments = {
        "checkpoint": workshop / "checkpoint",
        "train": workshop / "train.tsv",
        "test": tmp_path / "test.tsv",
        "text_column": "sentence",
        "batch_size": 4,
        "epochs": 1,
        "output": tmp_path / "preset",
        "devices": 2,
    }
    flags = (f"--{name}={value}" for name, value in arguments.items())
    command = [sys.executable, "-m", "keras_bert_cli", "finetune", *flags]
    output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    assert output.count("test accuracy") == output.count("wrote ") == 1

    classifier = TextClassifier.from_preset(str(tmp_path / "preset"))
    classifier.compile()
    _, accuracy = classifier.evaluate(*make_reviews(7, seed=3), verbose=0)
    assert f"test accuracy {accuracy:.4f}" in output
