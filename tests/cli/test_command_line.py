"""Help, exit statuses and messages; nothing here trains."""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import keras
import pytest

import keras_bert_suite
from keras_bert_cli import COMMANDS, main
from keras_bert_cli.command_flags import Flags
from keras_bert_cli.kinds import choose_kind
from keras_bert_cli.model_paths import check_model
from keras_bert_suite.heads import pretraining


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
    assert run(name, "-h")[1] == out
    assert f"Example:\n  keras-bert {name}" in out or f"| keras-bert {name}" in out
    listed = {line.split()[0] for line in out.splitlines() if line.startswith("  --")}
    # absl adds --helpfull, which explains its own flags, too.
    flags = Flags(name, COMMANDS[name]).defaults
    negated = {f"--no{flag}" for flag in flags}
    listed = {spelling for spelling in listed if not spelling.startswith("--help")}
    assert listed - negated == {f"--{flag}" for flag in flags}
    assert max(map(len, out.splitlines())) <= 100
    assert "Default: ." not in out


def test_help_tells_defaults(run):
    out = " ".join(run("finetune", "--help")[1].split())
    assert "--epochs N Passes over the training file. Default: 3. --batch_size" in out
    assert "or another with --delimiter or --task. Required. --dev" in out
    assert "--dtype {float32,bfloat16,mixed_bfloat16,mixed_float16} Precision. Default" in out
    assert "--noheader" in out
    assert "--learning_rate X Peak learning rate. Default: 5e-05; 2e-05 with --task " in out
    assert "; 3e-05 with --task qa. --head_learning_rate" in out


#: Of run_classifier.py, create_pretraining_data.py and optimization.py in Google's BERT.
PUBLISHED_DEFAULTS = {
    "finetune": {
        "epochs": 3,
        "batch_size": 32,
        "learning_rate": 5e-5,
        "warmup_ratio": 0.1,
        "weight_decay": 0.01,
        "bias_correction": False,
    },
    "pretrain": {
        "batch_size": 32,
        "sequence_length": 128,
        "short_seq_prob": 0.1,
        "masking_rate": 0.15,
        "mask_token_rate": 0.8,
        "random_token_rate": 0.1,
        "weight_decay": 0.01,
    },
}


@pytest.mark.parametrize("name", PUBLISHED_DEFAULTS)
def test_defaults_are_the_published_ones(name):
    wanted, defaults = PUBLISHED_DEFAULTS[name], Flags(name, COMMANDS[name]).defaults
    values = argparse.Namespace(**defaults, given=frozenset())
    if name == "finetune":
        choose_kind(values)
    assert {flag: getattr(values, flag) for flag in wanted} == wanted
    assert pretraining.HEAD.learning_rate == 1e-4  # Of the paper. An objective may have another.


@pytest.mark.parametrize(
    ("path", "files"),
    [
        ("preset", ["preset/config.json"]),
        ("google", ["google/bert_config.json"]),
        ("google/bert_model.ckpt", ["google/bert_model.ckpt.index"]),
        ("sentences", ["sentences/modules.json"]),
        ("saved/1", ["saved/1/saved_model.pb"]),
        ("weights.other", ["weights.other"]),
    ],
)
def test_a_model_may_be_a_folder_a_file_or_a_prefix(tmp_path, path, files):
    with pytest.raises(FileNotFoundError):
        check_model(str(tmp_path / path))
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    check_model(str(tmp_path / path))
    check_model(f"hf://owner/{path}")


def test_version(run):
    assert run("--version")[1].strip() in (keras_bert_suite.__version__, "not installed")


REPOSITORY = Path(__file__).resolve().parents[2]
#: Pages whose commands nothing runs.
PAGES = [
    path
    for pattern in ("*.md", "docs/**/*.md", "saved_models/README.md", "examples/*/README.md")
    for path in sorted(REPOSITORY.glob(pattern))
]


