"""Measures how fast this machine trains and predicts with a BERT, by backend and precision.

    python benchmarks/speed.py --size mini
    python benchmarks/speed.py --checkpoint path/to/checkpoint --backends torch \\
        --dtypes float32 mixed_bfloat16 --length 512 --batch_size 16

A classifier is trained on random rows of `--length` tokens without padding, and then predicts them.
The first half of the steps is not timed. A model cannot be faster than its matrix products, so the
speed of a product of two large matrices in the same process is its peak.
"""

import argparse
import sys
import time

import keras
import numpy as np
from harness.machine_figures import count_operations
from harness.result_tables import describe_run, format_columns
from harness.side_flags import BACKENDS, parse_flags
from harness.side_runs import report, run_in_turn

import keras_bert_suite as kbs

VOCABULARY_SIZE = 30522

#: The columns of the table: a figure, its format.
COLUMNS = {
    "fit, rows/s": "{:,.1f}",
    "fit, of the peak": "{:.0%}",
    "predict, rows/s": "{:,.1f}",
    "predict, of the peak": "{:.0%}",
    "first step, s": "{:.1f}",
    "memory, GB": "{:.1f}",
    "peak, TFLOP/s": "{:.2f}",
}


def measure(size, checkpoint, dtype, batch_size, length, steps):
    """Trains a classifier, and predicts with it.

    Args:
        size: str, of `BertBackbone.from_size`.
        checkpoint: path, instead of `size`, or None.
        dtype: str, the precision.
        batch_size, length, steps: int.

    Returns:
        the arguments of `report`: the figures, the operations/s of `fit` and `predict`, and the
        dtype of their products.

    Raises:
        ValueError: if the model has fewer positions than `length`.
    """
    classifier = make_classifier(size, checkpoint, dtype)
    rows = make_rows(classifier.backbone, batch_size * steps, length)
    classes = np.arange(batch_size * steps) % 2
    classifier.compile()
    clock = Clock()
    clock.begin = time.perf_counter()
    classifier.fit(rows, classes, batch_size=batch_size, epochs=2, callbacks=[clock], verbose=0)
    classifier.predict(rows, batch_size=batch_size, verbose=0)
    begin = time.perf_counter()
    classifier.predict(rows, batch_size=batch_size, verbose=0)
    predict = len(classes) / (time.perf_counter() - begin)
    fit = len(classes) / (clock.epochs[1] - clock.epochs[0])
    backbone = classifier.backbone
    sizes = backbone.num_layers, backbone.hidden_dim, backbone.intermediate_dim
    operations = count_operations(*sizes, [length])
    figures = {
        "fit, rows/s": fit,
        "predict, rows/s": predict,
        "first step, s": clock.first_step,
    }
    shares = {"fit": 3 * operations * fit, "predict": operations * predict}
    return figures, shares, classifier.compute_dtype


class Clock(keras.callbacks.Callback):
    """Notes the seconds of the first step, and the end of each epoch."""

    def __init__(self):
        super().__init__()
        self.begin, self.first_step, self.epochs = None, None, []

    def on_train_batch_end(self, batch, logs=None):
        if self.first_step is None:
            float(next(iter((logs or {}).values()), 0.0))  # waits for the device
            self.first_step = time.perf_counter() - self.begin

    def on_epoch_end(self, epoch, logs=None):
        self.epochs.append(time.perf_counter())


def make_classifier(size, checkpoint, dtype):
    """A `TextClassifier` of two classes."""
    if checkpoint:
        return kbs.TextClassifier.from_preset(
            checkpoint, num_classes=2, dtype=dtype, preprocessor=None
        )
    backbone = kbs.BertBackbone.from_size(size, vocabulary_size=VOCABULARY_SIZE, dtype=dtype)
    return kbs.TextClassifier(backbone, num_classes=2)


def make_rows(backbone, num_rows, length):
    """Packed arrays of random tokens, without padding."""
    most = getattr(backbone, "max_sequence_length", length)
    if length > most:
        raise ValueError(f"--length {length} is more than the {most} positions of the model.")
    shape = (num_rows, length)
    rows = {name: np.zeros(shape, "int32") for name in backbone.input}
    rows["padding_mask"] += 1
    rows["token_ids"] += np.random.default_rng(0).integers(
        backbone.vocabulary_size // 2, backbone.vocabulary_size, shape, "int32"
    )
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", default="mini", help="of a BERT with random weights")
    parser.add_argument("--checkpoint", help="in place of --size")
    parser.add_argument("--backends", nargs="+", default=BACKENDS)
    parser.add_argument("--dtypes", nargs="+", default=["float32"])
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--steps", type=int, default=10, help="that are timed")
    options = parse_flags(parser)
    sizes = options.batch_size, options.length, options.steps
    if options.child:
        report(*measure(options.size, options.checkpoint, options.child, *sizes))
        return

    sides = [(dtype, backend) for backend in options.backends for dtype in options.dtypes]
    measured = run_in_turn(sys.argv, sides, [[]] * options.rounds)
    model = options.checkpoint or f"BERT-{options.size}"
    print(f"{model}, {options.batch_size} rows of {options.length} tokens without padding.\n")
    print(f"{describe_run(measured, options.rounds)}\n")
    print(format_columns(measured, COLUMNS, ("precision", "backend")))


if __name__ == "__main__":
    main()
