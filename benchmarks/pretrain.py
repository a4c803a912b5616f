"""Pretraining speed: ours, KerasHub's and transformers', in turn in one run.

    python benchmarks/pretrain.py                     # tiny and mini, all backends, 3 rounds
    python benchmarks/pretrain.py --sizes tiny --backends jax --rounds 1

    # On a GPU. NVIDIA's data sheet gives an H200 989 TFLOP/s in bfloat16.
    python benchmarks/pretrain.py --sizes base --length 512 --batch_size 64 \\
        --dtype mixed_bfloat16 --backends jax torch --peak_tflops 989

Every side trains the same BERT, from random weights, on the same batches (of 32 sequences of
128 tokens with 20 predictions, unless flags say otherwise), dropout 0.1, masked tokens and
next sentences, with AdamW. Ours is `Pretrainer.fit`. KerasHub's is its `BertBackbone` with its
`MaskedLMHead` and a dense layer for the pairs, in a model of Keras with the same losses and
metrics; transformers' `BertForPreTraining` in a plain PyTorch loop, which scores the
vocabulary at all positions. The batches are in memory, so that the figure is that of the step
alone. The first steps, in which graphs are compiled, are not counted.

The share of the peak counts the products of the layers, forward and backward, for tokens that are
no padding; the head is not counted. The peak is --peak_tflops, or, if that is 0, the speed of a
product of two large matrices in the same process.
"""

import argparse
import math
import sys
import time

import numpy as np
from harness.machine_figures import count_operations
from harness.result_tables import describe_run, format_cells, format_ratios, format_table
from harness.side_flags import BACKENDS, list_pairs, parse_flags
from harness.side_runs import report, run_in_turn
from peer_recipes import make_bert_config

#: Layers, width, heads.
SIZES = {
    "tiny": (2, 128, 2),
    "mini": (4, 256, 4),
    "small": (4, 512, 8),
    "base": (12, 768, 12),
    "large": (24, 1024, 16),
}
V = 30522

COLUMNS = {"sequences/s": "{:.1f}", "fit, of the peak": "{:.1%}", "memory, GB": "{:.2f}"}


def make_rows(num_rows, length):
    """(x, y, sample weights) of random tokens, lengths and pairs as in pretraining."""
    rng = np.random.default_rng(0)
    lengths = np.where(rng.random(num_rows) < 0.1, rng.integers(5, length, num_rows), length)
    first = 1 + (lengths * rng.uniform(0.2, 0.8, num_rows)).astype(int)
    column, num_slots = np.arange(length), math.ceil(0.15 * length)
    padding_mask = (column < lengths[:, None]).astype("int32")
    keys = np.where(padding_mask, rng.random((num_rows, length)), 2.0)
    num_masked = np.minimum(num_slots, np.maximum(1, np.rint(0.15 * lengths))).astype(int)
    slots = np.arange(num_slots) < num_masked[:, None]
    positions = np.sort(np.where(slots, keys.argsort(axis=1)[:, :num_slots], length), axis=1)
    x = {
        "token_ids": (rng.integers(1000, V, (num_rows, length)) * padding_mask).astype("int32"),
        "segment_ids": (column >= first[:, None]).astype("int32") * padding_mask,
        "padding_mask": padding_mask,
        "mask_positions": (positions * slots).astype("int32"),
    }
    y = {
        "mlm": rng.integers(1000, V, (num_rows, num_slots)).astype("int32"),
        "nsp": rng.integers(0, 2, num_rows).astype("int32"),
    }
    return x, y, {"mlm": slots.astype("float32"), "nsp": np.ones(num_rows, "float32")}


def time_fit(model, options):
    """Steps/s of the second of two epochs of `options.steps` steps."""
    import keras

    ends = []
    clock = keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: ends.append(time.perf_counter()))
    x, y, weights = make_rows(options.steps * options.batch_size, options.length)
    model.fit(
        *(x, y, options.batch_size), sample_weight=weights, epochs=2, callbacks=[clock], verbose=0
    )
    return options.steps / (ends[1] - ends[0])


def measure_ours(size, options):
    import keras_bert_suite as kbs

    backbone = kbs.BertBackbone.from_size(size, vocabulary_size=V, dtype=options.dtype)
    pretrainer = kbs.Pretrainer(backbone)
    pretrainer.compile(kbs.AdamW(kbs.LinearWarmupDecay(1e-4)))
    return time_fit(pretrainer, options)


