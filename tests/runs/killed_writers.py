"""Processes write joint checkpoints and are killed at random moments; run by the tests beside it.

    python killed_writers.py DIRECTORY NUM_KILLS

Each attempt goes on from the newest checkpoint with another number of processes, and one process is
killed, at a random moment after the start or, just as often, after the next checkpoint. The others
are killed a moment later, as JAX does it. In between the checkpoint is read: all its numbers must
be of one step. Prints how many attempts left a later checkpoint, and for how many this was awaited.
"""

import os
import random
import signal
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from forks import fork, wait

from keras_bert_suite.replicas import Group
from keras_bert_suite.runs.joint_checkpoints import JointCheckpoints
from keras_bert_suite.runs.progress import Progress
from keras_bert_suite.runs.run_checkpoints import find_checkpoint, read_arrays
from keras_bert_suite.runs.variable_pieces import Pieces

ROWS, COLUMNS, STEPS = 60, 5, 100000


def cut(step, group):
    """The rows of one process of an array that holds the step, and a scalar of the last process."""
    size = ROWS // group.count
    arrays = {f"model/kernel@{size * group.index},0": np.full((size, COLUMNS), step, "float32")}
    if group.index == group.count - 1:
        arrays["optimizer/iteration@"] = np.array(step)
    return Pieces(arrays, {"model/kernel": [ROWS, COLUMNS], "optimizer/iteration": []})


def find_step(directory):
    """The step of the newest checkpoint, whose numbers are all of this step."""
    found = find_checkpoint(directory)
    if found is None:
        return 0
    path, progress = found
    arrays = read_arrays(path)
    assert arrays["model/kernel"].shape == (ROWS, COLUMNS)
    for array in arrays.values():
        assert (array == progress.batches).all(), (progress, array)
    return progress.batches


def write_on(directory, first, group, attempt):
    """Writes one checkpoint after the other, until it is killed."""
    checkpoints = JointCheckpoints(group, attempt)
    for step in range(first + 1, STEPS):
        checkpoints.write(directory, Progress(0, 0, step, STEPS), cut(step, group), keep=2)


def wait_for_next(directory):
    """Waits until a checkpoint is completed."""
    before = set(directory.glob("step-*"))
    deadline = time.monotonic() + 60
    while set(directory.glob("step-*")) <= before:
        assert time.monotonic() < deadline, "no checkpoint within a minute"
        time.sleep(0.001)


def main():
    directory, num_kills = Path(sys.argv[1]), int(sys.argv[2])
    # A damaged checkpoint would be passed over with a warning. There must be none.
    warnings.simplefilter("error")
    rng = random.Random(0)
    step = num_forward = num_waited = 0
    for attempt in range(num_kills):
        count = rng.choice([1, 2, 3])
        children = [
            fork(write_on, directory, step, Group(i, count), f"attempt-{attempt}")
            for i in range(count)
        ]
        if rng.random() < 0.5:
            num_waited += 1
            wait_for_next(directory)
        time.sleep(rng.uniform(0, 0.05))
        rng.shuffle(children)
        for child in children:
            os.kill(child, signal.SIGKILL)
            assert wait(child) == -signal.SIGKILL, "a writer has failed by itself"
            time.sleep(rng.choice([0, 0.01]))
        before, step = step, find_step(directory)
        assert step >= before
        num_forward += step > before
        assert not list(directory.glob(".*.tmp"))
    print(num_forward, num_waited)


if __name__ == "__main__":
    main()
