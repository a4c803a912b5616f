"""Measures the speed of fine-tuning: ours, KerasHub's and transformers', in turn in one run.

    python benchmarks/finetune.py                        # all backends, 480 rows, 3 rounds
    python benchmarks/finetune.py --rows 2400 --epochs 3 --sides ours transformers
    python benchmarks/finetune.py --backends torch --sides ours 'transformers compiled'

Every side fine-tunes the same MiniLM (six layers, 384 wide) on the same sentences of
examples/data, in batches of 32 rows of at most 128 tokens, in a process of its own. Graphs are
compiled in the first epoch, so `fit` counts the epochs after it. It and `predict` are in
rows/s, `first epoch` and `all epochs` in seconds.
KerasHub can only pad every batch to 128 tokens. transformers pads to the longest row of a batch;
its attention is PyTorch's fused kernel ("transformers", SDPA) or plain products ("eager"). More
sides group rows by their number of tokens ("grouped"), and put the model through `torch.compile`
("compiled"), which must be asked for: on a CPU it compiles for minutes. Two more sides of ours take
rows in random order and pack their sequences ("packed"), and compute in mixed_bfloat16. TensorFlow
computes by oneDNN on every side, as `keras-bert` has it.

The share is that of the speed of a product of two large matrices in the same process. Only tokens
that are no padding count as work.
"""

import argparse
import csv
import sys
import time
from pathlib import Path

from harness.machine_figures import count_operations
from harness.result_tables import describe_run, format_columns, format_comparison
from harness.side_flags import BACKENDS, list_pairs, parse_flags
from harness.side_runs import report, run_in_turn
from peer_recipes import find_minilm

from keras_bert_cli.backend import use_onednn

DATA = Path(__file__).resolve().parents[1] / "examples" / "data"
BATCH_SIZE, SEQUENCE_LENGTH = 32, 128

#: Layers, width and inner width of MiniLM.
SIZES = (6, 384, 1536)

COLUMNS = {
    "fit": "{:.1f}",
    "fit, of the peak": "{:.0%}",
    "predict": "{:.1f}",
    "predict, of the peak": "{:.0%}",
    "first epoch": "{:.1f}",
    "all epochs": "{:.1f}",
    "memory, GB": "{:.2f}",
    "accuracy": "{:.4f}",
}


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


def run_transformers(
    train, test, epochs, learning_rate, grouped=False, attention="sdpa", compiled=False
):
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
    model = AutoModelForSequenceClassification.from_pretrained(
        find_minilm(), num_labels=2, attn_implementation=attention
    )
    if compiled:
        model.compile(dynamic=True)
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
    "transformers eager": lambda *arguments: run_transformers(*arguments, attention="eager"),
    "transformers grouped": lambda *arguments: run_transformers(*arguments, grouped=True),
    "transformers compiled": lambda *arguments: run_transformers(*arguments, compiled=True),
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
    operations = {
        "fit": 3 * figures["fit"] * count_mean_operations(train[0]),
        "predict": figures["predict"] * count_mean_operations(test[0]),
    }
    report(figures, operations, "bfloat16" if side == "ours, bfloat16" else "float32")


def count_mean_operations(texts):
    """The operations of the forward pass of a row, without its padding, as a mean."""
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(f"{find_minilm()}/tokenizer.json")
    tokenizer.no_padding()
    tokenizer.enable_truncation(SEQUENCE_LENGTH)
    lengths = [len(row) for row in tokenizer.encode_batch(texts)]
    return count_operations(*SIZES, lengths) / len(texts)


def main():
    use_onednn()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sides = [side for side in SIDES if side != "transformers compiled"]
    parser.add_argument("--backends", nargs="+", default=BACKENDS)
    parser.add_argument("--sides", nargs="+", default=sides, choices=list(SIDES))
    parser.add_argument("--rows", type=int, default=480)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--learning_rate", type=float, default=1e-4)
    options = parse_flags(parser)
    if options.child:
        run_side(options.child, options.rows, options.epochs, options.learning_rate)
        return

    peers = [side for side in SIDES if side.startswith("transformers")]
    pairs = list_pairs(options.sides, options.backends, peers)
    measured = run_in_turn(sys.argv, pairs, [[]] * options.rounds)
    print(f"{describe_run(measured, options.rounds, ['keras-hub', 'transformers'])}\n")
    print(f"{format_columns(measured, COLUMNS)}\n\n{format_comparison(measured, COLUMNS, peers)}")


if __name__ == "__main__":
    main()
