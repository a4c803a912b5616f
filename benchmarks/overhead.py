"""The time of Python in a step under PyTorch: ours and transformers', without products to wait for.

    OMP_NUM_THREADS=1 python benchmarks/overhead.py
    OMP_NUM_THREADS=1 python benchmarks/overhead.py --layers 12 --rounds 9

On a GPU, PyTorch launches the work of a step and waits for Python before the next. How much Python
takes can be measured without one: the model is 8 wide, so that a product costs no more than its
call. Both sides classify 8 rows of 16 tokens with the same number of layers, in one process, in
turn. "predict" is a batch of `predict`, beside the model and the copy of its logits; "fit" is a
step of `fit`, beside a plain loop with AdamW (fused), clipped gradients and a schedule. "forward"
and "gradient" are calls of the model and of its loss alone, and the rest of a step is the optimizer
and the loop. Times are milliseconds of the processor, medians of the rounds.
"""

import argparse
import os
import statistics
import time

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch
from harness.result_tables import format_table
from peer_recipes import make_adamw, make_bert_config, take_step

import keras_bert_suite as kbs

VOCABULARY_SIZE, WIDTH, NUM_HEADS, BATCH_SIZE, LENGTH = 100, 8, 2, 8, 16
FIGURES = ("predict", "forward", "fit", "gradient")


class Ours:
    """A `TextClassifier`, and what is timed of it."""

    def __init__(self, num_layers, steps):
        backbone = kbs.BertBackbone(
            VOCABULARY_SIZE,
            num_layers=num_layers,
            num_heads=NUM_HEADS,
            hidden_dim=WIDTH,
            intermediate_dim=4 * WIDTH,
            max_sequence_length=LENGTH,
        )
        self.task = kbs.TextClassifier(backbone, num_classes=2)
        schedule = kbs.LinearWarmupDecay(1e-5, total_steps=100_000)
        self.task.compile(kbs.AdamW(schedule))
        shape = (BATCH_SIZE * steps, LENGTH)
        self.rows = {name: np.ones(shape, "int32") for name in backbone.input}
        self.rows["segment_ids"] *= 0
        self.classes = np.arange(shape[0]) % 2
        self.batch = {name: torch.tensor(x[:BATCH_SIZE]) for name, x in self.rows.items()}
        self.labels = torch.tensor(self.classes[:BATCH_SIZE])
        self.steps = steps

    def predict(self):
        self.task.predict(self.rows, batch_size=BATCH_SIZE, verbose=0)

    def fit(self):
        self.task.fit(self.rows, self.classes, batch_size=BATCH_SIZE, verbose=0)

    def forward(self):
        for _ in range(self.steps):
            with torch.no_grad():
                self.task(self.batch, training=False)

    def gradient(self):
        for _ in range(self.steps):
            self.task.zero_grad()
            logits = self.task(self.batch, training=True)
            torch.nn.functional.cross_entropy(logits, self.labels).backward()


class Peer:
    """transformers' model in plain loops."""

    def __init__(self, num_layers, steps):
        from transformers import BertForSequenceClassification

        config = make_bert_config(num_layers, WIDTH, NUM_HEADS, VOCABULARY_SIZE)
        self.model = BertForSequenceClassification(config)
        self.adamw = make_adamw(self.model, 1e-5, 100_000)
        ids = torch.ones((BATCH_SIZE, LENGTH), dtype=torch.int64)
        self.batch = {"input_ids": ids, "attention_mask": ids}
        self.labels = torch.arange(BATCH_SIZE) % 2
        self.steps = steps

    def predict(self):
        self.model.eval()
        with torch.inference_mode():
            logits = [self.model(**self.batch).logits for _ in range(self.steps)]
            torch.cat(logits).numpy()

    forward = predict

    def fit(self):
        self.model.train()
        for _ in range(self.steps):
            take_step(self.model, self.model(**self.batch, labels=self.labels).loss, *self.adamw)

    def gradient(self):
        self.model.train()
        for _ in range(self.steps):
            self.model.zero_grad()
            self.model(**self.batch, labels=self.labels).loss.backward()


def measure(num_layers, steps, rounds):
    """dict, figure -> (ours, transformers'), each a list of milliseconds of a step."""
    sides = [side(num_layers, steps) for side in (Ours, Peer)]
    measured = {}
    for figure in FIGURES:
        times = [[], []]
        for turn in range(rounds + 1):
            for side, seconds in zip(sides, times, strict=True):
                begin = time.process_time()
                getattr(side, figure)()
                if turn:  # The first is not counted.
                    seconds.append(1000 * (time.process_time() - begin) / steps)
        measured[figure] = times
    return measured


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--layers", nargs="+", type=int, default=[6, 12, 24])
    parser.add_argument("--steps", type=int, default=40, help="of a round")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(1)
    keras.utils.set_random_seed(0)
    rows = []
    for num_layers in options.layers:
        for figure, (ours, peer) in measure(num_layers, options.steps, options.rounds).items():
            ratios = [a / b for a, b in zip(ours, peer, strict=True)]
            spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
            medians = (f"{statistics.median(side):.2f}" for side in (ours, peer))
            rows.append([str(num_layers), figure, *medians, spread])
    headings = ["layers", "figure", "ours, ms", "transformers, ms", "ours / transformers"]
    print(format_table(headings, rows))


if __name__ == "__main__":
    main()
