"""Classes, sets of labels and numbers: our TextClassifier and transformers, same recipe.

    python benchmarks/text_classification.py --seeds 0 1 2           # GLUE, hours
    python benchmarks/text_classification.py --tasks stsb --num_rows 320 --dev_rows 100 --epochs 1
    python benchmarks/text_classification.py --tasks goemotions --epochs 2 --learning_rate 1e-4
    python benchmarks/text_classification.py --tasks chnsenticorp --checkpoint CHINESE_BERT

Every side fine-tunes the same checkpoint, by default MiniLM (six layers, 384 wide, uncased), on at
most `--num_rows` rows of the training file of a task, the first, and answers at most `--dev_rows`
rows of the dev file after the last epoch. The tasks are CoLA, SST-2, MRPC, STS-B and RTE of GLUE,
whose metrics are those of the leaderboard; GoEmotions, comments with sets of 28 labels, whose
thresholds are chosen on every second row of the dev file and scored on the others; and
ChnSentiCorp, Chinese reviews of two classes.

Batches of `--batch_size` rows of similar length, at most 128 tokens, AdamW with bias correction,
weight decay 0.01, gradients clipped to norm 1, linear warm-up over a tenth of the steps and linear
decay, dropout as in the checkpoint. Each side runs in a process of its own. The new layer has other
random weights on each side. `--data` is a folder with the folders glue, multilabel/GoEmotions and
zh/ChnSentiCorp, each with the official files.
"""

import argparse
import dataclasses
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from harness.result_tables import (
    COST,
    describe_run,
    describe_seeds,
    format_cells,
    format_table,
)
from harness.side_flags import list_pairs, parse_training_flags
from harness.side_runs import report, run_in_turn
from peer_recipes import find_minilm, find_torch_device, make_adamw, take_step

DATA = Path("data")
TASKS = ("cola", "sst2", "mrpc", "stsb", "rte", "goemotions", "chnsenticorp")
SEQUENCE_LENGTH = 128


@dataclasses.dataclass(frozen=True)
class Task:
    """The rows of a task and its metrics.

    Attributes:
        label_names: list of C names; for numbers the name of the target.
        problem_type: str, as for `TextClassifier`.
        train, dev: `Examples`.
        score: function(labels, answers) to a dict of the metrics. Answers are what
            `predict_labels` returns, but logits (N, C) for sets of labels.
    """

    label_names: list
    problem_type: str
    train: object
    dev: object
    score: Callable


def read_task(name, data):
    """The `Task` of a name in `TASKS`."""
    if name == "goemotions":
        return read_emotions(data / "multilabel" / "GoEmotions")
    if name == "chnsenticorp":
        return read_reviews(data / "zh" / "ChnSentiCorp")

    import keras_bert_suite as kbs
    from keras_bert_suite.data.readers.glue import GLUE_TASKS

    sys.path.append(str(Path(__file__).resolve().parents[1] / "examples"))
    from glue_scores import score_glue

    task = GLUE_TASKS[name]
    return Task(
        list(task.label_names),
        task.problem_type,
        kbs.read_glue(data / "glue", name),
        kbs.read_glue(data / "glue", name, task.dev["dev"]),
        lambda labels, answers: score_glue(task, labels, answers),
    )


def read_emotions(folder):
    from keras_bert_suite.heads.base.label_scores import score_label_sets
    from keras_bert_suite.heads.base.label_sets import choose_thresholds

    names = (folder / "labels.txt").read_text(encoding="utf-8").split()

    def score(labels, logits):
        wanted = np.array([[n in row for n in names] for row in labels])
        probabilities = 1 / (1 + np.exp(-np.array(logits, "float64")))
        thresholds = choose_thresholds(wanted[::2], probabilities[::2])
        scores = score_label_sets(wanted[1::2], probabilities[1::2] > thresholds, names)
        return {metric: scores[metric] for metric in ("micro_f1", "macro_f1")}

    def read_labels(field):
        return [names[int(number)] for number in field.split(",")]

    train, dev = (read_rows(folder / f"{part}.tsv", read_labels) for part in ("train", "dev"))
    return Task(names, "multi_label_classification", train, dev, score)


def read_reviews(folder):
    def score(labels, answers):
        return {"accuracy": sum(map(str.__eq__, labels, answers)) / len(labels)}

    train, dev = (read_rows(folder / f"{part}.tsv", str) for part in ("train", "dev"))
    return Task(["negative", "positive"], "single_label_classification", train, dev, score)


def read_rows(path, read_label):
    """`Examples` of a file with a text, a tab and a label in each line."""
    from keras_bert_suite import Examples

    lines = path.read_text(encoding="utf-8").split("\n")
    fields = [line.split("\t") for line in lines if line]
    return Examples(str(path), [row[0] for row in fields], [read_label(row[1]) for row in fields])


