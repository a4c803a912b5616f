"""Smaller MiniLMs on STS-B and SST-2: layers dropped, and distilled by each method.

    python benchmarks/distillation.py --seeds 0 1 2                     # hours
    python benchmarks/distillation.py --num_rows 64 --dev_rows 64 --epochs 1 --teacher_epochs 1 \\
        --layers 1 --tasks sst2                                         # to see that it runs

MiniLM (six layers, 384 wide, uncased) is fine-tuned on a task once, with seed 0, and is the teacher
of all students. A student has evenly spaced layers of the teacher, and its head. It is trained as
the teacher was:

- `dropped`: on the labels alone;
- `outputs`: on the labels and the outputs of the teacher, with equal weights;
- `distilbert`: the same at a temperature of 2, where there is one, with the cosine of the last
  states;
- `tinybert`: half of the epochs on hidden states and attention scores alone, then on the outputs,
  or on numbers on the labels;
- `minilm`, `minilm-v2`: `outputs` with the relations of the last layers;
- `theseus`: on the labels, in the place of the teacher's layers, until two thirds of the steps.

At most `--num_rows` rows of the training file, the first, and `--dev_rows` of the dev file, at most
128 tokens, AdamW with bias correction, weight decay 0.01, linear warm-up over a tenth of the steps.
Each side runs in a process of its own. The score is Spearman's correlation on STS-B and the
accuracy on SST-2, of the dev file after the last epoch. The published shape, of an embedder that
was distilled on other data: 85.2 with 6 of 12 layers of stsb-roberta-base, 84.4 with 3, 83.3 with
2, 80.9 with 1. `--folder` keeps the teachers, and `--data` has the folder glue.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from harness.result_tables import COST, describe_run, describe_seeds, format_cells, format_table
from harness.side_flags import list_pairs, parse_training_flags
from harness.side_runs import report, run_in_turn
from peer_recipes import find_minilm
from text_classification import SEQUENCE_LENGTH, read_task

METRICS = {"stsb": "spearman", "sst2": "accuracy"}
SIDES = ("dropped", "outputs", "distilbert", "tinybert", "minilm", "minilm-v2", "theseus")


def make_optimizer(options):
    import keras_bert_suite as kbs

    return kbs.AdamW(kbs.LinearWarmupDecay(options.learning_rate), bias_correction=True)


def train(task, rows, options, technique=None, epochs=None):
    """The seconds of a training."""
    task.compile(make_optimizer(options), technique=technique)
    begin = time.perf_counter()
    task.fit(rows.x, rows.y, options.batch_size, epochs or options.epochs, verbose=0)
    return time.perf_counter() - begin


def list_stages(side, teacher, student, num_steps, epochs):
    """The stages of a training: pairs of a technique and its epochs."""
    import keras_bert_suite as kbs

    is_number = student.problem_type == "regression"
    # The squared distance of numbers has no temperature.
    temperature = 1.0 if is_number else 2.0
    relations = {"minilm": ["qk", "vv"], "minilm-v2": ["qq", "kk", "vv"]}
    if side == "dropped":
        return [(None, epochs)]
    if side == "theseus":
        slope = 1.05 * 0.7 / max(2 * num_steps // 3, 1)  # A step before two thirds it is 1.
        return [(kbs.Theseus(teacher, 0.3, slope=slope), epochs)]
    if side == "tinybert":
        first = max(epochs // 2, 1)
        terms = [kbs.HiddenStates(), kbs.AttentionScores()]
        inner = kbs.Distillation(teacher, alpha=0.0, label_weight=0.0, terms=terms)
        outputs = None if is_number else kbs.Distillation(teacher, alpha=1.0)
        return [(inner, first), (outputs, max(epochs - first, 1))]
    terms = []
    if side == "distilbert":
        terms = [kbs.HiddenStates("last", distance="cosine")]
    elif side in relations:
        terms = [kbs.AttentionRelations(relations[side])]
    temperature = temperature if side == "distilbert" else 1.0
    return [(kbs.Distillation(teacher, temperature, alpha=0.5, terms=terms), epochs)]


def open_teacher(path, task, options):
    """The teacher of a task, which the first side trains."""
    import keras

    import keras_bert_suite as kbs

    if not path.exists():
        keras.utils.set_random_seed(0)
        teacher = kbs.TextClassifier.from_preset(
            options.checkpoint,
            label_names=task.label_names,
            problem_type=task.problem_type,
            sequence_length=SEQUENCE_LENGTH,
        )
        train(teacher, task.train.take(options.num_rows), options, epochs=options.teacher_epochs)
        teacher.save_to_preset(path)
    return kbs.TextClassifier.from_preset(path)


def run_side(side, options):
    """Measures one side in this process and prints the figures as JSON."""
    import keras

    task = read_task(options.task, Path(options.data))
    rows, dev = task.train.take(options.num_rows), task.dev.take(options.dev_rows)
    teacher = open_teacher(Path(options.folder) / options.task, task, options)
    scores = {}
    seconds = 0.0
    metric = METRICS[options.task]
    scores[teacher.backbone.num_layers] = measure(task, teacher, dev)[metric]
    for number in options.layers:
        keras.utils.set_random_seed(options.seed)
        step = teacher.backbone.num_layers // number
        student = teacher.keep_layers(range(0, number * step, step))
        num_steps = options.epochs * -(-len(rows) // options.batch_size)
        for technique, epochs in list_stages(side, teacher, student, num_steps, options.epochs):
            seconds += train(student, rows, options, technique, epochs)
        scores[number] = measure(task, student, dev)[metric]
    report({"seconds": seconds, "scores": scores})


def measure(task, classifier, dev):
    return task.score(dev.y, classifier.predict_labels(dev.x, verbose=0))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=list(METRICS), choices=list(METRICS))
    parser.add_argument("--layers", nargs="+", type=int, default=[3, 2], help="of the students")
    parser.add_argument("--checkpoint", help="a Hugging Face directory; MiniLM by default")
    parser.add_argument("--data", default="data")
    parser.add_argument("--folder", help="of the teachers; a temporary one by default")
    parser.add_argument("--num_rows", type=int, default=10000)
    parser.add_argument("--dev_rows", type=int, default=10000)
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--teacher_epochs", type=int, default=5)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    options = parse_training_flags(parser, SIDES, ["torch"], 5, 4e-5)
    options.checkpoint = options.checkpoint or find_minilm()
    if options.child:
        run_side(options.child, options)
        return

    pairs = list_pairs(options.sides, options.backends, peers=[])
    rows, measured = [], {}
    rounds = [["--seed", seed] for seed in options.seeds]
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or temporary
        for task in options.tasks:
            command = [*sys.argv, "--task", task, "--folder", folder]
            measured = run_in_turn(command, pairs, rounds)
            for pair, figures in measured.items():
                for number in figures["scores"][0]:
                    scores = describe_seeds([scores[number] for scores in figures["scores"]])
                    rows.append([task, METRICS[task], number, *pair, *scores])
                    rows[-1] += format_cells(figures, COST)
    print(f"{describe_run(measured, len(options.seeds))}\n")
    print("Dev files; seconds of the training of all students of a side.\n")
    headings = ["task", "metric", "layers", "side", "backend", "each seed", "mean", "spread"]
    print(format_table([*headings, *COST], rows))


if __name__ == "__main__":
    main()
