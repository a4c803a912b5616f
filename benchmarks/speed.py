"""Measures how fast this machine trains and predicts with a BERT, by backend and precision.

    python benchmarks/speed.py --size mini
    python benchmarks/speed.py --checkpoint path/to/checkpoint --backends torch \\
        --dtypes float32 mixed_bfloat16 --length 512 --batch_size 16

A classifier is trained on random rows of `--length` tokens without padding, and then predicts them.
The first half of the steps is not timed. A model cannot be faster than its matrix products, so the
speed of a product of two large matrices in the same process is its peak. `--peer` measures
transformers under PyTorch, too: the same shape in a plain loop, under autocast where the precision
is mixed_bfloat16.
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
from peer_recipes import find_torch_device, make_adamw, make_bert_config, take_step

import keras_bert_suite as kbs

VOCABULARY_SIZE = 30522

#: How the names of the peer's sides begin.
PEER = "transformers, "

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


def measure_peer(size, dtype, batch_size, length, steps):
    """As `measure`, for transformers under PyTorch on the GPU if there is one."""
    import torch
    from transformers import BertForSequenceClassification

    num_layers, hidden_dim, num_heads = kbs.models.BERT_SIZES[size]
    config = make_bert_config(num_layers, hidden_dim, num_heads, VOCABULARY_SIZE)
    device = find_torch_device()
    model = BertForSequenceClassification(config).to(device)
    optimizer, schedule = make_adamw(model, 1e-5, 2 * steps)
    autocast = torch.autocast(device, torch.bfloat16, enabled=dtype == "mixed_bfloat16")
    rng = np.random.default_rng(0)
    rows = rng.integers(VOCABULARY_SIZE // 2, VOCABULARY_SIZE, (steps, batch_size, length))
    batches = [
        {
            "input_ids": torch.tensor(ids, device=device),
            "attention_mask": torch.ones((batch_size, length), dtype=torch.int64, device=device),
        }
        for ids in rows
    ]
    labels = torch.arange(batch_size, device=device) % 2

    def fit():
        model.train()
        losses = []
        for batch in batches:
            with autocast:
                loss = model(**batch, labels=labels).loss
            take_step(model, loss, optimizer, schedule)
            losses.append(loss.detach())
            if not times:
                float(loss)  # waits for the device
                times.append(time.perf_counter() - begin)
        return torch.stack(losses).cpu()

    def predict():
        model.eval()
        with torch.inference_mode(), autocast:
            return torch.cat([model(**batch).logits for batch in batches]).float().cpu()

    times, begin, seconds = [], time.perf_counter(), {}
    for name, work in {"fit": fit, "predict": predict}.items():
        work()
        start = time.perf_counter()
        work()
        seconds[name] = time.perf_counter() - start
    rates = {name: batch_size * steps / seconds[name] for name in seconds}
    operations = count_operations(num_layers, hidden_dim, 4 * hidden_dim, [length])
    figures = {f"{name}, rows/s": rate for name, rate in rates.items()}
    shares = {"fit": 3 * operations * rates["fit"], "predict": operations * rates["predict"]}
    return figures | {"first step, s": times[0]}, shares, dtype.removeprefix("mixed_")


class Clock(keras.callbacks.Callback):
    """Notes the seconds until the second step begins, and the end of each epoch."""

    def __init__(self):
        super().__init__()
        self.begin, self.first_step, self.epochs = None, None, []

    # A callback for the end of a batch would make Keras wait for the device in each step.
    def on_train_batch_begin(self, batch, logs=None):
        if batch == 1 and self.first_step is None:
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
    parser.add_argument("--peer", action="store_true", help="transformers under PyTorch, too")
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--steps", type=int, default=10, help="that are timed")
    options = parse_flags(parser)
    sizes = options.batch_size, options.length, options.steps
    if options.child and options.child.startswith(PEER):
        report(*measure_peer(options.size, options.child.removeprefix(PEER), *sizes))
        return
    if options.child:
        report(*measure(options.size, options.checkpoint, options.child, *sizes))
        return

    sides = [(dtype, backend) for backend in options.backends for dtype in options.dtypes]
    if options.peer:
        sides += [(PEER + dtype, "torch") for dtype in options.dtypes]
    measured = run_in_turn(sys.argv, sides, [[]] * options.rounds)
    model = options.checkpoint or f"BERT-{options.size}"
    print(f"{model}, {options.batch_size} rows of {options.length} tokens without padding.\n")
    print(f"{describe_run(measured, options.rounds)}\n")
    print(format_columns(measured, COLUMNS, ("precision", "backend")))


if __name__ == "__main__":
    main()
