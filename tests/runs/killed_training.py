"""Trains, is killed at random moments, and trains again, until it is done; run by test_kills.py.

    python killed_training.py DIRECTORY NUM_KILLS SECONDS

Each attempt is a fork, see `forks.py`. A moment is a time from 0 to SECONDS after the fork or, just
as often, after the first batch. One run follows another until there were NUM_KILLS;
`DIRECTORY/uninterrupted` is one that nobody kills. Prints the number of kills, of runs, and of
attempts that failed by themselves.
"""

import random
import signal
import sys
from pathlib import Path

from forks import fork, kill_later, num_lines, wait
from quick_frameworks import run_plain_graphs
from small_pretraining import SmallBatches, StepLog, build_pretrainer, save_arrays

from keras_bert_suite import TrainingCheckpoint

EPOCHS, EVERY = 40, 3


def train(directory):
    run_plain_graphs()
    task = build_pretrainer()
    checkpoint = TrainingCheckpoint(directory / "checkpoints", every=EVERY, keep=2)
    callbacks = [checkpoint, StepLog(directory / "log", checkpoint)]
    task.fit(SmallBatches(), epochs=EPOCHS, verbose=0, callbacks=callbacks)
    save_arrays(task, directory / "final.npz")


def main():
    root, num_kills, seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    rng = random.Random(0)
    kills = runs = failures = 0
    (root / "uninterrupted").mkdir()
    failures += wait(fork(train, root / "uninterrupted")) != 0
    while kills < num_kills and not failures:
        directory = root / f"run-{runs}"
        directory.mkdir()
        runs += 1
        while not (directory / "final.npz").exists() and not failures:
            child, log = fork(train, directory), directory / "log"
            if kills < num_kills:
                # One line says where the attempt began, the next is of a batch.
                awaited = num_lines(log) + 2 if rng.random() < 0.5 else 0
                kill_later(child, rng.uniform(0, seconds), lambda: num_lines(log) >= awaited)  # noqa: B023
            status = wait(child)
            kills += status == -signal.SIGKILL
            failures += status not in (0, -signal.SIGKILL)
    print(kills, runs, failures)


if __name__ == "__main__":
    main()
