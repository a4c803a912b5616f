"""Measures the speed of fine-tuning: ours, KerasHub's and transformers', in turn in one run.

    python benchmarks/finetune.py                        # all backends, 480 rows, 3 rounds
    python benchmarks/finetune.py --rows 2400 --epochs 3 --rounds 1 --sides ours transformers

Every side fine-tunes the same MiniLM (six layers, 384 wide) on the same sentences of
examples/data, in batches of 32 rows of at most 128 tokens, in a process of its own. Graphs are
compiled in the first epoch, so `fit` counts the epochs after it; `first epoch` is in seconds.
KerasHub can only pad every batch to 128 tokens. transformers pads to the longest row of a batch. A
second side of transformers groups rows by their number of tokens ("grouped"). Two more sides of
ours take rows in random order and pack their sequences ("packed"), and compute in mixed_bfloat16.
"""

import argparse
import csv
import json
import time
from pathlib import Path

from side_processes import describe_run, find_minilm, measure_in_turn

DATA = Path(__file__).resolve().parents[1] / "examples" / "data"
BATCH_SIZE, SEQUENCE_LENGTH = 32, 128


def read_rows(name):
    with open(DATA / name, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [r["sentence"] for r in rows], [int(r["label"] == "positive") for r in rows]


def measure_keras(classifier, train, test, epochs, **fit_arguments):
    import keras

    ends = []
    clock = keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: ends.append(time.perf_counter()))
    begin = time.perf_counter()
    classifier.fit(
        *train,
        batch_size=BATCH_SIZE,
        epochs=epochs,
        callbacks=[clock],
        verbose=0,
        **fit_arguments,
    )
    classifier.predict(test[0], batch_size=BATCH_SIZE, verbose=0)
    predict_begin = time.perf_counter()
    outputs = classifier.predict(test[0], batch_size=BATCH_SIZE, verbose=0)
    return begin, ends, time.perf_counter() - predict_begin, outputs.argmax(-1)


def run_ours(train, test, epochs, learning_rate, dtype=None, **fit_arguments):
    import keras

    import keras_bert_suite as kbs

    keras.utils.set_random_seed(0)
    classifier = kbs.TextClassifier.from_preset(
        find_minilm(), num_classes=2, sequence_length=SEQUENCE_LENGTH, dtype=dtype
    )
    classifier.compile(kbs.AdamW(kbs.LinearWarmupDecay(learning_rate), bias_correction=True))
    return measure_keras(classifier, train, test, epochs, **fit_arguments)


def run_keras_hub(train, test, epochs, learning_rate):
    import keras
    import keras_hub

    keras.utils.set_random_seed(0)
    models = keras_hub.models
    preprocessor = models.BertTextClassifierPreprocessor.from_preset(
        find_minilm(), sequence_length=SEQUENCE_LENGTH
    )
    classifier = models.BertTextClassifier.from_preset(
        find_minilm(), num_classes=2, preprocessor=preprocessor
    )
    classifier.compile(keras.optimizers.AdamW(learning_rate))
    return measure_keras(classifier, train, test, epochs)


