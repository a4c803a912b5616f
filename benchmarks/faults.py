"""Injects faults into trainings, preparations and files, and counts what comes of them.

    python benchmarks/faults.py                     # 600 kills, 10,000 flips; hours
    python benchmarks/faults.py --parts kills --kills 50
    python benchmarks/faults.py --parts flips --flips 1000 --into presets "run settings"

The parts:

- kills: SIGKILL at random moments of `keras-bert pretrain` and `keras-bert prepare`. The same
  command goes on until it is done. Then every loss, weight and state must be, bit for bit, that of
  a run that nobody killed. One process imports everything, and forks a child for each attempt.
  A preparation with two workers starts processes of its own, so it gets fewer kills.
- processes: SIGKILL at random moments of one of two processes that share a run. Under PyTorch it is
  a run of `keras-bert pretrain --devices 2`, under JAX a script on two processes. The other process
  must end by itself, with an error that names the lost process, and all must go on together. See
  `fault_processes.py`; KERAS_BACKEND says which backend.
- replicas: a row of a batch that is not finite, on one of two replicas. Both must skip the step.
  See `fault_replicas.py`.
- flips: one flipped bit in a file that the package has written. An error must name it, or a warning
  and an older checkpoint, or the result must be the same. See `fault_flips.py`.
- disk: a disk that is full from time to time (a tmpfs; needs root), and a disk whose flushes and
  renames take up to a tenth of a second.
- stops: SIGSTOP, and SIGCONT a moment later.
- clocks: a clock that jumps by days, forwards and backwards.
- twice: a second run on the folder of a run.

The counts: unresumable (an attempt failed by itself, or the run could not go on), silent (a wrong
result without an error), skipped (batches left out), repeated (batches that the weights have seen
twice), hung (a process that did not end after another was lost). All must be 0, or the exit status
is 1.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "torch")
# A fork does not have the threads of its parent.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import fault_disturbances as disturbances
from fault_flips import FLIPPED, flip_bits
from fault_processes import SHARED, kill_shared
from fault_replicas import corrupt_rows
from fault_runs import import_everything, write_corpus
from harness.result_tables import describe_run, format_table

PARTS = ("kills", "processes", "replicas", "flips", "disk", "stops", "clocks", "twice")

HEADINGS = ["fault", "into", "faults", "unresumable", "silent", "skipped", "repeated", "hung"]
HEADINGS = [*HEADINGS, "named by an error or a warning", "without effect", "seconds"]


def list_works(options):
    """Yields (part, fault, what it hits, function of a `Bench` that returns `Counts` or None)."""
    prepared = round(options.kills * disturbances.PREPARE_SHARE)
    with_workers = round(prepared * disturbances.WORKERS_SHARE)
    killed = options.kills - prepared

    def work(function, *arguments):
        return lambda bench: function(bench, *arguments)

    yield "kills", "SIGKILL", "pretrain", work(disturbances.kill_pretrainings, killed)
    single = prepared - with_workers
    yield "kills", "SIGKILL", "prepare", work(disturbances.kill_preparations, single)
    double = work(disturbances.kill_workers, with_workers)
    yield "kills", "SIGKILL", "prepare, two workers", double
    shared = SHARED.get(os.environ["KERAS_BACKEND"])
    if shared:
        name, make = shared
        yield "processes", "SIGKILL", name, work(kill_shared, make, options.shared_kills)
    corrupt = work(corrupt_rows, options.corrupted)
    yield "replicas", "row of NaN", "one of two replicas", corrupt
    for name, (share, make) in FLIPPED.items():
        number = round(options.flips * share)
        yield "flips", "flipped bit", name, work(flip_bits, make, number)
    few = options.disturbed
    yield "disk", "full disk", "pretrain", work(disturbances.fill_disk, few)
    yield "disk", "slow disk, SIGKILL", "pretrain", work(disturbances.slow_disks, few)
    yield "stops", "SIGSTOP", "pretrain", work(disturbances.stop_and_continue, 10 * few)
    yield "clocks", "clock, SIGKILL", "pretrain", work(disturbances.jump_clocks, few)
    yield "twice", "second run", "pretrain, prepare", work(disturbances.run_twice, few)


def main():
    """Prints the table.

    Returns:
        int, the exit status: 1 if an outcome that must not be was counted.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--into", nargs="+", help="only what has these names in the table")
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--shared_kills", type=int, default=100, help="kills of one of two")
    parser.add_argument("--corrupted", type=int, default=100, help="batches with a row of NaN")
    parser.add_argument("--flips", type=int, default=10_000)
    parser.add_argument("--disturbed", type=int, default=20, help="runs of each other part")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    import_everything()
    rows, bad = [], 0
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(Path(folder))
        bench = disturbances.Bench(Path(folder), options.seed)
        for part, fault, name, work in list_works(options):
            if part not in options.parts or options.into and name not in options.into:
                continue
            begin = time.monotonic()
            counts = work(bench)
            if counts is None:
                print(f"{fault}: left out, no tmpfs can be mounted", file=sys.stderr)
                continue
            bad += counts.bad
            cells = [counts.faults, counts.unresumable, counts.silent, counts.skipped]
            cells = [
                *cells,
                counts.repeated,
                counts.hung,
                counts.found or "",
                counts.harmless or "",
            ]
            seconds = f"{time.monotonic() - begin:.0f}"
            rows.append([fault, name, *map(str, cells), seconds])
            print(" | ".join(rows[-1]), file=sys.stderr)
    print(f"{describe_run({}, 1, [os.environ['KERAS_BACKEND']])}\n")
    print(format_table(HEADINGS, rows))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
