"""Whether replicas train as one device does, and what they say to each other.

    python benchmarks/replicas.py                            # 1, 2 and 4 replicas, minutes
    python benchmarks/replicas.py --backends torch --replicas 1 2 --steps 5

Each side trains the same Pretrainer (masked tokens and pairs) on the same whole batches without
dropout, on the processor: under PyTorch in processes that gloo joins on a loopback address, under
TensorFlow and JAX on logical devices of one process. Losses are those of each step.

Communication is counted under PyTorch: the bytes that each process hands to `all_reduce` in a step,
of gradients and of everything else. The time outside of compute is the time within these calls,
waiting included, as a share of a step; the processes share the cores of this machine, so it says
little about machines with a core or a GPU for each process.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import time

from harness.result_tables import describe_run, format_table


def make_batches(rows, length, vocabulary, count):
    """Pretraining batches (x, y, weights) with unequal numbers of masked tokens."""
    import numpy as np

    for seed in range(count):
        rng = np.random.default_rng(seed)
        token_ids = rng.integers(5, vocabulary, (rows, length), "int32")
        lengths = rng.integers(length // 2, length + 1, rows)
        mask = (np.arange(length) < lengths[:, None]).astype("int32")
        positions = np.sort(rng.integers(1, length // 2, (rows, length // 8)), axis=1)
        x = {
            "token_ids": token_ids * mask,
            "segment_ids": np.zeros_like(token_ids),
            "padding_mask": mask,
            "mask_positions": positions.astype("int32"),
        }
        weights = rng.integers(0, 2, positions.shape).astype("float32")
        weights *= rng.random((rows, 1)) < 0.7
        y = {
            "mlm": rng.integers(5, vocabulary, positions.shape, "int32"),
            "nsp": rng.integers(0, 2, rows, "int32"),
        }
        yield x, y, {"mlm": weights, "nsp": np.ones(rows, "float32")}


def run_side(options):
    """Trains one side, and returns its figures."""
    import contextlib

    import grain
    import keras

    import keras_bert_suite as kbs

    scope = contextlib.nullcontext()
    counts = {"gradients": 0, "other": 0, "seconds": 0.0}
    if keras.config.backend() == "tensorflow" and options.count > 1:
        import tensorflow as tf

        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration()] * options.count
        )
        devices = [f"CPU:{i}" for i in range(options.count)]
        scope = tf.distribute.MirroredStrategy(devices).scope()
    if keras.config.backend() == "jax" and options.count > 1:
        distribution = keras.distribution.DataParallel(auto_shard_dataset=False)
        keras.distribution.set_distribution(distribution)
    if keras.config.backend() == "torch":
        import torch

        torch.set_num_threads(1)
        if options.count > 1:
            torch.distributed.init_process_group("gloo")
            count_reductions(counts)
    keras.utils.set_random_seed(0)
    with scope:
        backbone = kbs.BertBackbone.from_size(options.size, vocabulary_size=30522, dropout=0.0)
        task = kbs.Pretrainer(backbone)
        task.compile(kbs.AdamW(1e-3, global_clipnorm=1.0))
    batches = make_batches(options.rows, options.length, 30522, options.steps)
    dataset = grain.MapDataset.source(list(batches))
    begins = []

    def begin_epoch(epoch, logs):
        begins.append(time.perf_counter())
        if epoch == 1:  # The first step traces and compiles, and compares the processes.
            counts.update(gradients=0, other=0, seconds=0.0)

    clock = keras.callbacks.LambdaCallback(on_epoch_begin=begin_epoch)
    # Of an epoch with one step, the logged loss is that of the step.
    history = task.fit(
        dataset, steps_per_epoch=1, epochs=options.steps, callbacks=[clock], verbose=0
    ).history
    steps, seconds = options.steps - 1, time.perf_counter() - begins[1]
    return {
        "losses": [float(loss) for loss in history["loss"]],
        "seconds": seconds / steps,
        "gradients": counts["gradients"] / steps,
        "other": counts["other"] / steps,
        "outside": counts["seconds"] / seconds,
        "parameters": task.count_params(),
    }


def count_reductions(counts):
    """Counts the bytes and the seconds of all sums over the processes, those of gradients apart."""
    import torch

    from keras_bert_suite.replicas import sums

    reduce, sum_torch = torch.distributed.all_reduce, sums._sum_gradients_torch
    kind = ["other"]

    def count(tensor, *args, **kwargs):
        counts[kind[0]] += tensor.numel() * tensor.element_size()
        begin = time.perf_counter()
        work = reduce(tensor, *args, **kwargs)
        counts["seconds"] += time.perf_counter() - begin
        return work

    def count_gradients(arrays):
        kind[0] = "gradients"
        begin, before = time.perf_counter(), counts["seconds"]
        result = sum_torch(arrays)
        counts["seconds"] = before + time.perf_counter() - begin
        kind[0] = "other"
        return result

    torch.distributed.all_reduce = count
    sums._sum_gradients_torch = count_gradients


def run_in_processes(options, backend, count):
    """The figures of a side, which runs in processes of its own."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    number = count if backend == "torch" else 1
    processes = []
    for rank in range(number):
        environment = {
            **os.environ,
            "KERAS_BACKEND": backend,
            "JAX_NUM_CPU_DEVICES": str(count),
            "RANK": str(rank),
            "WORLD_SIZE": str(number),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
        command = [sys.executable, __file__, "--count", str(count), "--size", options.size]
        for name in ("rows", "length", "steps"):
            command += [f"--{name}", str(getattr(options, name))]
        processes.append(
            subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        )
    outputs = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes):
        sys.exit(f"{backend} with {count} replicas has failed.")
    return json.loads(outputs[0].splitlines()[-1])


def main():
    """Prints the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--backends", nargs="+", default=["torch", "tensorflow", "jax"])
    parser.add_argument("--replicas", nargs="+", type=int, default=[1, 2, 4])
    parser.add_argument("--size", default="tiny")
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--count", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.count:
        print(json.dumps(run_side(options)))
        return
    table = []
    for backend in options.backends:
        alone = run_in_processes(options, backend, 1)
        for count in options.replicas:
            figures = alone if count == 1 else run_in_processes(options, backend, count)
            pairs = zip(figures["losses"], alone["losses"], strict=True)
            distance = max(abs(loss - wanted) for loss, wanted in pairs)
            is_counted = backend == "torch"
            table.append(
                [
                    backend,
                    str(count),
                    f"{figures['losses'][0]:.6f}",
                    f"{figures['losses'][-1]:.6f}",
                    f"{distance:.1e}",
                    f"{figures['seconds']:.3f}",
                    f"{figures['gradients'] / 1e6:.2f}" if is_counted else "",
                    f"{figures['other']:.0f}" if is_counted else "",
                    f"{figures['outside']:.0%}" if is_counted else "",
                ]
            )
    print(f"{describe_run({}, 1, options.backends)}\n")
    print(
        f"BERT-{options.size}, {alone['parameters']:,} parameters, {options.rows} rows of "
        f"{options.length} tokens in a whole batch, {options.steps} steps.\n"
    )
    headings = ["backend", "replicas", "first loss", "last loss", "largest difference to 1"]
    headings += ["s a step", "MB of gradients a step", "other bytes a step", "outside compute"]
    print(format_table(headings, table))


if __name__ == "__main__":
    main()
