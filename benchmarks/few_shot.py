"""Few labelled texts: SetFit and PET beside plain fine-tuning, at 8, 32 and 128 rows of a class.

    OMP_NUM_THREADS=1 KERAS_BACKEND=torch python benchmarks/few_shot.py --seeds 0 1 2
    python benchmarks/few_shot.py --shots 8 --dev_rows 50 --max_pairs 64 --plain_steps 4  # it runs
    python benchmarks/few_shot.py --tasks chnsenticorp --checkpoint CHINESE_EMBEDDER --seeds 0 1 2

Every side begins with the same checkpoint, by default MiniLM (six layers, 384 wide), an embedder,
and reads the same rows: of each class `--shots` rows, which a seed draws from the training file.
The score is that of the task in `text_classification.py`, on the first `--dev_rows` rows of the dev
file. The sides:

- plain: `TextClassifier.fit` with AdamW, bias correction, linear warm-up over a tenth of the steps
  and linear decay, 16 rows a step, at least `--plain_steps` steps; no epoch is cut;
- setfit: `fit_few_shot`, one epoch over at most `--max_pairs` different pairs;
- frozen: `fit_few_shot` without training of the embedder, a logistic regression on its vectors;
- pet: `PatternClassifier.fit` in 4 rows a step, as many rows in all as plain, with one pattern,
  from `--masked_lm`; untrained: the same classifier before the training.

An embedder has no head that guesses words, so PET begins with a second checkpoint. Train it from
the first one on sentences like those of the task, here of film reviews without labels: the new
head alone, then all weights.

    model = kbs.MaskedLM.from_preset(MINILM, sequence_length=64, masking={"rate": 0.2})
    model.backbone.trainable = False
    model.compile(kbs.AdamW(kbs.LinearWarmupDecay(2e-3), bias_correction=True))
    model.fit(sentences[:19_200], batch_size=64)
    model.backbone.trainable = True
    model.compile(kbs.AdamW(kbs.LinearWarmupDecay(2e-4), bias_correction=True))
    model.fit(sentences[19_200:51_200], batch_size=32)
    model.save_to_preset("masked")

A new side is a function in `SIDES`. The time is processor time of the training.
"""

import argparse
import math
import statistics
import time
from pathlib import Path

import keras
import numpy as np
from harness.machine_figures import describe_processor
from harness.result_tables import describe_seeds, format_table
from peer_recipes import find_minilm
from text_classification import read_task

import keras_bert_suite as kbs

BATCH_SIZE = 16


def open_checkpoint(cls, options, **arguments):
    path = options.checkpoint or find_minilm()
    return cls.from_preset(path, sequence_length=options.sequence_length, **arguments)


def fit_plain(texts, labels, label_names, options, seed):
    classifier = open_checkpoint(kbs.TextClassifier, options, label_names=label_names)
    schedule = kbs.LinearWarmupDecay(options.learning_rate)
    classifier.compile(kbs.AdamW(schedule, bias_correction=True))
    epochs = math.ceil(options.plain_steps / math.ceil(len(texts) / BATCH_SIZE))
    classifier.fit(texts, labels, batch_size=BATCH_SIZE, epochs=epochs, verbose=0)
    return classifier


def fit_setfit(texts, labels, label_names, options, seed, epochs=1):
    return kbs.fit_few_shot(
        open_checkpoint(kbs.TextEmbedder, options),
        texts,
        labels,
        label_names=label_names,
        max_pairs=options.max_pairs,
        learning_rate=options.learning_rate,
        batch_size=BATCH_SIZE,
        epochs=epochs,
        seed=seed,
        verbose=0,
    )


def fit_frozen(texts, labels, label_names, options, seed):
    return fit_setfit(texts, labels, label_names, options, seed, epochs=0)


#: Task -> the pattern of PET, and its words for the labels.
PATTERNS = {
    "sst2": ("{text} It was {mask}.", ["bad", "good"]),
    "chnsenticorp": ("{text}总之很{mask}。", ["差", "好"]),
}