def measure_keras_hub(size, options):
    import keras
    import keras_hub

    num_layers, hidden_dim, num_heads = SIZES[size]
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=V,
        num_layers=num_layers,
        num_heads=num_heads,
        hidden_dim=hidden_dim,
        intermediate_dim=4 * hidden_dim,
        max_sequence_length=512,
        dtype=options.dtype,
    )
    positions = keras.Input((None,), dtype="int32", name="mask_positions")
    encoded = backbone(backbone.input)
    head = keras_hub.layers.MaskedLMHead(
        token_embedding=backbone.token_embedding,
        intermediate_activation="gelu",
        dtype=options.dtype,
        name="mlm",
    )
    outputs = {
        "mlm": head(encoded["sequence_output"], positions),
        "nsp": keras.layers.Dense(2, dtype=options.dtype, name="nsp")(encoded["pooled_output"]),
    }
    model = keras.Model({**backbone.input, "mask_positions": positions}, outputs)
    optimizer = keras.optimizers.AdamW(1e-4, weight_decay=0.01, global_clipnorm=1.0)
    accuracy = keras.metrics.SparseCategoricalAccuracy
    model.compile(
        optimizer,
        loss={
            "mlm": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            "nsp": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        },
        weighted_metrics={"mlm": [accuracy()], "nsp": [accuracy()]},
    )
    return time_fit(model, options)


def measure_transformers(size, options):
    import torch
    from transformers import BertForPreTraining

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = BertForPreTraining(make_bert_config(*SIZES[size], V)).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    x, y, weights = make_rows(2 * options.steps * options.batch_size, options.length)
    labels = np.full(x["token_ids"].shape, -100)
    rows, slots = np.nonzero(weights["mlm"])
    labels[rows, x["mask_positions"][rows, slots]] = y["mlm"][rows, slots]
    arrays = {
        "input_ids": x["token_ids"],
        "token_type_ids": x["segment_ids"],
        "attention_mask": x["padding_mask"],
        "labels": labels,
        "next_sentence_label": y["nsp"],
    }
    tensors = {name: torch.from_numpy(array).long() for name, array in arrays.items()}
    bfloat16 = torch.autocast(device, torch.bfloat16, enabled=options.dtype == "mixed_bfloat16")

    def now():
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    for step in range(2 * options.steps):
        if step == options.steps:
            begin = now()
        batch = slice(step * options.batch_size, (step + 1) * options.batch_size)
        with bfloat16:
            outputs = model(**{name: tensor[batch].to(device) for name, tensor in tensors.items()})
        outputs.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return options.steps / (now() - begin)


SIDES = {
    "ours": measure_ours,
    "keras_hub": measure_keras_hub,
    "transformers": measure_transformers,
}


def run_side(side, size, options):
    """Measures one side in this process and prints the figures as JSON."""
    rate = options.batch_size * SIDES[side](size, options)
    num_layers, hidden_dim, _ = SIZES[size]
    x, _, _ = make_rows(options.steps * options.batch_size, options.length)
    lengths = x["padding_mask"].sum(axis=1)
    operations = count_operations(num_layers, hidden_dim, 4 * hidden_dim, lengths) / len(lengths)
    rate_of_work = 3 * operations * rate
    if options.peak_tflops:
        report({"sequences/s": rate, "fit, of the peak": rate_of_work / options.peak_tflops / 1e12})
    else:
        dtype = options.dtype.removeprefix("mixed_")
        report({"sequences/s": rate}, {"fit": rate_of_work}, dtype)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--backends", nargs="+", default=BACKENDS)
    parser.add_argument("--sizes", nargs="+", default=["tiny", "mini"], choices=list(SIZES))
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--dtype", default="float32", choices=["float32", "mixed_bfloat16"])
    parser.add_argument("--peak_tflops", type=float, default=0, help="of the device; 0 measures it")
    parser.add_argument("--steps", type=int, default=20, help="steps that are counted")
    options = parse_flags(parser)
    if options.child:
        run_side(options.child, *options.sizes, options)
        return

    pairs = list_pairs(SIDES, options.backends, peers=["transformers"])
    pairs = [pair for pair in pairs if pair[1] in options.backends]
    rows, measured = [], {}
    for size in options.sizes:
        measured = run_in_turn([*sys.argv, "--sizes", size], pairs, [[]] * options.rounds)
        for (side, backend), figures in measured.items():
            ours = measured["ours", backend]["sequences/s"]
            ratio = "" if side == "ours" else format_ratios(ours, figures["sequences/s"])
            rows.append([size, side, backend, *format_cells(figures, COLUMNS), ratio])
    print(f"{describe_run(measured, options.rounds, ['keras-hub', 'transformers'])}\n")
    headings = ["size", "side", "backend", *COLUMNS, "ours / side"]
    print(format_table(headings, rows))


if __name__ == "__main__":
    main()
