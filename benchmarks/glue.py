"""GLUE: the scores of our TextClassifier and of transformers, same weights, recipe and seeds.

    python benchmarks/glue.py --seeds 0 1 2                          # hours
    python benchmarks/glue.py --tasks stsb --num_rows 320 --dev_rows 100 --epochs 1

Every side fine-tunes the same MiniLM (six layers, 384 wide, uncased) on the training files of CoLA,
SST-2, MRPC, STS-B and RTE, at most `--num_rows` rows of each, the first, and answers the dev file,
at most `--dev_rows` rows, after the last epoch. Batches of 16 rows of similar length, at most 128
tokens, AdamW with bias correction, weight decay 0.01, gradients clipped to norm 1, linear warm-up
over a tenth of the steps and linear decay, dropout as in the checkpoint. Each side runs in a
process of its own. The new layer has other random weights on each side. The metrics are those of
the leaderboard. `--data` is the folder of the official files.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

from peer_recipes import make_adamw, take_step
from side_processes import (
    describe_run,
    describe_seeds,
    find_minilm,
    list_pairs,
    measure_seeds,
    repeat_flags,
)

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "glue"
TASKS = ("cola", "sst2", "mrpc", "stsb", "rte")
BATCH_SIZE, SEQUENCE_LENGTH = 16, 128


def run_ours(task, train, dev, epochs, learning_rate, seed):
    import keras

    import keras_bert_suite as kbs

    keras.utils.set_random_seed(seed)
    classifier = kbs.TextClassifier.from_preset(
        find_minilm(),
        label_names=task.label_names,
        problem_type=task.problem_type,
        sequence_length=SEQUENCE_LENGTH,
    )
    classifier.compile(kbs.AdamW(kbs.LinearWarmupDecay(learning_rate), bias_correction=True))
    begin = time.perf_counter()
    classifier.fit(train.x, train.labels, batch_size=BATCH_SIZE, epochs=epochs, verbose=0)
    return time.perf_counter() - begin, classifier.predict_labels(dev.x, verbose=0)


def run_transformers(task, train, dev, epochs, learning_rate, seed):
    import numpy as np
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from keras_bert_suite.data.row_orders import shuffled_by_length

    torch.manual_seed(seed)
    tokenizer = AutoTokenizer.from_pretrained(find_minilm())
    model = AutoModelForSequenceClassification.from_pretrained(
        find_minilm(), num_labels=len(task.label_names), problem_type=task.problem_type
    )
    adamw = make_adamw(model, learning_rate, -(-len(train) // BATCH_SIZE) * epochs)

    def pack(rows, numbers):
        columns = [[column[number] for number in numbers] for column in rows.texts]
        return tokenizer(
            *columns, truncation=True, max_length=SEQUENCE_LENGTH, padding=True, return_tensors="pt"
        )

    def encode(labels):
        if task.problem_type == "regression":
            return torch.tensor(labels)
        return torch.tensor([task.label_names.index(label) for label in labels])

    def lengths(rows):
        return [sum(map(len, texts)) for texts in zip(*rows.texts, strict=True)]

    order = shuffled_by_length(lengths(train), BATCH_SIZE, seed=seed)
    begin = time.perf_counter()
    model.train()
    for epoch in range(epochs):
        for batch in np.array_split(order(epoch), range(BATCH_SIZE, len(train), BATCH_SIZE)):
            labels = encode([train.labels[number] for number in batch])
            take_step(model, model(**pack(train, batch), labels=labels).loss, *adamw)
    seconds = time.perf_counter() - begin

    model.eval()
    answers = [None] * len(dev)
    order = np.argsort(lengths(dev))
    with torch.inference_mode():
        for batch in np.array_split(order, range(BATCH_SIZE, len(dev), BATCH_SIZE)):
            logits = model(**pack(dev, batch)).logits.numpy()
            for number, row in zip(batch, logits, strict=True):
                is_number = task.problem_type == "regression"
                answers[number] = float(row[0]) if is_number else task.label_names[row.argmax()]
    return seconds, answers


SIDES = {"ours": run_ours, "transformers": run_transformers}


def run_side(side, options):
    """Measures one side in this process and prints the figures as JSON."""
    from keras_bert_suite.data.glue import GLUE_TASKS, read_glue
    from keras_bert_suite.data.glue_scores import score_glue

    task = GLUE_TASKS[options.task]
    train = read_glue(task, options.data).take(options.num_rows)
    dev = read_glue(task, options.data, task.dev["dev"]).take(options.dev_rows)
    seconds, answers = SIDES[side](
        task, train, dev, options.epochs, options.learning_rate, options.seed
    )
    print(json.dumps({"seconds": seconds, **score_glue(task, dev.labels, answers)}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--backends", nargs="+", default=["torch"])
    parser.add_argument("--sides", nargs="+", default=list(SIDES), choices=list(SIDES))
    parser.add_argument("--data", default=str(DATA))
    parser.add_argument("--num_rows", type=int, default=10000)
    parser.add_argument("--dev_rows", type=int, default=10000)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--learning_rate", type=float, default=4e-5)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        run_side(options.child, options)
        return

    pairs = list_pairs(options.sides, options.backends, peers=["transformers"])
    flags = ("data", "num_rows", "dev_rows", "epochs", "learning_rate")
    arguments = repeat_flags(options, flags)
    print(f"{describe_run(1)} Dev files; seconds of the training.\n")
    print("| task | metric | side | backend | each seed | mean | spread | seconds |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for task in options.tasks:
        measured = measure_seeds(__file__, pairs, options.seeds, [*arguments, "--task", task])
        for metric in (name for name in measured[pairs[0]] if name != "seconds"):
            for pair in pairs:
                seconds = statistics.median(measured[pair]["seconds"])
                print(
                    f"| {task} | {metric} | {' | '.join(pair)} | "
                    f"{describe_seeds(measured[pair][metric])} | {seconds:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
