"""The time of early exits at equal accuracy, beside the classifier that they are put on.

    python benchmarks/early_exit.py --data DATA
    python benchmarks/early_exit.py --tasks mrpc --methods pabee --batch_sizes 1

A `TextClassifier` is fine-tuned. "deebert" and "fastbert" train exits on it; "pabee" trains a copy
of the checkpoint with exits as long, and its encoder with them. One half of the dev rows chooses
the threshold that uses the fewest layers within `--max_loss` of accuracy. The other half is
answered by the sides in turn, at each batch size, and gives the accuracy and the layers. The time
is the wall time of `predict`, the median of the rounds, after one that is not counted.
"""

import argparse
import statistics
import time
from pathlib import Path

import keras
from harness.machine_figures import describe_processor
from harness.result_tables import format_table
from peer_recipes import find_minilm
from text_classification import read_task

import keras_bert_suite as kbs


def train_sides(task, options):
    """dict of the name of a side -> its trained task, the classifier first."""
    keras.utils.set_random_seed(options.seed)
    train = task.train.take(options.num_rows)
    given = {"sequence_length": options.sequence_length, "label_names": task.label_names}
    checkpoint = options.checkpoint or find_minilm()
    sides = {"all layers": kbs.TextClassifier.from_preset(checkpoint, **given)}
    for name in ("all layers", *options.methods):
        if name == "pabee":
            sides[name] = kbs.EarlyExitClassifier.from_preset(checkpoint, method=name, **given)
        elif name in options.methods:
            made = kbs.EarlyExitClassifier.from_classifier(sides["all layers"], name)
            sides[name] = made
        of_exits = name in ("deebert", "fastbert")
        rate = options.exit_learning_rate if of_exits else options.learning_rate
        sides[name].compile(kbs.AdamW(kbs.LinearWarmupDecay(rate)))
        sides[name].fit(train.x, train.y, batch_size=32, epochs=options.epochs, verbose=0)
        print(f"{name} is trained.", flush=True)
    return sides


def measure(sides, rows, batch_size, rounds):
    """dict of the name of a side -> median milliseconds of a row."""
    seconds = {name: [] for name in sides}
    singles = [rows.take([i]).x for i in range(len(rows))] if batch_size == 1 else []
    for number in range(rounds + 1):
        for name, side in sides.items():
            begin = time.perf_counter()
            for x in singles or [rows.x]:
                side.predict(x, batch_size, verbose=0)
            if number:
                seconds[name].append(time.perf_counter() - begin)
    return {name: 1000 * statistics.median(found) / len(rows) for name, found in seconds.items()}


def compare(name, options):
    """Lines of the table of a task."""
    task = read_task(name, options.data)
    dev = task.dev.take(options.dev_rows)
    half = len(dev) // 2
    tuned, asked = dev.take(range(half)), dev.take(range(half, len(dev)))
    sides = train_sides(task, options)
    times = {}
    for side in options.methods:
        sides[side].tune_exits(tuned.x, tuned.y, max_loss=options.max_loss)
    for size in options.batch_sizes:
        times[size] = measure(sides, asked, size, options.rounds)
    lines = []
    for side, classifier in sides.items():
        layers, threshold = classifier.backbone.num_layers, ""
        if side in options.methods:
            layers = classifier.predict(asked.x, return_layers=True, verbose=0)[1].mean()
            threshold = f"{classifier.threshold:.3g}"
        accuracy = classifier.score(asked.x, asked.y)["accuracy"]
        found = [times[size][side] for size in options.batch_sizes]
        whole = [times[size]["all layers"] for size in options.batch_sizes]
        cells = [f"{t:.2f} ({w / t:.2f}x)" for t, w in zip(found, whole, strict=True)]
        lines.append([name, side, threshold, f"{layers:.2f}", f"{accuracy:.4f}", *cells])
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--tasks", nargs="+", default=["sst2", "mrpc"])
    parser.add_argument("--methods", nargs="+", default=["pabee", "deebert", "fastbert"])
    parser.add_argument("--batch_sizes", nargs="+", type=int, default=[1, 32])
    parser.add_argument("--checkpoint", default="", help="Default: MiniLM.")
    parser.add_argument("--num_rows", type=int, help="Training rows. Default: all.")
    parser.add_argument("--dev_rows", type=int, help="Default: all.")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--sequence_length", type=int, default=128)
    parser.add_argument("--learning_rate", type=float, default=5e-5)
    parser.add_argument("--exit_learning_rate", type=float, default=1e-3)
    parser.add_argument("--max_loss", type=float, default=0.01)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"{describe_processor()}, {keras.config.backend()}.\n")
    lines = [line for name in options.tasks for line in compare(name, options)]
    headings = [f"ms a row, batch {size}" for size in options.batch_sizes]
    print(format_table(["task", "side", "threshold", "layers", "accuracy", *headings], lines))


if __name__ == "__main__":
    main()
