"""Memory and time of a training step on long rows: Longformer beside full attention.

    python benchmarks/longformer.py                                  # PyTorch
    python benchmarks/longformer.py --backends jax torch --lengths 512 4096 --rounds 1

A step of AdamW on `--batch_size` rows of each of `--lengths` tokens, of a text classifier of
`--size` in float32, with dropout. "window" is a LongformerBackbone with windows of 512 tokens and
the first token global, "full" a RobertaBackbone with as many positions, and "transformers" its
LongformerForSequenceClassification of the same size. Each side runs each length in a process of its
own, in turn. "step, GB" is what the process has had more at its peak than before its first step:
gradients, moments, and what a step keeps. "step, s" is the shortest of `--steps` steps after the
first.
"""

import argparse
import sys
import time

from harness.machine_figures import find_device, find_memory
from harness.result_tables import describe_run, format_cells, format_ratios, format_table
from harness.side_flags import list_pairs, parse_flags
from harness.side_runs import report, run_in_turn

SIDES = ("window", "full", "transformers")
VOCABULARY_SIZE = 8192
WINDOW = 512

COLUMNS = {"step, s": "{:.2f}", "step, GB": "{:.2f}"}


def make_ours(side, options):
    """A function that trains on a batch of rows of a length."""
    import numpy as np

    import keras_bert_suite as kbs

    positions = {"max_sequence_length": max(options.lengths)}
    if side == "window":
        sizes = kbs.BertBackbone.sizes[options.size]
        backbone = kbs.LongformerBackbone(
            VOCABULARY_SIZE, **sizes, attention_window=WINDOW, **positions
        )
    else:
        backbone = kbs.RobertaBackbone.from_size(options.size, VOCABULARY_SIZE, **positions)
    task = kbs.TextClassifier(backbone, num_classes=2)
    task.compile(kbs.AdamW(1e-4), metrics=[])

    def train(token_ids):
        x = {"token_ids": token_ids, "padding_mask": np.ones_like(token_ids)}
        task.train_on_batch(x, np.zeros(len(token_ids), "int32"))

    return train


def make_transformers(options):
    """As `make_ours`."""
    import torch
    import transformers

    import keras_bert_suite as kbs

    sizes = kbs.BertBackbone.sizes[options.size]
    config = transformers.LongformerConfig(
        vocab_size=VOCABULARY_SIZE,
        num_hidden_layers=sizes["num_layers"],
        num_attention_heads=sizes["num_heads"],
        hidden_size=sizes["hidden_dim"],
        intermediate_size=sizes["intermediate_dim"],
        attention_window=WINDOW,
        max_position_embeddings=max(options.lengths) + 2,
        type_vocab_size=1,
    )
    model = transformers.LongformerForSequenceClassification(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def train(token_ids):
        ids = torch.from_numpy(token_ids).long()
        labels = torch.zeros(len(ids), dtype=torch.long)
        model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return train


def run_side(side, options):
    """Measures one side in this process and prints the figures as JSON."""
    import numpy as np

    ours = side != "transformers"
    train = make_ours(side, options) if ours else make_transformers(options)
    rng = np.random.default_rng(0)

    shape = options.batch_size, options.length
    batch, seconds = rng.integers(5, VOCABULARY_SIZE, shape).astype("int32"), []
    device = find_device()
    before = find_memory(device)
    for _ in range(options.steps + 1):
        begin = time.perf_counter()
        train(batch)
        seconds.append(time.perf_counter() - begin)
    report({"step, s": min(seconds[1:]), "step, GB": find_memory(device) - before})


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backends", nargs="+", default=["torch"])
    parser.add_argument("--sides", nargs="+", default=list(SIDES), choices=SIDES)
    parser.add_argument("--lengths", nargs="+", type=int, default=[512, 1024, 2048, 4096])
    parser.add_argument("--length", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--size", default="mini")
    parser.add_argument("--batch_size", type=int, default=1)
    parser.add_argument("--steps", type=int, default=2)
    options = parse_flags(parser)
    if options.child:
        run_side(options.child, options)
        return

    pairs = list_pairs(options.sides, options.backends, peers=["transformers"])
    rows, measured = [], {}
    for length in options.lengths:
        command = [*sys.argv, "--length", length]
        measured = run_in_turn(command, pairs, [[]] * options.rounds)
        for (side, backend), figures in measured.items():
            windows = measured.get(("window", backend))
            ratios = [format_ratios(figures[of], windows[of]) for of in COLUMNS] if windows else []
            rows.append([str(length), side, backend, *format_cells(figures, COLUMNS), *ratios])
    print(f"{describe_run(measured, options.rounds, ['transformers'])}\n")
    ratios = [f"{name}, / window" for name in COLUMNS] if "window" in options.sides else []
    print(format_table(["length", "side", "backend", *COLUMNS, *ratios], rows))


if __name__ == "__main__":
    main()
