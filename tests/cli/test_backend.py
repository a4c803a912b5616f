"""Compiled steps that JAX keeps, oneDNN under TensorFlow, and freed memory."""

import os
import platform
import subprocess
import sys
import types

import pytest

from keras_bert_suite.jax_cache import keep_compiled_steps

NAME = "JAX_COMPILATION_CACHE_DIR"


@pytest.mark.long("combinations")
@pytest.mark.backend("jax")
def test_a_second_command_compiles_nothing(workshop, tmp_path):
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    del environment[NAME]
    train = tmp_path / "train.tsv"
    train.write_text("sentence\tlabel\n" + "a fine film\tyes\na dull film\tno\n" * 4)
    kept = []
    for output in ("first", "second"):
        arguments = [
            *("finetune", f"--checkpoint={workshop / 'checkpoint'}", f"--train={train}"),
            *("--text_column=sentence", "--epochs=1", "--batch_size=4", "--sequence_length=16"),
            f"--output={tmp_path / output}.keras",
        ]
        # The import of TensorFlow would take longer than the command does.
        command = (
            "import sys; sys.modules['tensorflow'] = None; from keras_bert_cli import main; "
            "sys.exit(main(sys.argv[1:]))"
        )
        process = subprocess.run(
            [sys.executable, "-c", command, *arguments],
            env=environment,
            capture_output=True,
            text=True,
        )
        assert process.returncode == 0, process.stderr
        folder = tmp_path / "cache" / "keras_bert_suite" / "jax"
        kept.append({path.name: path.stat().st_mtime_ns for path in folder.iterdir()})
    assert any("train_step" in name for name in kept[0]), kept[0]
    assert kept[0] == kept[1]


@pytest.mark.backend("jax")
@pytest.mark.parametrize(
    ("own", "home", "wanted"),
    [
        (None, "home", "home/keras_bert_suite/jax"),
        (None, "", ".cache/keras_bert_suite/jax"),
        ("/elsewhere", "home", None),
        ("", "home", None),
    ],
)
def test_the_folder_of_compiled_steps(tmp_path, monkeypatch, own, home, wanted):
    """JAX itself reads the variable of its own."""
    settings = {}
    config = types.SimpleNamespace(
        jax_compilation_cache_dir=None, update=lambda name, value: settings.update({name: value})
    )
    monkeypatch.setattr("jax.config", config)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", home and str(tmp_path / home))
    monkeypatch.delenv(NAME)
    if own is not None:
        monkeypatch.setenv(NAME, own)
    keep_compiled_steps()
    assert settings.get("jax_compilation_cache_dir") == (wanted and str(tmp_path / wanted))
    assert not [*tmp_path.iterdir()], "JAX makes the folder when it compiles"


@pytest.mark.long("combinations")
@pytest.mark.parametrize(("own", "wanted"), [(None, True), ("0", False)])
def test_tensorflow_computes_by_onednn(own, wanted):
    code = (
        "from keras_bert_cli.backend import use_onednn; use_onednn(); import tensorflow; "
        "from tensorflow.python.util import _pywrap_util_port as port; print(port.IsMklEnabled())"
    )
    environment = {**os.environ, "TF_ENABLE_ONEDNN_OPTS": own or ""}
    if own is None:
        del environment["TF_ENABLE_ONEDNN_OPTS"]
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == [str(wanted)]


#: Frees an array, and prints the share of its memory that the process still has.
FREE_ARRAY = """
import numpy as np
from keras_bert_cli.backend import keep_freed_memory

def count_bytes():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

keep_freed_memory()
before = count_bytes()
np.ones(50_000_000, "uint8")
print((count_bytes() - before) / 50_000_000)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the settings are those of glibc")
@pytest.mark.parametrize(
    ("environment", "kept"), [({}, True), ({"MALLOC_TRIM_THRESHOLD_": "131072"}, False)]
)
def test_freed_memory_is_kept_for_the_next_step(environment, kept):
    found = subprocess.run(
        [sys.executable, "-c", FREE_ARRAY],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (float(found.stdout) > 0.9) == kept
