"""Real tokens a second of `fit` with and without sequence packing.

    python benchmarks/sequence_packing.py                              # three backends
    python benchmarks/sequence_packing.py --size base --backends torch --tasks pretraining

A BERT of --size trains on rows of 16 to 512 tokens, all lengths equally often, so that about half
of a batch that is padded to 512 is padding. Task "ner" is a TokenClassifier on random words,
"pretraining" a Pretrainer on random tokens, 15% of them masked, with pairs. The sides see the same
rows in the same order, in the same batches: "padded" as they are, "packed" with
`fit(..., sequence_packing=True)`. Rates are of the second epoch of --steps batches. They and the
share of the peak, the speed of a product of two large matrices in the same process, count the
tokens that are no padding. Each side runs in a process of its own, in turn.
"""

import argparse
import sys
import time

from harness.machine_figures import count_operations
from harness.result_tables import describe_run, format_cells, format_ratios, format_table
from harness.side_flags import BACKENDS, list_pairs, parse_flags
from harness.side_runs import report, run_in_turn

SIDES = ("padded", "packed")
TASKS = ("ner", "pretraining")
VOCABULARY_SIZE = 8192

COLUMNS = {"tokens/s": "{:.0f}", "fit, of the peak": "{:.1%}", "memory, GB": "{:.2f}"}


def make_batches(options):
    """list of packed arrays (B, L), and the tokens of each row."""
    import numpy as np

    rng = np.random.default_rng(0)
    batches, tokens = [], []
    for _ in range(options.steps):
        lengths = rng.integers(16, options.length + 1, options.batch_size)
        mask = (np.arange(options.length) < lengths[:, None]).astype("int32")
        batches.append(
            {
                "token_ids": rng.integers(5, VOCABULARY_SIZE, mask.shape).astype("int32") * mask,
                "segment_ids": np.zeros_like(mask),
                "padding_mask": mask,
            }
        )
        tokens.extend(lengths.tolist())
    return batches, tokens


def label_tokens(batch):
    """A batch for a `TokenClassifier`."""
    return batch, batch["token_ids"] % 9 - 100 * (1 - batch["padding_mask"])


def mask_tokens(batch):
    """A batch for a `Pretrainer`, with as many masks in each row."""
    import numpy as np

    rows, length = batch["token_ids"].shape
    counts = batch["padding_mask"].sum(axis=1, keepdims=True)
    slots = np.arange(length * 15 // 100)
    weights = (slots < counts * 15 // 100).astype("float32")
    positions = (slots * 6 % counts).astype("int32")
    labels = np.take_along_axis(batch["token_ids"], positions, axis=1)
    x = {**batch, "mask_positions": positions}
    next_sentence = (np.arange(rows) % 2).astype("int32")
    y = {"mlm": labels, "nsp": next_sentence}
    return x, y, {"mlm": weights, "nsp": np.ones(rows, "float32")}


def run_side(side, options):
    """Measures one side in this process and prints the figures as JSON."""
    import grain

    import keras_bert_suite as kbs

    backbone = kbs.BertBackbone.from_size(
        options.size, VOCABULARY_SIZE, max_sequence_length=options.length
    )
    if options.task == "ner":
        task, prepare = kbs.TokenClassifier(backbone, num_classes=9), label_tokens
    else:
        task, prepare = kbs.Pretrainer(backbone), mask_tokens
    task.compile(kbs.AdamW(1e-4), weighted_metrics=None)
    batches, tokens = make_batches(options)
    dataset = grain.MapDataset.source([prepare(batch) for batch in batches])
    for _ in range(2):
        begin = time.perf_counter()
        task.fit(dataset, sequence_packing=side == "packed", verbose=0)
        seconds = time.perf_counter() - begin
    sizes = backbone.num_layers, backbone.hidden_dim, backbone.intermediate_dim
    operations = 3 * count_operations(*sizes, tokens) / seconds
    report({"tokens/s": sum(tokens) / seconds}, {"fit": operations}, backbone.compute_dtype)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backends", nargs="+", default=BACKENDS)
    parser.add_argument("--tasks", nargs="+", default=TASKS, choices=TASKS)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    parser.add_argument("--size", default="mini")
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--steps", type=int, default=8)
    options = parse_flags(parser)
    if options.child:
        run_side(options.child, options)
        return

    pairs = list_pairs(SIDES, options.backends, peers=[])
    rows, measured = [], {}
    for task in options.tasks:
        measured = run_in_turn([*sys.argv, "--task", task], pairs, [[]] * options.rounds)
        for (side, backend), figures in measured.items():
            ratio = format_ratios(figures["tokens/s"], measured["padded", backend]["tokens/s"])
            rows.append([task, side, backend, *format_cells(figures, COLUMNS), ratio])
    print(f"{describe_run(measured, options.rounds)}\n")
    headings = ["task", "side", "backend", *COLUMNS, "/ padded"]
    print(format_table(headings, rows))


if __name__ == "__main__":
    main()
