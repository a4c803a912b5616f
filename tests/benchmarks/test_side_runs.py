"""Sides of a benchmark in turn, each in a process of its own."""

import json
import os
from pathlib import Path

import harness
import pytest
from harness import side_runs

SIDES = [("ours", "jax"), ("peer", "torch")]

SCRIPT = """
import os, sys
from harness.side_runs import report

if sys.argv[1] == "broken":
    raise ValueError("no kernel")
names = ("KERAS_BACKEND", "JAX_COMPILATION_CACHE_DIR")
print("a library says hello")
report({"arguments": sys.argv[1:], "set": [os.environ[name] for name in names]})
"""


@pytest.fixture
def runs(monkeypatch):
    """List of (name of a side, arguments of a round) in the order of the runs."""
    found = []

    def run(command, side, arguments, at_once):
        found.append((side[0], *arguments))
        return {"speed": float(arguments[0])}

    monkeypatch.setattr(side_runs, "_run", run)
    return found


def test_sides_take_turns(runs, capsys):
    measured = side_runs.run_in_turn(["script.py"], SIDES, [[3], [1], [2]])
    assert runs == [("ours", 3), ("peer", 3), ("ours", 1), ("peer", 1), ("ours", 2), ("peer", 2)]
    assert measured == {side: {"speed": [3, 1, 2]} for side in SIDES}
    assert "round 2 of 3: peer on torch: speed 1" in capsys.readouterr().err


def test_equal_rounds_are_measured_each_and_not_again(runs, tmp_path):
    finished = tmp_path / "finished"
    for rounds in ([[3]], [[3], [3], [1]]):
        measured = side_runs.run_in_turn(["script.py"], SIDES[:1], rounds, finished=finished)
    assert runs == [("ours", 3), ("ours", 3), ("ours", 1)]
    assert measured["ours", "jax"]["speed"] == [3, 3, 1]


def test_a_process(tmp_path, monkeypatch):
    (tmp_path / "script.py").write_text(SCRIPT)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "somewhere")
    repository = Path(harness.__file__).parents[2]
    path = os.pathsep.join(map(str, (repository, repository / "benchmarks")))
    monkeypatch.setenv("PYTHONPATH", path)
    measured = side_runs.run_in_turn([tmp_path / "script.py", "run"], SIDES[:1], [[7]])
    figures = measured["ours", "jax"]
    assert figures["arguments"] == [["run", "7", "--child", "ours"]]
    assert figures["set"] == [["jax", ""]]
    # A process that has not imported its backend has used no accelerator.
    assert figures["device"] == [None]
    assert 0.001 < figures["memory, GB"][0] < 10

    with pytest.raises(RuntimeError) as caught:
        side_runs.run_in_turn([tmp_path / "script.py", "broken"], SIDES[:1], [[]])
    assert str(caught.value) == "ours on jax: ValueError: no kernel"
    assert "Traceback" in caught.value.__notes__[0]


def test_shares_of_the_peak(capsys, monkeypatch):
    monkeypatch.setattr(side_runs.machine_figures, "find_peak", {"bfloat16": 4e12}.get)
    side_runs.report({"fit": 7.0}, {"fit": 1e12}, "bfloat16")
    printed = json.loads(capsys.readouterr().out)
    assert (printed["fit"], printed["peak, TFLOP/s"]) == (7, 4)
    assert printed["fit, of the peak"] == 0.25