def list_examples():
    """The command lines of the pages and of every command's help, as lists of arguments."""
    texts = [*(page.read_text("utf-8") for page in PAGES), *(c.__doc__ for c in COMMANDS.values())]
    lines = "\n".join(texts).replace("\\\n", " ").splitlines()
    # Some begin with a pipe into the command; in running text a command stands in backticks.
    found = (
        re.search(r"^ *(?:[^`#]*\| )?keras-bert ((?:[a-z-]+ -|show ).*)", line) for line in lines
    )
    return [shlex.split(match[1], comments=True) for match in found if match]


def test_examples_are_command_lines():
    examples = list_examples()
    assert {name for name, *_ in examples} == set(COMMANDS)
    for name, *arguments in examples:
        Flags(name, COMMANDS[name]).parse(arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fly"], "unknown command 'fly'; choose one of vocab, prepare,"),
        (["--backend=jax", "predict"], "unknown command '--backend=jax'"),
        (["predict", "--model=a", "--batch=3"], "--batch=3. Did you mean --batch_size?"),
        (["predict", "--features=a"], "--features=a. Did you mean --feature_columns?"),
        (
            ["finetune", "--trian=a.tsv"],
            "unrecognized arguments: --trian=a.tsv. Did you mean --train?",
        ),
        (
            ["finetune", "--max_seq_length", "9"],
            "--max_seq_length. Did you mean --sequence_length?",
        ),
        (["finetune", "--num_labels=2", "--train=a"], "--num_labels=2 ("),
        (["finetune", "--epochs=some"], "argument --epochs: invalid int value: 'some'"),
        (
            ["pretrain", "--ngram_shares=1,x"],
            "invalid list of float value: '1,x'",
        ),
        (["finetune", "--epochs=0"], "argument --epochs: wanted a number from 1"),
        (["finetune", "--learning_rate=-1"], "wanted a number from 0 to 1, got -1"),
        (["finetune", "--learning_rate=nan"], "wanted a number from 0 to 1, got nan"),
        (["finetune", "--warmup_ratio=2"], "wanted a number from 0 to 1, got 2"),
        (["finetune", "--learning_rate=2e5"], "wanted a number from 0 to 1, got 2e5"),
        (["finetune", "--epochs"], "argument --epochs: expected one argument"),
        (["finetune", "--train=a.tsv"], "arguments are required: --checkpoint, --output"),
        (["convert", "--to=onnx"], "argument --to: invalid choice: 'onnx'"),
        (["predict", "--backend=caffe"], "argument --backend: invalid choice: 'caffe'"),
        (["predict", "--model=a", "b.txt"], "unrecognized arguments: b.txt"),
        (["show"], "one of the arguments PATH --model is required"),
        (["show", "a", "--model=b"], "argument --model: not allowed with argument PATH"),
        (["show", "a", "b"], "unrecognized arguments: b"),
        (["pretrain", "--corpus=a", "--output=b"], "arguments are required: --steps"),
        (
            ["predict", "--model=a", "--text_column=t"],
            "needs an --input ending in .tsv, .csv, .jsonl",
        ),
    ],
)
def test_wrong_command_lines(run, arguments, message):
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith("keras-bert: ") and message in err
    assert err.count("\n") == 1


#: Runs command lines, each with the error it is to end with, and no framework at the end.
RUN_WITHOUT_FRAMEWORKS = """
import contextlib, io, json, sys
from keras_bert_cli import main

for arguments, message in json.loads(sys.argv[1]):
    with contextlib.redirect_stderr(io.StringIO()) as stderr:
        status = main(arguments)
    assert status in (1, 2) and message in stderr.getvalue(), (arguments, stderr.getvalue())
frameworks = {"keras", "keras_hub", "tensorflow", "jax", "torch", "keras_bert_suite.layers"}
assert not frameworks & set(sys.modules), frameworks & set(sys.modules)
"""


