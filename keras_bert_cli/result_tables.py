"""The figures of a benchmark as Markdown: medians with the lowest and the highest, and ratios."""

import importlib.metadata
import statistics
import sys
from pathlib import Path

from .machine_figures import describe_processor


def describe_run(measured, rounds, packages=()):
    """Markdown: the command, how often it measured, the machine and the versions.

    Args:
        measured: dict from `side_runs.run_in_turn`, or {}.
        rounds: int.
        packages: names of packages that were measured beside Keras and the backends.
    """
    program = Path(sys.argv[0])
    script = program.suffix == ".py"
    command = f"python benchmarks/{program.name}" if script else program.name
    devices = {name for figures in measured.values() for name in figures["device"] if name}
    machine = ", ".join([*sorted(devices), describe_processor()])
    names = dict.fromkeys(["keras", *(backend for _, backend in measured), *packages])
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
    figures = f"medians of {rounds} rounds (lowest to highest)" if rounds > 1 else "one round"
    return (
        f"    $ {' '.join([command, *map(_quote, sys.argv[1:])])}\n\n"
        f"{machine}; {figures}. {versions}."
    )


def _quote(argument):
    return f"'{argument}'" if " " in argument else argument


def format_table(headings, rows):
    """Markdown of a table.

    Args:
        headings: list of str.
        rows: list of lists of str.
    """
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def format_figures(values, form="{:.1f}"):
    """The cell "median (lowest to highest)"; of one value, it alone; empty for a None.

    Args:
        values: list of numbers, one for each round.
        form: str, the format of a number.
    """
    if None in values:
        return ""
    if len(values) == 1:
        return form.format(values[0])
    low, middle, high = (form.format(find(values)) for find in (min, statistics.median, max))
    return f"{middle} ({low} to {high})"


def format_ratios(values, others):
    """The cell of the ratios of two figures, each of two values of one round."""
    pairs = zip(values, others, strict=True)
    return format_figures([value / other for value, other in pairs], "{:.2f}x")


def format_columns(measured, columns, headings=("side", "backend")):
    """Markdown of a table with a row for each side and a column for each figure.

    Args:
        measured: dict from `side_runs.run_in_turn`.
        columns: list of (name of a figure, its heading, its format).
        headings: of the name of a side and its backend.
    """
    rows = [
        [*side, *(format_figures(figures[name], form) for name, _, form in columns)]
        for side, figures in measured.items()
    ]
    return format_table([*headings, *(heading for _, heading, _ in columns)], rows)


def describe_seeds(scores, digits=4):
    """The cells of each seed, the mean and the standard deviation, which is empty for one seed.

    Args:
        scores: list of floats, one for each seed.
        digits: int, after the point.
    """
    return [", ".join(f"{score:.{digits}f}" for score in scores), *describe_mean(scores, digits)]


def describe_mean(scores, digits=4):
    """The cells of the mean and the standard deviation, as in `describe_seeds`."""
    spread = f"{statistics.stdev(scores):.{digits}f}" if len(scores) > 1 else ""
    return [f"{statistics.mean(scores):.{digits}f}", spread]
