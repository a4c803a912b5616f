"""The figures of a benchmark as Markdown: medians with the lowest and the highest, and ratios."""

import importlib.metadata
import statistics
import sys
from pathlib import Path

from harness.machine_figures import describe_processor


def describe_run(measured, rounds, packages=()):
    """Markdown: the command, how often it measured, the machine and the versions.

    Args:
        measured: dict from `side_runs.run_in_turn`, or {}.
        rounds: int.
        packages: names of packages that were measured beside Keras and the backends.
    """
    command = f"python benchmarks/{Path(sys.argv[0]).name}"
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


#: The columns of a training that is measured once with each seed.
COST = {"seconds": "{:.0f}", "memory, GB": "{:.2f}"}


def format_cells(figures, columns):
    """The cells of a side.

    Args:
        figures: dict, name -> list of values.
        columns: dict, name of a figure -> its format.
    """
    return [format_figures(figures[name], form) for name, form in columns.items()]


def format_columns(measured, columns, headings=("side", "backend")):
    """Markdown of a table with a row for each side and a column for each figure.

    Args:
        measured: dict from `side_runs.run_in_turn`.
        columns: as for `format_cells`.
        headings: of the name of a side and its backend.
    """
    rows = [[*side, *format_cells(figures, columns)] for side, figures in measured.items()]
    return format_table([*headings, *columns], rows)


def format_comparison(measured, columns, peers):
    """Markdown of the ratios of sides named "ours" to all others.

    Args:
        measured: dict from `side_runs.run_in_turn`.
        columns: names of figures.
        peers: names of the sides that are not made of Keras. Each is compared with "ours" on every
            backend, the other sides with "ours" on their own.
    """
    rows = [
        [name, ours[1], *(format_ratios(measured[ours][of], figures[of]) for of in columns)]
        for (name, backend), figures in measured.items()
        for ours in measured
        if ours[0] == "ours" != name and (name in peers or backend == ours[1])
    ]
    return format_table(["ours / side", "backend", *columns], rows)


def describe_seeds(scores, digits=4):
    """The cells of each seed, the mean and the standard deviation, which is empty for one seed.

    Args:
        scores: list of floats, one for each seed.
        digits: int, after the point.
    """
    form = f"{{:.{digits}f}}"
    spread = form.format(statistics.stdev(scores)) if len(scores) > 1 else ""
    return [", ".join(map(form.format, scores)), form.format(statistics.mean(scores)), spread]
