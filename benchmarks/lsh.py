"""Memory and time of attention by hashing, beside a window and full attention, on long rows.

    python benchmarks/lsh.py                                     # PyTorch, 1,024 to 16,384 tokens
    python benchmarks/lsh.py --lengths 1024 4096 --rounds 1

An encoder with the sizes of BERT-mini (4 layers, 256 wide, 4 heads) on one row of each of
`--lengths` tokens, in float32: "forward" is a pass as in prediction, "gradient" a pass as in
training, with dropout, and its gradient. "lsh" is a BertBackbone with `--chunk` tokens in a chunk
and `--hash_rounds` rounds of hashing, "window" a LongformerBackbone with windows of 512 tokens and
the first token global, and "full" a BertBackbone. (Under PyTorch on a CPU, attention with dropout
keeps its probabilities, and the kernel without dropout does not.)

Each side runs each length in a process of its own, in turn, with one thread. A process may have
`--limit` GB beside its libraries; a side without room for a length has an empty cell. "GB" is what
the process has had more at its peak than before its first pass. Times are the shortest of `--steps`
after the first, in seconds of the processor, so that other work on the machine counts little.
"""

import argparse
import os
import resource
import sys
import time

from harness.machine_figures import find_device, find_memory
from harness.result_tables import describe_run, format_figures, format_ratios, format_table
from harness.side_flags import list_pairs, parse_flags
from harness.side_runs import report, run_in_turn

SIDES = ("lsh", "window", "full")
VOCABULARY_SIZE = 8192
WINDOW = 512

COLUMNS = {
    "forward, s": "{:.2f}",
    "forward, GB": "{:.2f}",
    "gradient, s": "{:.2f}",
    "gradient, GB": "{:.2f}",
}


def make_backbone(side, options):
    """The encoder of a side."""
    import keras_bert_suite as kbs

    arguments = {"max_sequence_length": options.length}
    if side == "window":
        sizes = kbs.BertBackbone.sizes[options.size]
        return kbs.LongformerBackbone(
            VOCABULARY_SIZE, **sizes, attention_window=WINDOW, **arguments
        )
    if side == "lsh":
        hashing = kbs.layers.TokenHashing(options.chunk, options.hash_rounds)
        arguments["hashing"] = hashing
    return kbs.BertBackbone.from_size(options.size, VOCABULARY_SIZE, **arguments)


def run_side(side, options):
    """Measures one side in this process and prints the figures as JSON."""
    figures = dict.fromkeys(COLUMNS)
    try:
        measure(side, options, figures)
    except (MemoryError, RuntimeError) as error:
        if "memory" not in str(error).lower() and not isinstance(error, MemoryError):
            raise
    report(figures)


def measure(side, options, figures):
    """Fills the dict of figures, as far as there is memory."""
    import numpy as np
    import torch

    backbone = make_backbone(side, options)
    ids = np.random.default_rng(0).integers(5, VOCABULARY_SIZE, (1, options.length))
    inputs = {"token_ids": ids.astype("int32")}
    inputs["segment_ids"] = np.zeros_like(inputs["token_ids"])
    inputs["padding_mask"] = np.ones_like(inputs["token_ids"])
    inputs = {name: inputs[name] for name in backbone.input}

    def run_forward():
        with torch.no_grad():
            backbone(inputs, training=False)

    def find_gradient():
        backbone.zero_grad()
        backbone(inputs, training=True)["sequence_output"].square().sum().backward()

    device = find_device()
    # What is allocated after this counts, with the libraries and weights that are there already.
    taken = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (taken + int(options.limit * 1e9),) * 2)
    before = find_memory(device)
    for name, run in (("forward", run_forward), ("gradient", find_gradient)):
        seconds = []
        for _ in range(options.steps + 1):
            begin = time.process_time()
            run()
            seconds.append(time.process_time() - begin)
        figures[f"{name}, s"] = min(seconds[1:])
        figures[f"{name}, GB"] = find_memory(device) - before


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sides", nargs="+", default=list(SIDES), choices=SIDES)
    parser.add_argument("--lengths", nargs="+", type=int, default=[1024, 2048, 4096, 8192, 16384])
    parser.add_argument("--length", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--size", default="mini")
    parser.add_argument("--chunk", type=int, default=64)
    parser.add_argument("--hash_rounds", type=int, default=2)
    parser.add_argument("--limit", type=float, default=8.0, help="GB of memory of a process")
    parser.add_argument("--steps", type=int, default=1)
    options = parse_flags(parser)
    if options.child:
        run_side(options.child, options)
        return

    os.environ["OMP_NUM_THREADS"] = "1"
    rows, measured = [], {}
    for length in options.lengths:
        command = [*sys.argv, "--length", length]
        pairs = list_pairs(options.sides, ["torch"], peers=[])
        measured = run_in_turn(command, pairs, [[]] * options.rounds)
        windows = measured.get(("window", "torch"))
        for (side, _), figures in measured.items():
            cells = [format_figures(figures[name], form) for name, form in COLUMNS.items()]
            if windows:
                cells += [_compare(figures[name], windows[name]) for name in COLUMNS]
            rows.append([str(length), side, *cells])
    print(f"{describe_run(measured, options.rounds)}\n")
    ratios = [f"{name}, / window" for name in COLUMNS] if "window" in options.sides else []
    print(format_table(["length", "side", *COLUMNS, *ratios], rows))


def _compare(values, others):
    """The cell of ratios; empty if a side had no room."""
    return "" if None in values or None in others else format_ratios(values, others)


if __name__ == "__main__":
    main()
