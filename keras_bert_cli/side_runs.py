"""Runs the sides of a benchmark in turn, each in a process of its own.

A side is a pair: its name and its Keras backend. Its process gets `--child NAME`, and ends with
`report`.
"""

import json
import os
import subprocess
import sys

from . import machine_figures


def run_in_turn(command, sides, rounds):
    """Runs `python COMMAND ARGUMENTS --child NAME` for every side, in each round.

    Args:
        command: list, a script or `-m MODULE` and its arguments.
        sides: list of (name, Keras backend).
        rounds: list, for each round the list of its further arguments.

    Returns:
        dict, side -> dict, name of a figure -> list of its values, one for each round.

    Raises:
        RuntimeError: if a process fails. The message names the side and has the last line of its
            errors; a note has the lines before.
    """
    runs = {side: [] for side in sides}
    for number, arguments in enumerate(rounds):
        for side in sides:
            figures = _run(command, side, arguments)
            runs[side].append(figures)
            shown = ", ".join(f"{name} {_shorten(figures[name])}" for name in figures)
            place = f"round {number + 1} of {len(rounds)}"
            print(f"{place}: {' on '.join(side)}: {shown}", file=sys.stderr)
    return {
        side: {name: [figures[name] for figures in taken] for name in taken[0]}
        for side, taken in runs.items()
    }


def _run(command, side, arguments):
    name, backend = side
    process = subprocess.run(
        [sys.executable, *map(str, [*command, *arguments]), "--child", name],
        # Without the folder of compiled steps, or the first step would be that of a second run.
        env={
            **os.environ,
            "KERAS_BACKEND": backend,
            "JAX_COMPILATION_CACHE_DIR": "",
            "TF_CPP_MIN_LOG_LEVEL": "2",
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
