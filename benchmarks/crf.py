"""Seconds a step of the heads for entities, and of our CRF against the one of pytorch-crf.

    python benchmarks/crf.py                                   # both tables
    python benchmarks/crf.py --sides ours torchcrf --num_labels 9 33 --length 128

The first table trains a BERT (--num_layers, --hidden_dim) with each head on sentences of random
words; a step is the mean over an epoch, after an epoch that is not counted. The second table has
no encoder: it takes the gradient of the loss of random emissions (B, L, C) and random labels, the
mean over --steps. pytorch-crf runs under PyTorch without a compiler, as it is. Each side runs in a
process of its own, in turn.
"""

import argparse
import sys
import time

from harness.result_tables import describe_run, format_figures, format_table
from harness.side_flags import BACKENDS, list_pairs, parse_flags
from harness.side_runs import report, run_in_turn

HEADS = ["softmax", "crf", "global_pointer"]
BATCH_SIZE = 32


def time_head(head, options):
    """Seconds a step of `fit`."""
    import numpy as np

    import keras_bert_suite as kbs

    words = [f"word{number}" for number in range(500)]
    tokenizer = kbs.WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])
    backbone = kbs.BertBackbone(
        vocabulary_size=505,
        num_layers=options.num_layers,
        num_heads=4,
        hidden_dim=options.hidden_dim,
        intermediate_dim=4 * options.hidden_dim,
        max_sequence_length=options.length,
    )
    packer = kbs.SegmentPacker(tokenizer, options.length, padding_lengths=(options.length,))
    types = [f"T{number}" for number in range((options.labels - 1) // 2)]
    tags = ["O", *(f"{prefix}-{kind}" for kind in types for prefix in "BI")]
    rng = np.random.default_rng(0)
    num_rows = BATCH_SIZE * options.steps
    rows = [rng.choice(words, options.length - 2).tolist() for _ in range(num_rows)]
    if head == "global_pointer":
        task = kbs.EntitySpanClassifier(backbone, label_names=types, preprocessor=packer)
        starts = np.arange(0, options.length - 4, 8)
        labels = [[(s, s + 2, types[s % len(types)]) for s in starts] for _ in rows]
    else:
        task_cls = kbs.CrfTokenClassifier if head == "crf" else kbs.TokenClassifier
        arguments = {"scheme": None} if head == "crf" else {}
        task = task_cls(backbone, label_names=tags, preprocessor=packer, **arguments)
        labels = [rng.choice(tags, len(row)).tolist() for row in rows]
    task.fit(rows, labels, BATCH_SIZE, verbose=0)
    begin = time.perf_counter()
    task.fit(rows, labels, BATCH_SIZE, verbose=0)
    return (time.perf_counter() - begin) / options.steps


def make_chains(options):
    import numpy as np

    rng = np.random.default_rng(0)
    shape = (BATCH_SIZE, options.length)
    emissions = rng.normal(size=(*shape, options.labels)).astype("float32")
    return emissions, rng.integers(0, options.labels, shape).astype("int32")


def time_our_crf(options):
    """Seconds of the loss and its gradient."""
    import keras

    import keras_bert_suite as kbs

    emissions, labels = make_chains(options)
    crf = kbs.ConditionalRandomField(options.labels)
    crf.build((None, None, options.labels))
    scores = [weight.value for weight in crf.weights]

    def loss(emissions, *scores):
        with keras.StatelessScope(list(zip(crf.weights, scores, strict=True))):
            return keras.ops.mean(crf.negative_log_likelihood(labels, emissions))

    if keras.config.backend() == "tensorflow":
        import tensorflow as tf

        @tf.function
        def step(*tensors):
            with tf.GradientTape() as tape:
                tape.watch(tensors)
                total = loss(*tensors)
            return tape.gradient(total, tensors)

        tensors = [tf.constant(emissions), *map(tf.convert_to_tensor, scores)]
    elif keras.config.backend() == "jax":
        import jax

        gradient = jax.jit(jax.grad(loss, argnums=(0, 1, 2, 3)))

        def step(*tensors):
            return jax.block_until_ready(gradient(*tensors))

        tensors = [emissions, *scores]
    else:
        import torch

        def step(*tensors):
            return torch.autograd.grad(loss(*tensors), tensors)

        tensors = [torch.tensor(emissions), *(score.detach() for score in scores)]
        tensors = [tensor.requires_grad_() for tensor in tensors]
    return time_steps(lambda: step(*tensors), options.steps)


def time_torchcrf(options):
    import torch
    import torchcrf

    emissions, labels = make_chains(options)
    crf = torchcrf.CRF(options.labels, batch_first=True)
    emissions = torch.tensor(emissions, requires_grad=True)
    labels = torch.tensor(labels).long()
    parameters = [emissions, *crf.parameters()]

    def step():
        return torch.autograd.grad(-crf(emissions, labels, reduction="mean"), parameters)

    return time_steps(step, options.steps)


def time_steps(step, number):
    step()
    begin = time.perf_counter()
    for _ in range(number):
        step()
    return (time.perf_counter() - begin) / number


def run_side(side, options):
    """Measures one side in this process and prints the figures as JSON."""
    if side in HEADS:
        seconds = time_head(side, options)
    else:
        seconds = {"ours": time_our_crf, "torchcrf": time_torchcrf}[side](options)
    report({"ms": 1000 * seconds})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sides = [*HEADS, "ours", "torchcrf"]
    parser.add_argument("--backends", nargs="+", default=BACKENDS)
    parser.add_argument("--sides", nargs="+", default=sides, choices=sides)
    parser.add_argument("--num_labels", nargs="+", type=int, default=[9])
    parser.add_argument("--labels", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--num_layers", type=int, default=4)
    parser.add_argument("--hidden_dim", type=int, default=256)
    parser.add_argument("--steps", type=int, default=10)
    options = parse_flags(parser)
    if options.child:
        run_side(options.child, options)
        return

    pairs = list_pairs(options.sides, options.backends, peers=["torchcrf"])
    rounds = [[]] * options.rounds
    measured = {
        labels: run_in_turn([*sys.argv, "--labels", labels], pairs, rounds)
        for labels in options.num_labels
    }
    last = measured[options.num_labels[-1]]
    print(f"{describe_run(last, options.rounds, ['pytorch-crf'])}\n")
    print(f"Milliseconds a step of {BATCH_SIZE} rows; the memory is that of the last column.\n")
    columns = [f"{labels} labels" for labels in options.num_labels]
    for title, wanted in (("head", HEADS), ("CRF alone", ["ours", "torchcrf"])):
        rows = [
            [
                *pair,
                *(format_figures(measured[labels][pair]["ms"]) for labels in options.num_labels),
                format_figures(last[pair]["memory, GB"], "{:.2f}"),
            ]
            for pair in pairs
            if pair[0] in wanted
        ]
        if rows:
            print(f"{format_table([title, 'backend', *columns, 'memory, GB'], rows)}\n")


if __name__ == "__main__":
    main()