def fit_pattern(texts, labels, label_names, options, seed, train=True):
    pattern, words = PATTERNS[options.task]
    classifier = kbs.PatternClassifier.from_preset(
        options.masked_lm,
        pattern=pattern,
        verbalizers=dict(zip(label_names, words, strict=True)),
        sequence_length=options.sequence_length,
    )
    if train:
        rows = options.plain_steps * BATCH_SIZE
        epochs = max(math.ceil(rows / len(texts)), 1)
        schedule = kbs.LinearWarmupDecay(options.learning_rate)
        classifier.compile(kbs.AdamW(schedule, bias_correction=True))
        names = [label_names[label] for label in labels]
        classifier.fit(texts, names, batch_size=4, epochs=epochs, verbose=0)
    return classifier


def open_pattern(texts, labels, label_names, options, seed):
    return fit_pattern(texts, labels, label_names, options, seed, train=False)


#: The name of a side, and its function from (texts, labels, label names, options, seed) to a task
#: with `predict_labels`.
SIDES = {
    "plain": fit_plain,
    "setfit": fit_setfit,
    "frozen": fit_frozen,
    "pet": fit_pattern,
    "untrained": open_pattern,
}


def draw_rows(examples, label_names, shots, seed):
    """(texts, labels) of `shots` rows of each label; labels are names, or ids."""
    labels = np.array([label_names.index(y) if isinstance(y, str) else y for y in examples.y])
    rng = np.random.default_rng(seed)
    rows = []
    for label, name in enumerate(label_names):
        own = np.flatnonzero(labels == label)
        if len(own) < shots:
            raise SystemExit(f"{name!r} has {len(own)} rows, wanted --shots {shots}.")
        rows += rng.choice(own, shots, replace=False).tolist()
    return [examples.x[row] for row in rows], labels[rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--tasks", nargs="+", default=["sst2"], choices=["sst2", "chnsenticorp"])
    parser.add_argument("--sides", nargs="+", default=[*SIDES], choices=SIDES)
    parser.add_argument("--shots", nargs="+", type=int, default=[8, 32, 128])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--checkpoint", default="", help="Default: MiniLM.")
    parser.add_argument("--masked_lm", help="checkpoint of PET, with its masked-LM head")
    parser.add_argument("--dev_rows", type=int, default=872)
    parser.add_argument("--max_pairs", type=int, default=2000)
    parser.add_argument("--plain_steps", type=int, default=100)
    parser.add_argument("--sequence_length", type=int, default=64)
    parser.add_argument("--learning_rate", type=float, default=2e-5)
    options = parser.parse_args()
    if not options.masked_lm and {"pet", "untrained"} & set(options.sides):
        parser.error("pet and untrained want --masked_lm; or name other --sides.")
    tasks = {name: read_task(name, options.data) for name in options.tasks}
    keys = [(n, k, side) for n in tasks for k in options.shots for side in options.sides]
    scores, seconds = {key: [] for key in keys}, {key: [] for key in keys}
    for seed in options.seeds:
        for name, shots, side in keys:
            task, options.task = tasks[name], name
            texts, labels = draw_rows(task.train, task.label_names, shots, seed)
            keras.utils.set_random_seed(seed)
            begin = time.process_time()
            classifier = SIDES[side](texts, labels, task.label_names, options, seed)
            seconds[name, shots, side].append(time.process_time() - begin)
            dev = task.dev.take(options.dev_rows)
            answers = classifier.predict_labels(dev.x, batch_size=64, verbose=0)
            score = next(iter(task.score(dev.y, answers).values()))
            scores[name, shots, side].append(score)
            print(f"seed {seed}, {name}, {shots} rows, {side}: {score:.4f}", flush=True)
    print(f"\n{describe_processor()}, {keras.config.backend()}.\n")
    rows = []
    for key, found in scores.items():
        each, mean, _ = describe_seeds(found, digits=3)
        rows.append([*map(str, key), each, mean, f"{statistics.median(seconds[key]):.0f}"])
    header = ["task", "rows of a class", "side", "score of each seed", "mean", "processor s"]
    print(format_table(header, rows))


if __name__ == "__main__":
    main()
