"""Corrupts a row of a batch, which one of two replicas takes; for faults.py.

Both replicas must skip the step, as one device does that has the whole batch: at the end they have
the same weights to the bit, and those of one device up to rounding.
"""

import os
import shutil
import types

import numpy as np
from fault_runs import Counts
from forks import fork, wait
from harness.loopback import find_free_port, make_environment

#: Batches of a training, and how many of them have a row that is not finite.
STEPS, CORRUPTED = 40, 10

#: A row for each.
REPLICAS = 2


def corrupt_rows(bench, number):
    """Trains on two replicas and on one device, with the same rows of NaN.

    Args:
        bench: `Bench`.
        number: int, batches with such a row.

    Returns:
        `Counts`.
    """
    counts = Counts()
    folder = bench.folder / "replicas"
    while counts.faults < number and not counts.unresumable:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        batches = bench.rng.sample(range(STEPS), min(CORRUPTED, number - counts.faults))
        rows = {batch: bench.rng.randrange(REPLICAS) for batch in batches}
        counts.faults += len(rows)
        children = [fork(_train, folder / "alone.npz", rows), *_start_replicas(folder, rows)]
        statuses = [wait(child) for child in children]
        counts.unresumable += any(statuses)
        if not any(statuses):
            _compare(folder, len(rows), counts)
    return counts


def _start_replicas(folder, rows):
    """The process ids of the replicas, which share one process under TensorFlow and JAX."""
    if os.environ["KERAS_BACKEND"] != "torch":
        return [fork(_train, folder / "replicas.npz", rows, str(REPLICAS))]
    port = find_free_port()
    return [
        fork(
            _train,
            folder / f"replicas-{rank}.npz",
            rows,
            str(REPLICAS),
            make_environment(rank, REPLICAS, port),
        )
        for rank in range(REPLICAS)
    ]


def _train(file, rows, devices=None, environment=()):
    """Trains in this process, and writes the steps taken and each copy of each weight."""
    os.environ.update(environment)
    import keras
    from small_pretraining import SmallBatches, build_pretrainer

    from keras_bert_cli.devices import use_devices

    class CorruptedBatches(SmallBatches):
        def __getitem__(self, index):
            if isinstance(index, slice):
                return self.slice(index)
            x, y, weights = super().__getitem__(index)
            if index in rows:
                weights["mlm"][rows[index]] = np.nan
            return x, y, weights

    with use_devices(types.SimpleNamespace(devices=devices)):
        # Each process of PyTorch draws a dropout of its own.
        task = build_pretrainer(dropout=0.0)
        task.fit(CorruptedBatches(), steps_per_epoch=STEPS, verbose=0)
        copies = {
            f"{number} {copy}": np.array(array)
            for number, variable in enumerate(task.trainable_variables)
            for copy, array in enumerate(_list_copies(variable))
        }
        np.savez(file, steps=keras.ops.convert_to_numpy(task.optimizer.iterations), **copies)


def _list_copies(variable):
    """The arrays of a variable on the devices of this process."""
    import keras

    if keras.config.backend() == "tensorflow":
        import tensorflow as tf

        return tf.distribute.get_strategy().experimental_local_results(variable.value)
    if keras.config.backend() == "jax":
        return [shard.data for shard in variable.value.addressable_shards]
    return [keras.ops.convert_to_numpy(variable)]


def _compare(folder, corrupted, counts):
    """Counts what the replicas have taken, and in what they differ."""
    alone = dict(np.load(folder / "alone.npz"))
    files = [dict(np.load(path)) for path in sorted(folder.glob("replicas*.npz"))]
    steps = {int(file.pop("steps")) for file in files}
    counts.silent += steps != {int(alone.pop("steps"))}
    counts.skipped += max(0, STEPS - corrupted - min(steps))
    counts.found += STEPS - max(steps)
    for name, wanted in alone.items():
        number = name.split()[0]
        copies = [
            array for file in files for key, array in file.items() if key.split()[0] == number
        ]
        same = len(copies) == REPLICAS and all(np.array_equal(copies[0], copy) for copy in copies)
        if not same or not np.allclose(copies[0], wanted, rtol=1e-4, atol=1e-5):
            counts.silent += 1
            return
