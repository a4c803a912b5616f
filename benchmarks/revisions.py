"""Compares two revisions of this package: fine-tuning, pretraining and serving, in turn in one run.

    git worktree add ../before b839f03
    python benchmarks/revisions.py --before ../before

Each side runs in a process of its own the benchmarks of its own revision: `finetune.py` (480 rows,
2 epochs), `pretrain.py` (tiny and mini) and `serving.py`. Of these only our side is measured. The
installed packages are the same. A ratio above 1 says that the later revision is the better one.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from side_processes import describe_run, measure_in_turn

HERE = Path(__file__).resolve().parents[1]
BACKENDS = ("tensorflow", "jax", "torch")

#: Name -> (script, its arguments, backends).
WORKS = {
    "fine-tuning": ("finetune.py", ["--rows", "480", "--epochs", "2"], BACKENDS),
    "pretraining, tiny": ("pretrain.py", ["--sizes", "tiny"], BACKENDS),
    "pretraining, mini": ("pretrain.py", ["--sizes", "mini"], BACKENDS),
    "serving": ("serving.py", [], ("tensorflow",)),
}

#: Figures of which the smaller is the better one.
TIMES = ("first epoch", "all epochs", "median ms, 1", "95% ms, 1")


def run_side(checkout, work):
    """Prints the figures of a revision as JSON."""
    script, arguments, _ = WORKS[work]
    with tempfile.TemporaryDirectory() as folder:
        if script == "serving.py":
            arguments = ["--folder", folder]
            call(checkout, script, "models", arguments)
        print(call(checkout, script, "ours", arguments))


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
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        run_side(getattr(options, options.child).resolve(), *options.works)
        return

    print(f"{describe_run(options.rounds)}\n")
    print("| work | backend | figure | before | after | after / before |")
    print("| --- | --- | --- | --- | --- | --- |")
    for work in options.works:
        backends = [backend for backend in WORKS[work][2] if backend in options.backends]
        sides = [(side, backend) for backend in backends for side in ("before", "after")]
        arguments = ["--works", work, "--before", options.before, "--after", options.after]
        measured = measure_in_turn(__file__, sides, options.rounds, arguments)
        for backend in backends:
            before, after = measured["before", backend], measured["after", backend]
            for name in before:
                if name == "accuracy":
                    continue
                ratio = after[name] / before[name]
                cells = (work, backend, name, f"{before[name]:.1f}", f"{after[name]:.1f}")
                print(f"| {' | '.join(cells)} | {1 / ratio if name in TIMES else ratio:.2f}x |")


if __name__ == "__main__":
    main()
