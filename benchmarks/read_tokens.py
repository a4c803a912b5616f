"""Measures what is gained where the last layer computes only the tokens that a head reads.

    python benchmarks/read_tokens.py                       # all backends, 3 rounds
    python benchmarks/read_tokens.py --backends torch --sizes mini

Both sides are ours, with the same weights, in turn within one process: "read" computes in the last
layer what is read, "all" computes all tokens. Classifiers get the 32 rows of a batch with 32 tokens
each, one text is a row of 8 tokens, and pretraining has rows of 128 tokens, 20 of them masked.
Figures are the median times of a step or a call in ms.
"""

import argparse
import statistics
import sys
import time
from unittest import mock

from harness.result_tables import describe_run, format_table
from harness.side_flags import BACKENDS, parse_flags
from harness.side_runs import report, run_in_turn

SIZES = ("tiny", "mini", "base")
WORKS = ("fit", "predict", "one text", "pretrain")
REPEATS = {"tiny": 30, "mini": 12, "base": 4}


def make_works(size):
    """dict of the name of a work -> function that does it once."""
    import keras
    import numpy as np

    import keras_bert_suite as kbs

    rng = np.random.default_rng(0)

    def arrays(rows, length):
        return {
            "token_ids": rng.integers(1000, 30000, (rows, length), "int32"),
            "segment_ids": np.zeros((rows, length), "int32"),
            "padding_mask": np.ones((rows, length), "int32"),
        }

    keras.utils.set_random_seed(0)
    backbone = kbs.BertBackbone.from_size(size, vocabulary_size=30522)
    classifier = kbs.TextClassifier(backbone, 2)
    classifier.compile(kbs.AdamW(1e-5))
    batch, labels, text = arrays(32, 32), rng.integers(0, 2, 32), arrays(1, 8)
    pretrainer = kbs.Pretrainer(backbone)
    pretrainer.compile(kbs.AdamW(1e-5))
    masked = {**arrays(16, 128), "mask_positions": np.sort(rng.integers(1, 128, (16, 20)), axis=1)}
    targets = {"mlm": rng.integers(1000, 30000, (16, 20)), "nsp": rng.integers(0, 2, 16)}
    weights = {"mlm": np.ones((16, 20), "float32"), "nsp": np.ones(16, "float32")}
    return {
        "fit": lambda: classifier.train_on_batch(batch, labels),
        "predict": lambda: classifier.predict_on_batch(batch),
        "one text": lambda: classifier.predict_on_batch(text),
        "pretrain": lambda: pretrainer.train_on_batch(masked, targets, weights),
    }


def run_side(size):
    from keras_bert_suite.models.last_block import LastBlockReader

    sides = {"read": make_works(size)}
    with mock.patch.object(LastBlockReader, "_reads_few_tokens", lambda backbone: False):
        sides["all"] = make_works(size)
    figures = {}
    for work in WORKS:
        times = {side: [] for side in sides}
        for repeat in range(REPEATS[size] + 2):
            for side, works in sides.items():
                begin = time.perf_counter()
                works[work]()
                if repeat >= 2:
                    times[side].append(1000 * (time.perf_counter() - begin))
        for side in sides:
            figures[f"{work}, {side}"] = statistics.median(times[side])
    report(figures)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--backends", nargs="+", default=BACKENDS, choices=BACKENDS)
    parser.add_argument("--sizes", nargs="+", default=SIZES, choices=SIZES)
    options = parse_flags(parser)
    if options.child:
        run_side(options.child)
        return
    sides = [(size, backend) for backend in options.backends for size in options.sizes]
    measured = run_in_turn(sys.argv, sides, [[]] * options.rounds)
    rows = []
    for (size, backend), figures in measured.items():
        for work in WORKS:
            read, whole = figures[f"{work}, read"], figures[f"{work}, all"]
            ratios = sorted(a / b for a, b in zip(read, whole, strict=True))
            spread = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
            cells = [f"{statistics.median(times):.1f}" for times in (read, whole)]
            rows.append([size, backend, work, *cells, spread])
    print(f"{describe_run(measured, options.rounds)}\n")
    print(format_table(["size", "backend", "work", "read, ms", "all, ms", "read / all"], rows))


if __name__ == "__main__":
    main()
