"""Help, exit statuses and messages; nothing here trains."""

import os
import subprocess
import sys
from pathlib import Path

import keras
import pytest

import keras_bert_cli
import keras_bert_suite
from keras_bert_cli import COMMANDS, command_flags, main

pytestmark = pytest.mark.backend_free


def test_overview_names_every_command(run):
    for arguments in (["--help"], ["-h"], ["help"]):
        status, out, err = run(*arguments)
        assert (status, err) == (0, "")
        assert all(f"\n  {name} " in out for name in COMMANDS)
    assert run()[0] == 2


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command(run, name):
    status, out, err = run(name, "--help")
    assert (status, err) == (0, "")
    assert run("help", name)[1] == run(name, "-h")[1] == out
    assert f"Example:\n  keras-bert {name}" in out or f"| keras-bert {name}" in out
    flags = command_flags.make_flags(COMMANDS[name])
    listed = {line.split()[0] for line in out.splitlines() if line.startswith("  --")}
    listed = {spelling.replace("--[no]", "--") for spelling in listed}
    assert listed == {f"--{flags[flag].name}" for flag in flags}
    assert len(listed) < 35, "flags of other modules are listed"
    assert max(map(len, out.splitlines())) <= 100


def test_help_tells_defaults(run):
    out = " ".join(run("finetune", "--help")[1].split())
    assert "--epochs N Passes over the training file. Default: 3. --batch_size" in out
    assert "or any with --delimiter. Required. --dev" in out
    assert (
        "--dtype float32|bfloat16|mixed_bfloat16|mixed_float16 Precision. Default: float32" in out
    )


def test_version(run):
    assert run("--version")[1].strip() in (keras_bert_suite.__version__, "not installed")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["finetun"], "unknown command 'finetun'; did you mean 'finetune'?"),
        (["fly"], "unknown command 'fly'; choose one of demo, vocab,"),
        (["help", "fly"], "unknown command 'fly'"),
        (["--backend=jax", "demo"], "stands before the command"),
        (["finetune", "--epoch=3"], "Unknown command line flag 'epoch'. Did you mean: epochs"),
        (["finetune", "--epochs=some"], "flag --epochs=some: invalid literal for int()"),
        (["finetune", "--epochs=0"], "flag --epochs=0"),
        (["finetune", "--learning_rate=-1"], "flag --learning_rate=-1"),
        (["finetune", "--warmup_ratio=2"], "flag --warmup_ratio=2"),
        (["finetune", "--epochs"], "Missing value for flag --epochs"),
        (["finetune", "--train=a.tsv"], "finetune needs --checkpoint and --output"),
        (["finetune", "--train="], "finetune needs --checkpoint and --train and --output"),
        (["convert", "--to=onnx"], "value should be one of <huggingface|google_tf1|preset>"),
        (["demo", "--backend=caffe"], "value should be one of <tensorflow|jax|torch>"),
        (["predict", "--model=a", "b.txt"], "predict takes flags only, got 'b.txt'"),
        (["predict", "--model=a", "--text_column=t"], "need an --input ending in .tsv or .csv"),
    ],
)
def test_wrong_command_lines(run, arguments, message):
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith("keras-bert: ") and message in err
    assert err.count("\n") == 1


def test_help_needs_no_keras():
    code = (
        "import sys, keras_bert_cli as c; c.main(['demo', '-h']); assert 'keras' not in sys.modules"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(keras_bert_cli.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (FileNotFoundError(2, "No such file or directory", "a"), 1, "a: No such file or directory"),
        (OSError(28, "No space left on device"), 1, "No space left on device"),
        (ImportError("No module named 'jax'"), 1, "No module named 'jax'"),
        (ValueError("two\nlines"), 1, "two\nlines"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_errors_are_plain(run, monkeypatch, error, status, message):
    def fail(flags):
        raise error

    monkeypatch.setattr(COMMANDS["export"], "run", fail)
    arguments = ["export", "--model=a", "--output=b"]
    assert run(*arguments) == (status, "", f"keras-bert: {message}\n")
    if status == 1:
        with pytest.raises(type(error)):
            main([*arguments, "--traceback"])


def test_another_backend_within_a_process(run):
    loaded = keras.config.backend()
    other = "jax" if loaded != "jax" else "torch"
    status, _, err = run("export", "--model=a", "--output=b", f"--backend={other}")
    assert status == 1
    assert f"Set KERAS_BACKEND={other} before the process starts" in err
    assert os.environ["KERAS_BACKEND"] == loaded


def test_a_process_starts_with_the_backend_it_is_told(workshop, tmp_path):
    """A fresh process: the backend is obeyed, noise is hidden, an error has no traceback."""
    code = "import sys; from keras_bert_cli import main; sys.exit(main())"
    arguments = ["convert", f"--input={workshop / 'train.tsv'}", "--to=preset", "--output=a"]
    command = [sys.executable, "-c", code, *arguments, "--backend=torch"]
    environment = {
        **os.environ,
        "KERAS_BACKEND": "jax",
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
    }
    process = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert process.returncode == 1
    assert "train.tsv is a single file" in process.stderr.splitlines()[-1]
    assert "Traceback" not in process.stderr
    assert not list(tmp_path.iterdir())
