"""A run of `device_runs.py` that several processes may share; run by the tests beside it.

    python process_runs.py FOLDER RUN PORT NUM_PROCESSES PROCESS

Checkpoints are in FOLDER/checkpoints. Each process leaves FOLDER/PROCESS.npz, with the losses and
all variables. KILL="PROCESS:BATCH" kills a process at the end of a batch,
and SIGTERM="PROCESS:BATCH" sends it the signal. With VALIDATION="PROCESS:BATCH" a long validation
follows, and the process gets SIGTERM at the end of a batch of the validation. FOLDER/PROCESS.txt
then has the number of batches that were validated.
"""

import os
import signal
import sys
from pathlib import Path

import jax
import keras
import numpy as np
from device_runs import RUNS, VALIDATION_STEPS, Batches, build, distribute

from keras_bert_suite import TrainingCheckpoint
from keras_bert_suite.runs.model_variables import copy_variables


def signal_at(process, name, number, end="on_train_batch_end"):
    """A callback that sends a signal to this process, if the environment says so."""
    wanted, _, batch = os.environ.get(name, "").partition(":")

    def send(index, logs):
        if wanted == process and index + 1 == int(batch):
            os.kill(os.getpid(), number)

    callback = keras.callbacks.Callback()
    setattr(callback, end, send)
    return callback


def main():
    folder, name, port, num_processes, process = sys.argv[1:]
    if int(num_processes) > 1:
        # A process notices within seconds that another was killed.
        jax.distributed.initialize(
            f"127.0.0.1:{port}", int(num_processes), int(process), heartbeat_timeout_seconds=10
        )
    devices, num_batches, arguments = RUNS[name]
    with distribute(devices):
        task = build(**arguments)
        losses = []
        checkpoint = TrainingCheckpoint(Path(folder, "checkpoints"), every=2)
        callbacks = [
            checkpoint,
            keras.callbacks.LambdaCallback(
                on_train_batch_end=lambda batch, logs: losses.append(float(logs["loss"]))
            ),
            signal_at(process, "KILL", signal.SIGKILL),
            signal_at(process, "SIGTERM", signal.SIGTERM),
            signal_at(process, "VALIDATION", signal.SIGTERM, end="on_test_batch_end"),
        ]
        validation, validated = {}, []
        if "VALIDATION" in os.environ:
            validation = {"validation_data": Batches(), "validation_steps": VALIDATION_STEPS}
            callbacks.append(
                keras.callbacks.LambdaCallback(
                    on_test_batch_end=lambda batch, logs: validated.append(batch)
                )
            )
        task.fit(
            Batches(), steps_per_epoch=num_batches, verbose=0, callbacks=callbacks, **validation
        )
        arrays = copy_variables(task)
    if validation:
        Path(folder, f"{process}.txt").write_text(str(len(validated)))
    np.savez(
        Path(folder, f"{process}.npz"),
        losses=losses,
        batches=checkpoint.progress.batches,
        **arrays,
    )


if __name__ == "__main__":
    main()
