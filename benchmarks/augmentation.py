"""Augmentation where rows are few: accuracy on review sentences.

    python benchmarks/augmentation.py --texts data/glue/SST-2/train.tsv --seeds 0 1 2

MiniLM, or its first layers, learns 50, 200 and 1,000 of the training sentences of examples/data,
drawn anew for each seed, and answers the 600 test sentences. All sides of a seed take the same rows
and the same number of steps, in batches of 16, with AdamW at 1e-4, bias correction, linear warm-up
and decay. The sides are `none`; `words`, half of the rows of each epoch with swapped or deleted
words; and `masked_lm`, half of the rows with words that a masked LM guesses. MiniLM has no head for
this, so the masked LM is MiniLM with a new head, trained here on the sentences of `--texts` without
their labels. The time is processor time, with that of the masked LM's guesses and without that of
its training.
"""

import argparse
import csv
import functools
import statistics
import time
from pathlib import Path

import keras
import numpy as np
from harness.machine_figures import describe_processor
from harness.result_tables import describe_seeds, format_table
from peer_recipes import find_minilm

import keras_bert_suite as kbs

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "data"
BATCH_SIZE, LENGTH = 16, 64
#: Rows -> epochs: 80, 104 and 189 steps.
EPOCHS = {50: 20, 200: 8, 1000: 3}
SIDES = ("none", "words", "masked_lm")


def make_optimizer(rate):
    return kbs.AdamW(kbs.LinearWarmupDecay(rate), bias_correction=True)


def train_masked_lm(path, number, epochs):
    """A `MaskedLM` on MiniLM, trained on sentences of 40 to 120 characters of a file of SST-2."""
    with open(path, encoding="utf-8", newline="") as file:
        texts = [row[0] for row in list(csv.reader(file, delimiter="\t"))[1:]]
    texts = [text for text in texts if 40 < len(text) < 120]
    texts = np.random.default_rng(0).permutation(texts)[: number + 200].tolist()
    keras.utils.set_random_seed(0)
    model = kbs.MaskedLM.from_preset(
        find_minilm(), sequence_length=LENGTH, masking={"unit": "word"}
    )
    model.compile(make_optimizer(3e-4))
    model.fit(texts[200:], validation_data=(texts[:200],), epochs=epochs, verbose=2)
    return model


def measure(side, rows, test, seed, masked_lm, num_layers):
    """(accuracy, processor seconds of the training)."""
    keras.utils.set_random_seed(seed)
    texts, labels = rows
    classifier = kbs.TextClassifier.from_preset(
        find_minilm(),
        label_names=test.label_names,
        sequence_length=LENGTH,
        num_layers=num_layers,
    )
    classifier.compile(make_optimizer(1e-4))
    augment = {
        "none": lambda texts, rng: texts,
        "words": kbs.edit_words,
        "masked_lm": functools.partial(kbs.replace_words, masked_lm=masked_lm),
    }[side]
    batches = kbs.AugmentedRows(texts, labels, augment, BATCH_SIZE, seed=seed)
    start = time.process_time()
    classifier.fit(batches, epochs=EPOCHS[len(texts)], verbose=0)
    seconds = time.process_time() - start
    return classifier.score(test.x, test.y)["accuracy"], seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--texts", help="train.tsv of SST-2, for masked_lm")
    parser.add_argument("--num_texts", type=int, default=2500)
    parser.add_argument("--masked_lm_epochs", type=int, default=2)
    parser.add_argument("--num_layers", type=int, default=6, help="of the classifier's encoder")
    parser.add_argument("--sizes", type=int, nargs="+", choices=EPOCHS, default=[*EPOCHS])
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=SIDES)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options = parser.parse_args()
    train, test = (
        kbs.read_table(EXAMPLES / f"sentences_{part}.tsv", "sentence", "label")
        for part in ("train", "test")
    )
    masked_lm = None
    if "masked_lm" in options.sides:
        masked_lm = train_masked_lm(options.texts, options.num_texts, options.masked_lm_epochs)
        for text in kbs.replace_words(train.x[:5], masked_lm=masked_lm):
            print(text)
    table = []
    for size in options.sizes:
        found = {side: [] for side in options.sides}
        for seed in options.seeds:
            chosen = np.random.default_rng(seed).permutation(len(train))[:size]
            rows = [train.x[i] for i in chosen], [train.y[i] for i in chosen]
            for side in options.sides:
                found[side].append(measure(side, rows, test, seed, masked_lm, options.num_layers))
                print(size, seed, side, *found[side][-1], flush=True)
        for side, results in found.items():
            accuracies, seconds = zip(*results, strict=True)
            each, mean, _ = describe_seeds(accuracies)
            table.append([str(size), side, each, mean, f"{statistics.mean(seconds):.0f}"])
    print(f"\n{describe_processor()}\n")
    titles = ["rows", "side", "accuracy of each seed", "mean", "processor seconds"]
    print(format_table(titles, table))


if __name__ == "__main__":
    main()
