"""Compares two revisions of this package: fine-tuning, pretraining and serving, in turn in one run.

    git worktree add ../before b839f03
    python benchmarks/revisions.py --before ../before

Each side runs in a process of its own the benchmarks of its own revision: `finetune.py` (480 rows,
2 epochs), `pretrain.py` (tiny and mini) and `serving.py`. Of these only our side is measured. The
installed packages are the same. Rates should have ratios above 1, and times below 1.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.result_tables import describe_run, format_figures, format_ratios, format_table
from harness.side_flags import BACKENDS, parse_flags
from harness.side_runs import report, run_in_turn

HERE = Path(__file__).resolve().parents[1]

#: Name -> (script, its arguments, backends).
WORKS = {
    "fine-tuning": ("finetune.py", ["--rows", "480", "--epochs", "2"], BACKENDS),
    "pretraining, tiny": ("pretrain.py", ["--sizes", "tiny"], BACKENDS),
    "pretraining, mini": ("pretrain.py", ["--sizes", "mini"], BACKENDS),
    "serving": ("serving.py", [], ("tensorflow",)),
}

#: The figures that are compared.
FIGURES = ("fit", "predict", "first epoch", "all epochs", "sequences/s", "sentences/s, 1")
FIGURES = (*FIGURES, "sentences/s, 32", "median ms, 1", "95% ms, 1")


def run_side(checkout, work):
    """Prints the figures of a revision, which may print others too, as JSON."""
    script, arguments, _ = WORKS[work]
    with tempfile.TemporaryDirectory() as folder:
        if script == "serving.py":
            arguments = ["--folder", folder]
            call(checkout, script, "models", arguments)
        figures = json.loads(call(checkout, script, "ours", arguments))
    report({name: figures[name] for name in FIGURES if name in figures})


def call(checkout, script, child, arguments):
    """The last line that a benchmark of a checkout prints."""
    command = [sys.executable, checkout / "benchmarks" / script, "--child", child, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    process = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    if process.returncode:
        sys.exit(f"{script} failed in {checkout}")
    return process.stdout.strip().splitlines()[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--before", type=Path, required=True, help="a checkout")
    parser.add_argument("--after", type=Path, default=HERE, help="a checkout, by default this one")
    parser.add_argument("--works", nargs="+", default=list(WORKS), choices=list(WORKS))
    parser.add_argument("--backends", nargs="+", default=BACKENDS, choices=BACKENDS)
    options = parse_flags(parser)
    if options.child:
        run_side(getattr(options, options.child).resolve(), *options.works)
        return

    rows, measured = [], {}
    for work in options.works:
        backends = [backend for backend in WORKS[work][2] if backend in options.backends]
        sides = [(side, backend) for backend in backends for side in ("before", "after")]
        measured = run_in_turn([*sys.argv, "--works", work], sides, [[]] * options.rounds)
        for backend in backends:
            before, after = measured["before", backend], measured["after", backend]
            for name in (name for name in FIGURES if name in before):
                pair = after[name], before[name]
                cells = [*map(format_figures, pair), format_ratios(*pair)]
                rows.append([work, backend, name, *cells])
    print(f"{describe_run(measured, options.rounds)}\n")
    headings = ["work", "backend", "figure", "after", "before", "after / before"]
    print(format_table(headings, rows))


if __name__ == "__main__":
    main()
