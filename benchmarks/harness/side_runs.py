"""Runs the sides of a benchmark in turn, each in a process of its own.

A side is a pair: its name and its Keras backend. Its process gets `--child NAME`, and ends with
`report`.
"""

import collections
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness import machine_figures


def run_in_turn(command, sides, rounds, at_once=1, finished=None):
    """Runs `python COMMAND ARGUMENTS --child NAME` for every side, in each round.

    Args:
        command: list, a script and its arguments.
        sides: list of (name, Keras backend).
        rounds: list, for each round the list of its further arguments.
        at_once: int, processes that run side by side and share the cores. With more than one,
            measure the seconds of the processor (`time.process_time`), not those of the clock.
        finished: path of a file, or None. Each run that ends adds a line to it, and a line takes
            the place of one run. So a study that was killed resumes.

    Returns:
        dict, side -> dict, name of a figure -> list of its values, one for each round.

    Raises:
        RuntimeError: if a process fails. The message names the side and has the last line of its
            errors; a note has the lines before.
    """
    known = _read_finished(finished)
    places = [(number, side) for number in range(len(rounds)) for side in sides]

    def run(place):
        number, side = place
        key = json.dumps([*side, *map(str, rounds[number])])
        if known[key]:
            figures = known[key].pop(0)
        else:
            figures = _run(command, side, rounds[number], at_once)
            if finished:
                with open(finished, "a") as file:
                    file.write(json.dumps({"run": key, "figures": figures}) + "\n")
        shown = ", ".join(f"{name} {_shorten(figures[name])}" for name in figures)
        print(f"round {number + 1} of {len(rounds)}: {' on '.join(side)}: {shown}", file=sys.stderr)
        return figures

    with ThreadPoolExecutor(at_once) as pool:
        runs = dict(zip(places, pool.map(run, places), strict=True))
    return {
        side: {
            name: [runs[number, side][name] for number in range(len(rounds))]
            for name in runs[0, side]
        }
        for side in sides
    }


def _read_finished(path):
    """dict of lists. Rounds with the same arguments have a line each."""
    known = collections.defaultdict(list)
    if path and Path(path).exists():
        for line in map(json.loads, Path(path).read_text().splitlines()):
            known[line["run"]].append(line["figures"])
    return known


def _run(command, side, arguments, at_once):
    name, backend = side
    threads = str(max(1, (os.cpu_count() or 1) // at_once))
    shared = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
    process = subprocess.run(
        [sys.executable, *map(str, [*command, *arguments]), "--child", name],
        # Without the folder of compiled steps, or the first step would be that of a second run.
        env={
            **os.environ,
            "KERAS_BACKEND": backend,
            "JAX_COMPILATION_CACHE_DIR": "",
            "TF_CPP_MIN_LOG_LEVEL": "2",
            **(dict.fromkeys(shared, threads) if at_once > 1 else {}),
        },
        capture_output=True,
        text=True,
    )
    lines = process.stdout.strip().splitlines()
    if process.returncode or not lines:
        problem = process.stderr.strip().splitlines() or [f"exit status {process.returncode}"]
        error = RuntimeError(f"{name} on {backend}: {problem[-1]}")
        error.add_note("\n".join(problem[-40:]))
        raise error
    return json.loads(lines[-1])


def _shorten(value):
    return f"{value:.4g}" if isinstance(value, float) else value


def report(figures, operations=None, dtype="float32"):
    """Prints the figures of this process as a line of JSON, with those of its machine.

    They are "memory, GB", and "device", the name of the accelerator or None. With `operations`
    there are the speed of products, "peak, TFLOP/s", and the share of it that each work took,
    "NAME, of the peak".

    Args:
        figures: dict.
        operations: dict, name of a work -> its operations/s, or None.
        dtype: str, of the products.
    """
    device = machine_figures.find_device()
    machine = {"memory, GB": machine_figures.find_memory(device), "device": device}
    if operations:
        peak = machine_figures.find_peak(dtype)
        machine["peak, TFLOP/s"] = peak / 1e12
        machine |= {f"{name}, of the peak": rate / peak for name, rate in operations.items()}
    print(json.dumps({**figures, **machine}))
