"""Adaptations against full training on STS-B: score, share of the weights, folder, time, memory.

    KERAS_BACKEND=torch python benchmarks/few_weights.py --checkpoint DIR --data DIR

Each side fine-tunes the checkpoint on the pairs of STS-B as a regression, in a process of its own,
and prints Pearson's correlation on dev, mean and spread over the seeds. The memory is the largest
resident set of the process.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import keras
import numpy as np
from harness.machine_figures import describe_processor
from harness.result_tables import format_table

import keras_bert_suite as kbs

#: Name -> (the adaptation, peak of the learning rate).
SIDES = {
    "full": (None, 3e-5),
    "LoRA, queries and values": (kbs.LoRA(8), 5e-4),
    "LoRA, all layers": (kbs.LoRA(8, targets=".*"), 5e-4),
    "Houlsby": (kbs.HoulsbyAdapters(), 3e-4),
    "Pfeiffer": (kbs.PfeifferAdapters(), 5e-4),
    "BitFit": (kbs.BitFit(), 1e-3),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--data", required=True, help="GLUE folder that holds STS-B")
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--rows", type=int, help="the first rows of train.tsv; all by default")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(run(options, options.one[0], int(options.one[1]))))
        return
    table = []
    for side in options.sides:
        results = [run_apart(side, seed) for seed in range(options.seeds)]
        scores = [result["score"] for result in results]
        table.append(
            [
                side,
                f"{statistics.mean(scores):.4f}",
                f"{min(scores):.4f} to {max(scores):.4f}",
                f"{results[0]['share']:.2%}",
                f"{results[0]['bytes'] / 1e6:.2f}",
                f"{statistics.median(result['seconds'] for result in results):.2f}",
                f"{max(result['memory'] for result in results) / 1e9:.2f}",
            ]
        )
    print(f"\n{describe_processor()}, {keras.config.backend()}.\n")
    names = ["side", "Pearson on dev", "spread", "weights that train", "MB saved"]
    print(format_table([*names, "processor s a step", "GB"], table))


def run_apart(side, seed):
    """The results of a side for a seed, from a new process, so that memory is that of one run."""
    arguments = [sys.executable, *sys.argv, "--one", side, str(seed)]
    printed = subprocess.run(arguments, check=True, stdout=subprocess.PIPE, text=True).stdout
    result = json.loads(printed.splitlines()[-1])
    print(f"{side}, seed {seed}: {result}", flush=True)
    return result


def run(options, side, seed):
    """The results of a side: dict of numbers."""
    adaptation, rate = SIDES[side]
    train, dev = (kbs.read_glue(options.data, "stsb", f"{name}.tsv") for name in ("train", "dev"))
    x, y = (tuple(column[: options.rows] for column in train.x), train.y[: options.rows])
    keras.utils.set_random_seed(seed)
    task = kbs.TextClassifier.from_preset(
        options.checkpoint, num_classes=1, problem_type="regression", sequence_length=128
    )
    if adaptation is not None:
        task.adapt(adaptation, verbose=False)
    task.compile(task.make_optimizer(rate, 0.1))
    sizes = [[int(np.prod(w.shape)) for w in ws] for ws in (task.trainable_weights, task.weights)]
    begin = time.process_time()
    task.fit(x, y, batch_size=options.batch_size, epochs=options.epochs, verbose=0)
    steps = options.epochs * -(-len(y) // options.batch_size)
    seconds = (time.process_time() - begin) / steps
    scores = np.ravel(task.predict(dev.x, verbose=0))
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "saved")
        (task.save_to_preset if adaptation is None else task.save_adapter)(path)
        weights = [*path.glob("*.safetensors"), *path.glob("*.h5")]
        num_bytes = sum(file.stat().st_size for file in weights)
    return {
        "score": float(np.corrcoef(scores, np.ravel(dev.y))[0, 1]),
        "share": sum(sizes[0]) / sum(sizes[1]),
        "bytes": num_bytes,
        "seconds": seconds,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


if __name__ == "__main__":
    main()