def test_what_is_wrong_is_found_before_a_framework_is_imported(workshop, tmp_path):
    (tmp_path / "saved/1").mkdir(parents=True)
    (tmp_path / "saved/1/saved_model.pb").touch()
    (tmp_path / "run/model").mkdir(parents=True)
    (tmp_path / "run/model/config.json").touch()
    zipfile.ZipFile(tmp_path / "model.keras", "w").close()
    (tmp_path / "cut.keras").touch()
    train, checkpoint = workshop / "train.tsv", workshop / "checkpoint"
    finetune = ["finetune", f"--checkpoint={checkpoint}", f"--train={train}", "--output=x"]
    pretrain = ["pretrain", "--corpus=shards", "--steps=10", "--output=x"]
    lines = [
        (["predict", "--model=absent"], "absent does not exist"),
        (["predict", "--model=saved"], "saved holds no model. Pass the folder that directly"),
        (["predict", "--model=cut.keras"], "cut.keras is damaged, or was not written by Keras"),
        (
            ["evaluate", "--model=saved/1", f"--input={train}"],
            "saved/1 is an export, which only answers",
        ),
        (["predict", "--model=model.keras", "--input=absent.txt"], "absent.txt: No such file"),
        (["evaluate", "--model=model.keras", "--input=absent.tsv"], "absent.tsv: No such file"),
        (["export", "--model=absent", "--output=y"], "absent does not exist"),
        (["fill-mask", "--model=run", "--text=x"], "run holds no model. Pass"),
        (["pretrain", "--corpus=absent", "--output=y", "--steps=1"], "absent holds no finished"),
        ([*pretrain, "--checkpoint=run"], "run holds no model"),
        (["convert", "--input=absent", "--output=y", "--to=preset"], "absent does not exist"),
        ([*finetune, "--train=absent.tsv"], "absent.tsv: No such file"),
        ([*finetune, "--checkpoint=absent"], "absent does not exist"),
        ([*finetune, "--checkpoint=run"], "run holds no model"),
        ([*finetune, "--text_column=sentense"], "has no column 'sentense'. Its columns are"),
        ([*finetune, "--text_column=sentence", "--label_column=x"], "no column 'x'"),
        ([*finetune, "--delimiter=abc"], "must be one character"),
        ([*finetune, "--encoding=utf-9"], "unknown encoding: utf-9"),
        ([*finetune, "--output=model.keras"], "model.keras exists already"),
        ([*finetune, "--dtype=float23"], "invalid choice: 'float23'"),
    ]
    run_python(RUN_WITHOUT_FRAMEWORKS, tmp_path, json.dumps(lines))
    assert not (tmp_path / "x").exists()


#: Runs a command whose work is to import Keras, and prints the backend.
IMPORT_KERAS = """
import sys
sys.modules["tensorflow"] = None  # Its import takes longer than the rest.
import keras_bert_cli

def run(flags):
    import keras
    print(keras.config.backend(), "torch" in sys.modules)

keras_bert_cli.COMMANDS["export"].run = run
sys.exit(keras_bert_cli.main(["export", "--model=a", "--output=b", "--backend=jax"]))
"""


def test_the_backend_flag_is_read_before_keras_is_imported(tmp_path):
    """The backend is `--backend`, not that of the environment, and the latter is not imported."""
    assert run_python(IMPORT_KERAS, tmp_path) == "jax False\n"


def run_python(code, folder, *arguments):
    """Runs code in a fresh interpreter, whose environment asks for PyTorch; returns its output."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    environment = {**os.environ, "KERAS_BACKEND": "torch", "PYTHONPATH": path}
    command = [sys.executable, "-c", code, *arguments]
    process = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_a_command_opens_a_file_of_keras_in_a_process_of_its_own(finetuned, tmp_path):
    """Nothing has imported the package before, so nothing has registered its classes."""
    (tmp_path / "texts.txt").write_text("a good film\n")
    code = "import sys; sys.modules['tensorflow'] = None\n"
    code += "import keras_bert_cli; sys.exit(keras_bert_cli.main(sys.argv[1:]))"
    arguments = "predict", f"--model={finetuned / 'model.keras'}", "--input=texts.txt"
    assert run_python(code, tmp_path, *arguments).startswith("label\tprobability\n")


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