def run_transformers(train, test, epochs, learning_rate, grouped=False):
    import numpy as np
    import torch
    from transformers import (
        AutoModelForSequenceClassification,
        AutoTokenizer,
        get_linear_schedule_with_warmup,
    )

    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    tokenizer = AutoTokenizer.from_pretrained(find_minilm())
    model = AutoModelForSequenceClassification.from_pretrained(find_minilm(), num_labels=2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, fused=True)
    steps = -(-len(train[0]) // BATCH_SIZE) * epochs
    schedule = get_linear_schedule_with_warmup(optimizer, steps // 10, steps)

    def pack(texts):
        return tokenizer(
            texts, truncation=True, max_length=SEQUENCE_LENGTH, padding=True, return_tensors="pt"
        )

    def count_tokens(texts):
        return np.array([len(ids) for ids in tokenizer(texts)["input_ids"]])

    def predict(texts):
        order = np.argsort(count_tokens(texts)) if grouped else np.arange(len(texts))
        classes = np.empty(len(texts), int)
        model.eval()
        with torch.inference_mode():
            for rows in np.array_split(order, range(BATCH_SIZE, len(texts), BATCH_SIZE)):
                logits = model(**pack([texts[row] for row in rows])).logits
                classes[rows] = logits.argmax(-1).numpy()
        return classes

    ends, begin = [], time.perf_counter()
    lengths = count_tokens(train[0]) if grouped else None
    for _ in range(epochs):
        model.train()
        order = rng.permutation(len(train[0]))
        if grouped:  # as Trainer's group_by_length: groups of 50 batches, each sorted
            groups = np.array_split(order, range(50 * BATCH_SIZE, len(order), 50 * BATCH_SIZE))
            order = np.concatenate([group[np.argsort(lengths[group])] for group in groups])
        batches = np.array_split(order, range(BATCH_SIZE, len(order), BATCH_SIZE))
        for batch in rng.permutation(len(batches)):
            rows = batches[batch]
            labels = torch.tensor([train[1][row] for row in rows])
            model(**pack([train[0][row] for row in rows]), labels=labels).loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        ends.append(time.perf_counter())
    predict(test[0])
    predict_begin = time.perf_counter()
    classes = predict(test[0])
    return begin, ends, time.perf_counter() - predict_begin, classes


SIDES = {
    "ours": run_ours,
    "ours, packed": lambda *arguments: run_ours(*arguments, sequence_packing=True),
    "ours, bfloat16": lambda *arguments: run_ours(*arguments, dtype="mixed_bfloat16"),
    "keras_hub": run_keras_hub,
    "transformers": run_transformers,
    "transformers grouped": lambda *arguments: run_transformers(*arguments, grouped=True),
}


def run_side(side, rows, epochs, learning_rate):
    """Measures one side in this process and prints the figures as JSON."""
    train = [column[:: max(1, 2400 // rows)][:rows] for column in read_rows("sentences_train.tsv")]
    test = read_rows("sentences_test.tsv")
    begin, ends, predict_seconds, classes = SIDES[side](train, test, epochs, learning_rate)
    later = ends[-1] - ends[0]
    figures = {
        "fit": rows * (epochs - 1) / later if epochs > 1 else rows / (ends[0] - begin),
        "first epoch": ends[0] - begin,
        "all epochs": ends[-1] - begin,
        "predict": len(test[0]) / predict_seconds,
        "accuracy": float(sum(int(c) == y for c, y in zip(classes, test[1], strict=True)))
        / len(test[1]),
    }
    print(json.dumps(figures))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backends", nargs="+", default=["tensorflow", "jax", "torch"])
    parser.add_argument("--sides", nargs="+", default=list(SIDES), choices=list(SIDES))
    parser.add_argument("--rows", type=int, default=480)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--learning_rate", type=float, default=1e-4)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        run_side(options.child, options.rows, options.epochs, options.learning_rate)
        return

    pairs = [
        (side, backend)
        for side in options.sides
        for backend in (["torch"] if side.startswith("transformers") else options.backends)
    ]
    arguments = ["--rows", options.rows, "--epochs", options.epochs]
    arguments += ["--learning_rate", options.learning_rate]
    measured = measure_in_turn(__file__, pairs, options.rounds, arguments)

    def median(pair, figure):
        return measured[pair][figure]

    print(f"{describe_run(options.rounds)} Examples/s.\n")
    print("| side | backend | fit | predict | first epoch (s) | all epochs (s) | accuracy |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for pair in pairs:
        print(
            f"| {pair[0]} | {pair[1]} | {median(pair, 'fit'):.1f} | {median(pair, 'predict'):.1f} "
            f"| {median(pair, 'first epoch'):.1f} | {median(pair, 'all epochs'):.1f} "
            f"| {median(pair, 'accuracy'):.4f} |"
        )
    print("\n| ours / peer | backend | fit | predict | all epochs |")
    print("| --- | --- | --- | --- | --- |")
    for peer in (pair for pair in pairs if pair[0] != "ours"):
        for ours in (pair for pair in pairs if pair[0] == "ours"):
            if peer[0] == "keras_hub" and peer[1] != ours[1]:
                continue
            ratios = [median(ours, f) / median(peer, f) for f in ("fit", "predict")]
            ratios.append(median(peer, "all epochs") / median(ours, "all epochs"))
            print(f"| {peer[0]} | {ours[1]} | " + " | ".join(f"{r:.2f}x" for r in ratios) + " |")


if __name__ == "__main__":
    main()
