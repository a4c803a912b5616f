"""Fine-tunes a checkpoint and its adapted model in the same way, and compares their scores."""

import argparse
import dataclasses
import json
import shlex
import statistics
from pathlib import Path
from typing import Any

from keras_bert_suite.files.atomic_file import write_json
from keras_bert_suite.files.checksums import find_digest

from . import finetune
from .command_flags import Flags, UsageError
from .cut_texts import check_length_flag
from .kinds import choose_kind
from .run_settings import FILE_NAME
from .scores import print_table

#: The flags of keras-bert finetune that this command sets itself, or has no use for.
OWN_FLAGS = (
    *("checkpoint", "output", "seed", "export", "devices", "checkpoint_dir"),
    *("errors", "folds"),
)


@dataclasses.dataclass
class Recipe:
    """How both models are fine-tuned.

    Attributes:
        values: `argparse.Namespace`, the flags of keras-bert finetune.
        data: `Kind`.
        train, dev, test: `Examples`; `dev` may be None.
    """

    values: argparse.Namespace
    data: Any
    train: Any
    dev: Any
    test: Any


def read_recipe(values):
    """The `Recipe` of --finetune, or None. The files are read, so that no fault is found late.

    Raises:
        UsageError: if the flags are wrong, or the score would be of no file.
    """
    if values.finetune is None:
        return None
    given = shlex.split(values.finetune)
    for name in OWN_FLAGS:
        if any(flag.partition("=")[0] == f"--{name}" for flag in given):
            raise UsageError(f"--finetune has --{name}, which is not for keras-bert adapt")
    own = ["--checkpoint", values.checkpoint, "--output", values.output]
    flags = Flags("finetune", finetune).parse([*given, *own])
    if not flags.test:
        raise UsageError("--finetune needs --test, the file whose scores are compared")
    data = choose_kind(flags)
    check_length_flag(flags.sequence_length, data)
    files = (path and data.read(path) for path in (flags.train, flags.dev, flags.test))
    return Recipe(flags, data, *files)


def compare(values, recipe, run):
    """Fine-tunes each model with each seed, prints the scores, draws them.

    The scores are kept in a file. So a run that was stopped goes on, also with more seeds.

    Args:
        values: the flags.
        recipe: `Recipe`.
        run: `pathlib.Path`, the folder of the adaptation.
    """
    from .plots import plot_pairs

    models = {"checkpoint": values.checkpoint, "adapted": str(run / "model")}
    file = Path(values.output) / "scores.json"
    scores = read_scores(file, describe_recipe(recipe.values, run), models)
    for seed in range(values.seeds):
        for name, path in models.items():
            if seed == len(scores[name]):
                print(f"seed {seed}, {name}")
                scores[name].append(finetune_once(recipe, path, seed))
                write_json(file, scores)
    runs = [scores[name][: values.seeds] for name in models]
    print_differences(*runs)
    measure = next(iter(runs[0][0]))
    pairs = [[run[measure] for run in of_model] for of_model in runs]
    picture = file.with_suffix(".png")
    plot_pairs(pairs, list(models), f"{measure} of {values.seeds} seeds", picture)
    print(f"wrote {file} and {picture}")


def describe_recipe(flags, run):
    """dict of JSON. Scores with equal descriptions can be compared.

    Args:
        flags: the flags of keras-bert finetune.
        run: as for `compare`.
    """
    left_out = (*finetune.MAY_CHANGE, *OWN_FLAGS, "train")
    kept = {name: value for name, value in vars(flags).items() if name not in left_out}
    files = {
        f"{name} (SHA-256)": find_digest(getattr(flags, name))
        for name in ("train", "dev", "test")
        if getattr(flags, name)
    }
    return {**kept, **files, "adaptation (SHA-256)": find_digest(run / FILE_NAME)}


def read_scores(file, recipe, models):
    """The scores of an earlier run: a list for each model. They are empty after another recipe."""
    if file.is_file():
        found = json.loads(file.read_text("utf-8"))
        if found["recipe"] == recipe:
            return found
    return {"recipe": recipe, **{name: [] for name in models}}


def finetune_once(recipe, checkpoint, seed):
    """dict of the scores of a checkpoint that is fine-tuned with a seed."""
    data, train, dev = recipe.data, recipe.train, recipe.dev
    values = argparse.Namespace(**{**vars(recipe.values), "checkpoint": checkpoint, "seed": seed})
    task = finetune.make_task(values, data, data.find_arguments(train), train)
    data.check(task, recipe.test)
    finetune.train_task(values, data, task, train, dev, None)
    if dev:
        data.complete(task, dev)
    scores = data.score(task, recipe.test)
    return {name: x for name, x in scores.items() if isinstance(x, float)}


def print_differences(before, after):
    """Prints the means and the spreads of the scores of two models, and of their differences.

    The last column says in how many seeds the adapted model was better.

    Args:
        before, after: list of dicts, the scores with each seed. Equal seeds make a pair.
    """
    rows = []
    for name in before[0]:
        pairs = [(old[name], new[name]) for old, new in zip(before, after, strict=True)]
        differences = [new - old for old, new in pairs]
        better = sum(difference > 0 for difference in differences)
        columns = (*map(list, zip(*pairs, strict=True)), differences)
        rows.append([name, *map(format_spread, columns), f"{better} of {len(pairs)}"])
    print_table(["mean±deviation", "checkpoint", "adapted", "difference", "better"], rows)


def format_spread(numbers):
    """The mean and the sample standard deviation.

    >>> format_spread([0.5, 0.7])
    '0.6000±0.1414'
    """
    deviation = f"±{statistics.stdev(numbers):.4f}" if len(numbers) > 1 else ""
    return f"{statistics.mean(numbers):.4f}{deviation}"
