"""Trains under a backend of its own, twice, the second time until killed; run by test_backends.py.

    python other_backend.py DIRECTORY

`DIRECTORY/uninterrupted` and `DIRECTORY/killed` hold the checkpoints, `DIRECTORY/log` the batches
of the first.
"""

import os
import signal
import sys
from pathlib import Path

from small_pretraining import At, StepLog, build_pretrainer, fit

from keras_bert_suite import TrainingCheckpoint

directory = Path(sys.argv[1])
checkpoint = TrainingCheckpoint(directory / "uninterrupted")
fit(build_pretrainer(dropout=0.0), checkpoint, StepLog(directory / "log", checkpoint))
checkpoint = TrainingCheckpoint(directory / "killed", every=10, asynchronous=False)
kill = At(11, lambda: os.kill(os.getpid(), signal.SIGKILL))
fit(build_pretrainer(dropout=0.0), checkpoint, kill)
