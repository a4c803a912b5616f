"""Saves an ensemble as one folder, and opens it."""

import json
from pathlib import Path

import keras

from keras_bert_suite.files.atomic_directory import atomic_directory
from keras_bert_suite.files.messages import reading
from keras_bert_suite.files.model_card import write_card
from keras_bert_suite.heads.base.card_facts import list_facts
from keras_bert_suite.heads.base.ensemble_checks import check_tasks

#: The file of a saved ensemble beside the folders of its tasks, "0", "1" and so on.
ENSEMBLE_FILE = "ensemble.json"


def write_ensemble(ensemble, folder):
    """Writes a preset for each task, and `ensemble.json`: aside, and then renamed."""
    check_tasks(ensemble.tasks)  # A task may have got thresholds of its own since.
    classes = [keras.saving.get_registered_name(type(task)) for task in ensemble.tasks]
    with atomic_directory(folder) as directory:
        for number, task in enumerate(ensemble.tasks):
            task.save_to_preset(directory / str(number))
        text = json.dumps({"tasks": classes, **ensemble.get_settings()}, indent=2)
        (directory / ENSEMBLE_FILE).write_text(text + "\n", "utf-8")
        write_card(directory, list_facts(ensemble))


def check_no_ensemble(preset):
    """Raises a ValueError if the preset that a task is opened from is the folder of an ensemble."""
    if (Path(preset).expanduser() / ENSEMBLE_FILE).is_file():
        raise ValueError(
            f"{preset} is the folder of an ensemble. Open it by Ensemble.from_preset, or one of "
            f"its tasks: {preset}/0, {preset}/1 and so on."
        )


def read_ensemble(folder, **kwargs):
    """(list of tasks, dict of the settings) of a folder; see `Ensemble.from_preset`."""
    folder = Path(folder).expanduser()
    file = folder / ENSEMBLE_FILE
    if not file.is_file():
        raise FileNotFoundError(
            f"{file} is missing, so {folder} is no ensemble. Open a task by `from_preset` of its "
            "class."
        )
    with reading(file):
        settings = dict(json.loads(file.read_bytes()))
        names = list(settings.pop("tasks"))
        if {"weights", "average"} - {*settings}:
            raise KeyError("weights or average")
    tasks = []
    for number, name in enumerate(names):
        task_cls = keras.saving.get_registered_object(name)
        if task_cls is None:
            raise ValueError(
                f"{file} names the class {name!r} of tasks[{number}], which is not known. If the "
                "class is yours, import its module first."
            )
        tasks.append(task_cls.from_preset(folder / str(number), **kwargs))
    return tasks, settings
