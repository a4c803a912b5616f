"""Trains, is killed at random moments, and trains again, until it is done; run by test_kills.py.

    python killed_training.py DIRECTORY NUM_KILLS SECONDS

Imports take seconds, so they are made once and each attempt is a fork, made before the backend
has started a thread. A moment is a time from 0 to SECONDS after the fork or, just as often, after
the first batch. One run follows another until there were NUM_KILLS; `DIRECTORY/uninterrupted` is
one that nobody kills. Prints the number of kills, of runs, and of attempts that failed by
themselves.
"""

import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

from small_pretraining import SmallBatches, StepLog, build_pretrainer, save_arrays

from keras_bert_suite import TrainingCheckpoint

EPOCHS, EVERY = 40, 3


def train(directory):
    task = build_pretrainer()
    checkpoint = TrainingCheckpoint(directory / "checkpoints", every=EVERY, keep=2)
    callbacks = [checkpoint, StepLog(directory / "log", checkpoint)]
    task.fit(SmallBatches(), epochs=EPOCHS, verbose=0, callbacks=callbacks)
    save_arrays(task, directory / "final.npz")


def start(directory):
    """The process id of one attempt."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        train(directory)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def num_lines(path):
    return len(path.read_bytes().splitlines()) if path.exists() else 0


def kill_later(child, log, rng, seconds):
    """SIGKILL at a random moment, if the attempt is not done before."""
    before, from_first_batch = num_lines(log), rng.random() < 0.5
    moment = time.monotonic() + rng.uniform(0, seconds)
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        # One line says where the attempt began, the next is of a batch.
        if from_first_batch and num_lines(log) >= before + 2:
            moment, from_first_batch = time.monotonic() + rng.uniform(0, seconds), False
        if not from_first_batch and time.monotonic() >= moment:
            os.kill(child, signal.SIGKILL)
            return
        time.sleep(0.002)


def main():
    root, num_kills, seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    rng = random.Random(0)
    kills = runs = failures = 0
    (root / "uninterrupted").mkdir()
    failures += os.waitpid(start(root / "uninterrupted"), 0)[1] != 0
    while kills < num_kills and not failures:
        directory = root / f"run-{runs}"
        directory.mkdir()
        runs += 1
        while not (directory / "final.npz").exists() and not failures:
            child = start(directory)
            if kills < num_kills:
                kill_later(child, directory / "log", rng, seconds)
            status = os.waitpid(child, 0)[1]
            kills += os.WIFSIGNALED(status)
            failures += os.WIFEXITED(status) and status != 0
    print(kills, runs, failures)


if __name__ == "__main__":
    main()
