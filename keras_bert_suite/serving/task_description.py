"""Says beside an exported model which task it answers, so that a client need not be told."""

import importlib.metadata
import json
import pathlib
from typing import Any

import keras_hub

#: The file in each exported folder.
DESCRIPTION_FILE = "task.json"

#: The settings of tasks that a client needs: names of arguments of their constructors.
_SETTINGS = ("problem_type", "thresholds", "no_answer_threshold", "max_answer_length", "scheme")


def describe_task(task: keras_hub.models.Task) -> dict[str, Any]:
    """What a client must know of a task: dict of values that JSON can hold.

    It has the class of the task and of its encoder, `labels` in the order of the probabilities,
    `input_names` of the texts of a row, the `sequence_length` to which texts are cut, the version
    of this package, and of `problem_type`, `thresholds`, `no_answer_threshold`,
    `max_answer_length` and `scheme` those that the task has.
    """
    config = task.get_config()
    settings = {name: config[name] for name in _SETTINGS if config.get(name) is not None}
    labels = {"labels": list(task.label_names)} if hasattr(task, "label_names") else {}
    return {
        "task": type(task).__name__,
        "encoder": type(task.backbone).__name__,
        **labels,
        **settings,
        "input_names": task.input_names and list(task.input_names),
        "sequence_length": getattr(task.preprocessor, "sequence_length", None),
        "package": _name_package(),
    }


def _name_package():
    """The name of this package with its version, if it is installed and not a checkout alone."""
    try:
        return f"keras_bert_suite {importlib.metadata.version('keras-bert-suite')}"
    except importlib.metadata.PackageNotFoundError:
        return "keras_bert_suite"


def write_description(task: keras_hub.models.Task, directory: pathlib.Path) -> None:
    """Writes `task.json`, in which all numbers are finite."""
    text = json.dumps(describe_task(task), indent=2, ensure_ascii=False, allow_nan=False)
    (directory / DESCRIPTION_FILE).write_text(text + "\n", "utf-8")
