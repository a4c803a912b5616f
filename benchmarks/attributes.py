"""Two attributes of a text by one model, and by a classifier for each: accuracy and time.

    python benchmarks/attributes.py --seeds 0 1 2

The data are the 3,000 review sentences of UCI, `--data`: each is positive or negative, and about a
product, a film or a restaurant. 2,400 are for training, 600 for the test. Every side fine-tunes
MiniLM in batches of 32, with AdamW, bias correction, linear warm-up over a tenth of the steps and
linear decay. The time is processor time of the training, for `each alone` that of both trainings.
"""

import argparse
import statistics
import time
from pathlib import Path

import keras
import numpy as np
from adaptation import read_lines
from harness.machine_figures import describe_processor
from harness.result_tables import describe_seeds, format_table
from peer_recipes import find_minilm

import keras_bert_suite as kbs

SOURCES = {"amazon_cells": "product", "imdb": "film", "yelp": "restaurant"}
ATTRIBUTES = {"sentiment": ["negative", "positive"], "subject": [*SOURCES.values()]}
NUM_TEST, SEQUENCE_LENGTH = 600, 64


def read_rows(folder):
    """(texts (N,), dict: attribute -> labels (N,)) in random order, which is always the same."""
    rows = [
        (text.strip(), ATTRIBUTES["sentiment"][int(label)], subject)
        for source, subject in SOURCES.items()
        for text, label in read_lines(folder / f"{source}_labelled.txt")
    ]
    texts, *labels = np.array(rows, object)[np.random.default_rng(0).permutation(len(rows))].T
    return texts, dict(zip(ATTRIBUTES, labels, strict=True))


def train(task, texts, labels, options):
    """Processor seconds of a training."""
    task.compile(
        kbs.AdamW(kbs.LinearWarmupDecay(options.learning_rate), bias_correction=True),
        head_learning_rate=options.head_learning_rate,
    )
    begin = time.process_time()
    task.fit(texts, labels, epochs=options.epochs, verbose=0)
    return time.process_time() - begin


def run_joint(rows, test, seed, options):
    """(accuracy of each attribute, processor seconds of the training)."""
    keras.utils.set_random_seed(seed)
    task = kbs.AttributeClassifier.from_preset(
        find_minilm(), attributes=ATTRIBUTES, sequence_length=SEQUENCE_LENGTH
    )
    seconds = train(task, *rows, options)
    scores = task.score(*test)["attributes"]
    return [scores[name]["accuracy"] for name in ATTRIBUTES], seconds


def run_alone(rows, test, seed, options):
    """As `run_joint`."""
    accuracies, total = [], 0.0
    for name, names in ATTRIBUTES.items():
        keras.utils.set_random_seed(seed)
        task = kbs.TextClassifier.from_preset(
            find_minilm(), label_names=names, sequence_length=SEQUENCE_LENGTH
        )
        total += train(task, rows[0], rows[1][name], options)
        accuracies.append(task.score(test[0], test[1][name])["accuracy"])
    return accuracies, total


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("data") / "sentences")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--num_rows", type=int, default=2400)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--learning_rate", type=float, default=1e-4)
    parser.add_argument("--head_learning_rate", type=float, default=1e-3)
    options = parser.parse_args()
    texts, labels = read_rows(options.data)
    kept = slice(NUM_TEST, NUM_TEST + options.num_rows)
    rows, test = (
        (texts[part], {name: column[part] for name, column in labels.items()})
        for part in (kept, slice(NUM_TEST))
    )
    table = []
    for side, run in {"one model": run_joint, "each alone": run_alone}.items():
        results = []
        for seed in options.seeds:
            results.append(run(rows, test, seed, options))
            print(side, seed, *results[-1], flush=True)
        scores, seconds = zip(*results, strict=True)
        for name, values in zip(ATTRIBUTES, zip(*scores, strict=True), strict=True):
            each, mean, _ = describe_seeds(values)
            table.append([side, name, each, mean, f"{statistics.mean(seconds):.0f}"])
    print(f"\n{describe_processor()}, {keras.config.backend()}.\n")
    headings = ["side", "attribute", "accuracy of each seed", "mean", "processor seconds"]
    print(format_table(headings, table))


if __name__ == "__main__":
    main()
