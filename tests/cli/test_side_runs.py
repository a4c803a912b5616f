"""Sides of a benchmark in turn, each in a process of its own."""

import os

import pytest

from keras_bert_cli import side_runs

SCRIPT = """
import os, sys
from keras_bert_cli.side_runs import report

count, number, child, name = sys.argv[1:]
assert child == "--child"
if name == "broken":
    raise ValueError("no kernel")
with open(count, "a") as file:
    file.write(f"{name} {number}\\n")
names = ("KERAS_BACKEND", "JAX_COMPILATION_CACHE_DIR")
print("a library says hello")
report({"speed": float(number), "set": [os.environ[name] for name in names]})
"""


@pytest.fixture
def command(tmp_path, monkeypatch):
    (tmp_path / "script.py").write_text(SCRIPT)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "somewhere")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(side_runs.sys.path))
    return [tmp_path / "script.py", tmp_path / "count"]


def test_sides_take_turns(command, capsys):
    sides = [("ours", "jax"), ("peer", "torch")]
    measured = side_runs.run_in_turn(command, sides, [[3], [1], [2]])
    assert command[1].read_text() == "ours 3\npeer 3\nours 1\npeer 1\nours 2\npeer 2\n"
    assert measured["peer", "torch"]["speed"] == [3, 1, 2]
    assert measured["ours", "jax"]["set"] == [["jax", ""]] * 3
    # A process that has not imported its backend has used no accelerator.
    assert measured["ours", "jax"]["device"] == [None] * 3
    assert all(0 < memory < 10 for memory in measured["ours", "jax"]["memory, GB"])
    assert "round 2 of 3: peer on torch: speed 1" in capsys.readouterr().err


def test_equal_rounds_are_measured_each_and_not_again(command, tmp_path):
    sides, finished = [("ours", "jax")], tmp_path / "finished"
    for rounds in ([[3]], [[3], [3], [1]]):
        measured = side_runs.run_in_turn(command, sides, rounds, finished=finished)
    assert command[1].read_text() == "ours 3\nours 3\nours 1\n"
    assert measured["ours", "jax"]["speed"] == [3, 3, 1]


def test_a_side_that_fails_is_named(command):
    with pytest.raises(RuntimeError) as caught:
        side_runs.run_in_turn(command, [("broken", "jax")], [[1]])
    assert str(caught.value) == "broken on jax: ValueError: no kernel"
    assert "Traceback" in caught.value.__notes__[0]


def test_shares_of_the_peak(capsys, monkeypatch):
    monkeypatch.setattr(side_runs.machine_figures, "find_peak", {"bfloat16": 4e12}.get)
    side_runs.report({"fit": 7.0}, {"fit": 1e12}, "bfloat16")
    printed = side_runs.json.loads(capsys.readouterr().out)
    assert (printed["fit"], printed["peak, TFLOP/s"]) == (7, 4)
    assert printed["fit, of the peak"] == 0.25
