"""Fine-tune a checkpoint on the tasks of GLUE, with several seeds, and score it.

Reads the official files: DATA/CoLA/train.tsv, DATA/MNLI/dev_matched.tsv and so on. --task all takes
the tasks whose files are there, and says which are missing. All tasks have the recipe of Geiping
and Goldstein (2022, https://arxiv.org/abs/2212.14034): 5 epochs in batches of 16, at a learning
rate of 4e-5 with linear decay. --override changes it for one task.

Prints a table of the scores on the dev files after the last epoch: the mean over the seeds and the
standard deviation. Writes these scores to OUTPUT/glue.json. Writes the loss and the scores after
each epoch to OUTPUT/curves.json and OUTPUT/curves.png. For each test file that is there, writes a
file in the form of the GLUE server, such as OUTPUT/submission/seed_0/CoLA.tsv.

If the command was killed, the same command resumes: it does not repeat finished tasks and seeds.

Example:
  keras-bert glue --data glue_data --checkpoint hf://google-bert/bert-base-uncased \\
      --output glue_results
  keras-bert glue --task mrpc --seeds 5 --data glue_data --checkpoint bert-base \\
      --output glue_results --override mrpc.epochs=3
"""

import dataclasses
import hashlib
import itertools
import json
from pathlib import Path

from absl import flags

from .command_flags import DTYPES, UsageError, define_path
from .model_paths import check_model
from .standalone import atomic_file
from .standalone import glue as glue_files

REQUIRED = ("data", "checkpoint", "output")


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How a task is trained. The flags of these names say what the fields mean."""

    epochs: int
    batch_size: int
    learning_rate: float
    warmup_ratio: float
    weight_decay: float
    sequence_length: int
    train_rows: int | None
    bias_correction: bool
    dtype: str


def define_flags(values):
    """Defines the flags of this command."""

    def path(name, explanation):
        define_path(values, name, None, explanation)

    def integer(name, default, explanation, lower_bound=1):
        flags.DEFINE_integer(name, default, explanation, lower_bound, flag_values=values)

    def number(name, default, explanation, upper_bound=None):
        flags.DEFINE_float(name, default, explanation, 0, upper_bound, flag_values=values)

    names = ("all", *glue_files.GLUE_TASKS)
    flags.DEFINE_enum("task", "all", names, "A task of GLUE, or all.", flag_values=values)
    path("data", "Folder with the folders CoLA, SST-2, MRPC, STS-B, QQP, MNLI, QNLI, RTE, WNLI.")
    path("checkpoint", "Folder of a Hugging Face, Google TF1 or own checkpoint, or hf://...")
    path("output", "Folder for the results.")
    integer("seeds", 3, "How often each task is trained, with the seeds 0, 1 and so on.")
    integer("epochs", 5, "Passes over the training file.")
    integer("batch_size", 16, "Batch size, in rows.")
    number("learning_rate", 4e-5, "Peak learning rate.", 1)
    number("warmup_ratio", 0.1, "Share of the steps that are warm-up.", 1)
    number("weight_decay", 0.01, "Weight decay. Biases and norms are not decayed.")
    integer("sequence_length", 128, "Maximum sequence length, in tokens.", 4)
    integer("train_rows", None, "Train on the first N rows of each task only. Default: all.")
    explanation = "Correct the bias of Adam, which is better for small tasks."
    flags.DEFINE_boolean("bias_correction", True, explanation, flag_values=values)
    flags.DEFINE_enum("dtype", "float32", DTYPES, "Precision.", flag_values=values)
    explanation = (
        "A setting of one task, such as rte.learning_rate=2e-5. May be given several times."
    )
    flags.DEFINE_multi_string("override", [], explanation, flag_values=values)


def run(values):
    """Trains what is not finished, and reports."""
    names = list(glue_files.GLUE_TASKS) if values.task == "all" else [values.task]
    recipes = read_recipes(values)
    tasks, missing = glue_files.find_tasks(values.data, names)
    if not tasks:
        raise FileNotFoundError(
            f"{values.data} holds no task of GLUE: {next(iter(missing.values()))} is missing. Pass "
            "the folder that holds the folders CoLA, SST-2 and so on."
        )
    check_model(values.checkpoint)
    output = Path(values.output)
    settings = {task.name: settings_of(values, task, recipes[task.name]) for task in tasks}
    pairs = list(itertools.product(tasks, range(values.seeds)))
    for task, seed in pairs:
        check_result(result_file(output, task, seed), settings[task.name])
    if missing:
        print(f"missing in {values.data}: {', '.join(missing)}")

    from .glue_report import read_results, report
    from .glue_training import read_task, train_task

    # All files are read first, so that a wrong line is found before hours of work.
    data = {task.name: read_task(task, values.data) for task in tasks}
    for task, seed in pairs:
        file = result_file(output, task, seed)
        if file.is_file():
            print(f"{task.name}, seed {seed}: has finished")
            continue
        print(f"{task.name}, seed {seed}: training")
        recipe = recipes[task.name]
        result, predictions = train_task(task, data[task.name], values.checkpoint, recipe, seed)
        folder = output / "submission" / f"seed_{seed}"
        for name, text in predictions.items():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        file.parent.mkdir(parents=True, exist_ok=True)
        # This file is written last: a pair with it has finished.
        atomic_file.write_json(file, {"settings": settings[task.name], **result})
    report(output, tasks, read_results(pairs, output))


def read_recipes(values):
    """dict of the name of a task -> its `Recipe`.

    Raises:
        UsageError: if an override is not of the form TASK.FLAG=VALUE, or its value is wrong.
    """
    fields = [field.name for field in dataclasses.fields(Recipe)]
    recipe = Recipe(**{name: values[name].value for name in fields})
    recipes = dict.fromkeys(glue_files.GLUE_TASKS, recipe)
    for override in values.override:
        setting, _, value = override.partition("=")
        task, _, field = setting.partition(".")
        if task not in recipes or field not in fields or not value:
            raise UsageError(
                f"--override={override}: wanted TASK.FLAG=VALUE, with one of the tasks "
                f"{', '.join(recipes)} and one of the flags {', '.join(fields)}"
            )
        try:
            parsed = values[field].parser.parse(value)
        except ValueError as error:
            raise UsageError(f"--override={override}: {error}") from None
        recipes[task] = dataclasses.replace(recipes[task], **{field: parsed})
    return recipes


def settings_of(values, task, recipe):
    """dict of the settings of a task that its result file holds."""
    train = Path(values.data) / task.folder / "train.tsv"
    with open(train, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "checkpoint": values.checkpoint,
        "train.tsv (SHA-256)": digest,
        **dataclasses.asdict(recipe),
    }


def result_file(output, task, seed):
    """`pathlib.Path` of the file that says how a task was trained with a seed, and its scores."""
    return output / task.name / f"seed_{seed}.json"


def check_result(file, settings):
    """Checks that a result that is there was made with these settings.

    Raises:
        ValueError: if it was made with others, naming each.
    """
    if not file.is_file():
        return
    before = json.loads(file.read_text(encoding="utf-8"))["settings"]
    differences = [
        f"{name} was {before.get(name)!r} and is {settings.get(name)!r}"
        for name in sorted({*before, *settings})
        if before.get(name) != settings.get(name)
    ]
    if differences:
        raise ValueError(
            f"{file} has the result of other settings: {'; '.join(differences)}. Give the same "
            "settings to resume it, choose another --output, or delete the file."
        )
