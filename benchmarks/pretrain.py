"""Pretraining speed: ours, KerasHub's and transformers', in turn in one run.

    python benchmarks/pretrain.py                     # tiny and mini, all backends, 3 rounds
    python benchmarks/pretrain.py --sizes tiny --backends jax --rounds 1

    # On a GPU; 989 TFLOP/s is what an H200 has in bfloat16.
    python benchmarks/pretrain.py --sizes base --length 512 --batch_size 64 \\
        --dtype mixed_bfloat16 --backends jax torch --peak_tflops 989

Every side trains the same BERT, from random weights, on the same batches (of 32 sequences of
128 tokens with 20 predictions, unless flags say otherwise), dropout 0.1, masked tokens and
next sentences, with AdamW. Ours is `Pretrainer.fit`. KerasHub's is its `BertBackbone` with its
`MaskedLMHead` and a dense layer for the pairs, in a model of Keras with the same losses and
metrics; transformers' `BertForPreTraining` in a plain PyTorch loop, which scores the
vocabulary at all positions. The batches are in memory, so that the figure is that of the step
alone. The first steps, in which graphs are compiled, are not counted.

The model FLOP utilisation is that of 6 N + 12 L d S operations a token, where N are the
weights of the L layers of width d, and S is the length; the head is not counted.
"""

import argparse
import json
import math
import time

import numpy as np
from side_processes import describe_run, measure_in_turn

#: Layers, width, heads.
SIZES = {
    "tiny": (2, 128, 2),
    "mini": (4, 256, 4),
    "small": (4, 512, 8),
    "base": (12, 768, 12),
    "large": (24, 1024, 16),
}
V = 30522


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
    from transformers import BertConfig, BertForPreTraining

    device = "cuda" if torch.cuda.is_available() else "cpu"
    num_layers, hidden_dim, num_heads = SIZES[size]
    config = BertConfig(
        vocab_size=V,
        hidden_size=hidden_dim,
        num_hidden_layers=num_layers,
        num_attention_heads=num_heads,
        intermediate_size=4 * hidden_dim,
    )
    model = BertForPreTraining(config).to(device).train()
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


def find_utilisation(size, length, sequences_per_second, peak_tflops):
    """Share of the peak that the layers take, see above."""
    num_layers, hidden_dim, _ = SIZES[size]
    num_weights = 12 * num_layers * hidden_dim**2
    operations = 6 * num_weights + 12 * num_layers * hidden_dim * length
    return sequences_per_second * length * operations / (peak_tflops * 1e12)


SIDES = {
    "ours": measure_ours,
    "keras_hub": measure_keras_hub,
    "transformers": measure_transformers,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--backends", nargs="+", default=["tensorflow", "jax", "torch"])
    parser.add_argument("--sizes", nargs="+", default=["tiny", "mini"], choices=list(SIZES))
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--dtype", default="float32", choices=["float32", "mixed_bfloat16"])
    parser.add_argument("--peak_tflops", type=float, help="of the device, for the utilisation")
    parser.add_argument("--steps", type=int, default=20, help="steps that are counted")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        (size,) = options.sizes
        steps_per_second = SIDES[options.child](size, options)
        print(json.dumps({"sequences/s": options.batch_size * steps_per_second}))
        return

    sides = [
        (side, backend)
        for backend in options.backends
        for side in SIDES
        if side != "transformers" or backend == "torch"
    ]
    print(f"{describe_run(options.rounds)} Sequences/s of `fit`.\n")
    print("| size | backend | ours | KerasHub | transformers | ours / the better peer |")
    print("| --- | --- | --- | --- | --- | --- |")
    passed_on = ("length", "batch_size", "dtype", "steps")
    for size in options.sizes:
        arguments = ["--sizes", size]
        for name in passed_on:
            arguments += [f"--{name}", getattr(options, name)]
        measured = measure_in_turn(__file__, sides, options.rounds, arguments)
        for backend in options.backends:
            speeds = {
                side: figures["sequences/s"]
                for (side, of), figures in measured.items()
                if of == backend
            }
            best = max(speed for side, speed in speeds.items() if side != "ours")
            cells = [f"{speeds[side]:.1f}" if side in speeds else "" for side in SIDES]
            if options.peak_tflops:
                share = find_utilisation(size, options.length, speeds["ours"], options.peak_tflops)
                cells[0] += f" ({share:.0%} of the peak)"
            print(f"| {size} | {backend} | {' | '.join(cells)} | {speeds['ours'] / best:.2f}x |")


if __name__ == "__main__":
    main()
