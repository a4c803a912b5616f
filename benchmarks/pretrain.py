"""Pretraining speed: ours, KerasHub's and transformers', in turn in one run.

    python benchmarks/pretrain.py                     # tiny and mini, all backends, 3 rounds
    python benchmarks/pretrain.py --sizes tiny --backends jax --rounds 1

Every side trains the same BERT, from random weights, on the same batches of 32 sequences of
128 tokens with 20 predictions, dropout 0.1, masked tokens and next sentences, with AdamW.
Ours is `Pretrainer.fit`. KerasHub's is its `BertBackbone` with its `MaskedLMHead` and a dense
layer for the pairs, in a model of Keras with the same losses and metrics; transformers'
`BertForPreTraining` in a plain PyTorch loop, which scores the vocabulary at all 128 positions.
The batches are in memory, so that the figure is that of the step alone. The first steps, in
which graphs are compiled, are not counted.
"""

import argparse
import json
import time

import numpy as np
from side_processes import describe_run, measure_in_turn

SIZES = {"tiny": (2, 128, 2), "mini": (4, 256, 4)}
V, L, P = 30522, 128, 20
BATCH_SIZE = 32


def make_rows(num_rows):
    """(x, y, sample weights) of random tokens, lengths and pairs as in pretraining."""
    rng = np.random.default_rng(0)
    lengths = np.where(rng.random(num_rows) < 0.1, rng.integers(5, L, num_rows), L)
    first = 1 + (lengths * rng.uniform(0.2, 0.8, num_rows)).astype(int)
    column = np.arange(L)
    padding_mask = (column < lengths[:, None]).astype("int32")
    keys = np.where(padding_mask, rng.random((num_rows, L)), 2.0)
    num_masked = np.minimum(P, np.maximum(1, np.rint(0.15 * lengths))).astype(int)
    slots = np.arange(P) < num_masked[:, None]
    positions = np.sort(np.where(slots, keys.argsort(axis=1)[:, :P], L), axis=1) * slots
    x = {
        "token_ids": (rng.integers(1000, V, (num_rows, L)) * padding_mask).astype("int32"),
        "segment_ids": (column >= first[:, None]).astype("int32") * padding_mask,
        "padding_mask": padding_mask,
        "mask_positions": positions.astype("int32"),
    }
    y = {
        "mlm": rng.integers(1000, V, (num_rows, P)).astype("int32"),
        "nsp": rng.integers(0, 2, num_rows).astype("int32"),
    }
    return x, y, {"mlm": slots.astype("float32"), "nsp": np.ones(num_rows, "float32")}


def time_fit(fit, num_steps):
    """Steps/s of the second half of `2 num_steps` steps."""
    import keras

    ends = []
    clock = keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: ends.append(time.perf_counter()))
    fit(make_rows(num_steps * BATCH_SIZE), clock)
    return num_steps / (ends[1] - ends[0])


def measure_ours(size, num_steps):
    import keras_bert_suite as kbs

    pretrainer = kbs.Pretrainer(kbs.BertBackbone.from_size(size, vocabulary_size=V))
    pretrainer.compile(kbs.AdamW(kbs.LinearWarmupDecay(1e-4)))

    def fit(rows, clock):
        x, y, weights = rows
        pretrainer.fit(
            x, y, BATCH_SIZE, sample_weight=weights, epochs=2, callbacks=[clock], verbose=0
        )

    return time_fit(fit, num_steps)


def measure_keras_hub(size, num_steps):
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
    )
    positions = keras.Input((None,), dtype="int32", name="mask_positions")
    encoded = backbone(backbone.input)
    head = keras_hub.layers.MaskedLMHead(
        token_embedding=backbone.token_embedding, intermediate_activation="gelu", name="mlm"
    )
    outputs = {
        "mlm": head(encoded["sequence_output"], positions),
        "nsp": keras.layers.Dense(2, name="nsp")(encoded["pooled_output"]),
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

    def fit(rows, clock):
        x, y, weights = rows
        model.fit(x, y, BATCH_SIZE, sample_weight=weights, epochs=2, callbacks=[clock], verbose=0)

    return time_fit(fit, num_steps)


def measure_transformers(size, num_steps):
    import torch
    from transformers import BertConfig, BertForPreTraining

    num_layers, hidden_dim, num_heads = SIZES[size]
    model = BertForPreTraining(
        BertConfig(
            vocab_size=V,
            hidden_size=hidden_dim,
            num_hidden_layers=num_layers,
            num_attention_heads=num_heads,
            intermediate_size=4 * hidden_dim,
        )
    ).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    x, y, weights = make_rows(2 * num_steps * BATCH_SIZE)
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
    for step in range(2 * num_steps):
        if step == num_steps:
            begin = time.perf_counter()
        batch = slice(step * BATCH_SIZE, (step + 1) * BATCH_SIZE)
        model(**{name: tensor[batch] for name, tensor in tensors.items()}).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return num_steps / (time.perf_counter() - begin)


SIDES = {
    "ours": measure_ours,
    "keras_hub": measure_keras_hub,
    "transformers": measure_transformers,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--backends", nargs="+", default=["tensorflow", "jax", "torch"])
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--steps", type=int, default=20, help="steps that are counted")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        (size,) = options.sizes
        steps_per_second = SIDES[options.child](size, options.steps)
        print(json.dumps({"sequences/s": BATCH_SIZE * steps_per_second}))
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
    for size in options.sizes:
        arguments = ["--sizes", size, "--steps", options.steps]
        measured = measure_in_turn(__file__, sides, options.rounds, arguments)
        for backend in options.backends:
            speeds = {
                side: figures["sequences/s"]
                for (side, of), figures in measured.items()
                if of == backend
            }
            best = max(speed for side, speed in speeds.items() if side != "ours")
            cells = [f"{speeds[side]:.1f}" if side in speeds else "" for side in SIDES]
            print(f"| {size} | {backend} | {' | '.join(cells)} | {speeds['ours'] / best:.2f}x |")


if __name__ == "__main__":
    main()