def run_ours(task, train, dev, options):
    import keras

    import keras_bert_suite as kbs

    keras.utils.set_random_seed(options.seed)
    classifier = kbs.TextClassifier.from_preset(
        options.checkpoint,
        label_names=task.label_names,
        problem_type=task.problem_type,
        sequence_length=SEQUENCE_LENGTH,
    )
    schedule = kbs.LinearWarmupDecay(options.learning_rate)
    classifier.compile(kbs.AdamW(schedule, bias_correction=True))
    begin = time.perf_counter()
    classifier.fit(
        train.x, train.y, batch_size=options.batch_size, epochs=options.epochs, verbose=0
    )
    seconds = time.perf_counter() - begin
    if task.problem_type == "multi_label_classification":
        return seconds, classifier.predict(dev.x, verbose=0)
    return seconds, classifier.predict_labels(dev.x, verbose=0)


def run_transformers(task, train, dev, options):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from keras_bert_suite.data.row_orders import shuffled_by_length

    torch.manual_seed(options.seed)
    size = options.batch_size
    tokenizer = AutoTokenizer.from_pretrained(options.checkpoint)
    model = AutoModelForSequenceClassification.from_pretrained(
        options.checkpoint, num_labels=len(task.label_names), problem_type=task.problem_type
    )
    device = find_torch_device()
    model.to(device)
    steps = -(-len(train) // size) * options.epochs
    adamw = make_adamw(model, options.learning_rate, steps)

    def pack(rows, numbers):
        columns = [[column[number] for number in numbers] for column in rows.columns]
        return tokenizer(
            *columns, truncation=True, max_length=SEQUENCE_LENGTH, padding=True, return_tensors="pt"
        ).to(device)

    def encode(labels):
        if task.problem_type == "regression":
            return torch.tensor(labels)
        if task.problem_type == "multi_label_classification":
            return torch.tensor([[float(n in row) for n in task.label_names] for row in labels])
        return torch.tensor([task.label_names.index(label) for label in labels])

    def decode(row):
        if task.problem_type == "regression":
            return float(row[0])
        if task.problem_type == "multi_label_classification":
            return row
        return task.label_names[row.argmax()]

    def lengths(rows):
        return [sum(map(len, texts)) for texts in zip(*rows.columns, strict=True)]

    order = shuffled_by_length(lengths(train), size, seed=options.seed)
    begin = time.perf_counter()
    model.train()
    for epoch in range(options.epochs):
        for batch in np.array_split(order(epoch), range(size, len(train), size)):
            labels = encode([train.y[number] for number in batch]).to(device)
            take_step(model, model(**pack(train, batch), labels=labels).loss, *adamw)
    seconds = time.perf_counter() - begin

    model.eval()
    answers = [None] * len(dev)
    order = np.argsort(lengths(dev))
    with torch.inference_mode():
        for batch in np.array_split(order, range(size, len(dev), size)):
            logits = model(**pack(dev, batch)).logits.cpu().numpy()
            for number, row in zip(batch, logits, strict=True):
                answers[number] = decode(row)
    return seconds, answers


SIDES = {"ours": run_ours, "transformers": run_transformers}


def run_side(side, options):
    """Measures one side in this process and prints the figures as JSON."""
    task = read_task(options.task, Path(options.data))
    train, dev = task.train.take(options.num_rows), task.dev.take(options.dev_rows)
    seconds, answers = SIDES[side](task, train, dev, options)
    report({"seconds": seconds, "scores": task.score(dev.y, answers)})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=TASKS[:5], choices=TASKS)
    parser.add_argument("--checkpoint", help="a Hugging Face directory; MiniLM by default")
    parser.add_argument("--data", default=str(DATA))
    parser.add_argument("--num_rows", type=int, default=10000)
    parser.add_argument("--dev_rows", type=int, default=10000)
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    options = parse_training_flags(parser, SIDES, ["torch"], 5, 4e-5)
    options.checkpoint = options.checkpoint or find_minilm()
    if options.child:
        run_side(options.child, options)
        return

    pairs = list_pairs(options.sides, options.backends, peers=["transformers"])
    rows, measured = [], {}
    rounds = [["--seed", seed] for seed in options.seeds]
    for task in options.tasks:
        measured = run_in_turn([*sys.argv, "--task", task], pairs, rounds)
        for metric in measured[pairs[0]]["scores"][0]:
            for pair, figures in measured.items():
                scores = describe_seeds([scores[metric] for scores in figures["scores"]])
                rows.append([task, metric, *pair, *scores, *format_cells(figures, COST)])
    print(f"{describe_run(measured, len(options.seeds), ['transformers'])}\n")
    print("Dev files; seconds of the training.\n")
    headings = ["task", "metric", "side", "backend", "each seed", "mean", "spread"]
    print(format_table([*headings, *COST], rows))


if __name__ == "__main__":
    main()
