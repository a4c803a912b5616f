"""The time of a training step by each technique, beside the plain step.

    KERAS_BACKEND=torch OMP_NUM_THREADS=1 python benchmarks/techniques.py

A `TextClassifier` on a BERT of MiniLM's shape (6 layers of width 384) with random weights and
dropout 0.1 learns rows of random tokens without padding, by SGD. In each round the sides take a
step in turn. The first round is not counted. The time is processor time, so that other work on the
machine counts little. Only PyTorch is measured so: the others compile each side anew.
"""

import argparse
import statistics
import time

import keras
import numpy as np
from harness.machine_figures import describe_processor
from harness.result_tables import format_table

import keras_bert_suite as kbs

SHAPE = {"num_layers": 6, "num_heads": 12, "hidden_dim": 384, "intermediate_dim": 1536}
VOCABULARY = 30522

SIDES = {
    "plain": None,
    "FGM": kbs.FGM(),
    "PGD, 3 steps": kbs.PGD(3),
    "FreeLB, 3 steps": kbs.FreeLB(3),
    "VAT": kbs.VAT(),
    "SMART": kbs.SMART(),
    "GradientPenalty": kbs.GradientPenalty(),
    "RDrop": kbs.RDrop(),
    "Mixup": kbs.Mixup(),
    "RDrop and FGM": kbs.CombinedTechniques([kbs.RDrop(), kbs.FGM()]),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--length", type=int, default=64)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    shape = options.batch_size, options.length
    rows = {
        "token_ids": rng.integers(1, VOCABULARY, shape).astype("int32"),
        "segment_ids": np.zeros(shape, "int32"),
        "padding_mask": np.ones(shape, "int32"),
    }
    labels = rng.integers(0, 2, options.batch_size).astype("int32")
    seconds = {side: [] for side in options.sides}
    keras.utils.set_random_seed(0)
    backbone = kbs.BertBackbone(VOCABULARY, **SHAPE, dropout=0.1)
    task = kbs.TextClassifier(backbone, num_classes=2)
    for number in range(options.rounds + 1):
        for side in options.sides:
            # The update of the weights is small beside a pass, so that passes are measured.
            task.compile(keras.optimizers.SGD(1e-6), technique=SIDES[side])
            begin = time.process_time()
            task.train_on_batch(rows, labels)
            if number:
                seconds[side].append(time.process_time() - begin)
                print(f"round {number}: {side}: {seconds[side][-1]:.2f} s", flush=True)
    print(f"\n{describe_processor()}, {keras.config.backend()}, {shape[0]} rows of {shape[1]}.\n")
    plain = statistics.median(seconds["plain"])
    table = [
        [
            side,
            f"{statistics.median(taken):.2f}",
            f"{min(taken):.2f} to {max(taken):.2f}",
            f"{statistics.median(taken) / plain:.2f}",
        ]
        for side, taken in seconds.items()
    ]
    print(format_table(["technique", "processor seconds a step", "spread", "plain steps"], table))


if __name__ == "__main__":
    main()
