"""Says beside an exported model which task it answers, so that a client need not be told."""

import dataclasses
import json
import pathlib
from typing import Any

import keras_hub

from keras_bert_suite.files.model_card import name_package, write_card
from keras_bert_suite.heads.base.card_facts import list_facts
from keras_bert_suite.heads.base.ensemble import Ensemble, members_of

#: The file in each exported folder.
DESCRIPTION_FILE = "task.json"

#: The file beside an exported model that takes packed texts.
PACKING_FILE = "packing.json"


def describe_task(task: keras_hub.models.Task) -> dict[str, Any]:
    """The facts of a task for a client: dict of values that JSON can hold.

    It has the classes of the task, its encoder and its tokenizer; `head`, the `Head` that makes its
    parts; `labels` in the order of the probabilities; `input_names` of the texts of a row; the
    `sequence_length` to which texts are cut; `encoder_inputs`, the fields of its `EncoderInputs`;
    the version of this package; from the head: the `settings` that are not None, and the result of
    `describe`; and of an `Ensemble`, the first of its tasks and as `ensemble` its weights.
    """
    config, encoder = task.get_config(), task.data.encoder
    labels = {"labels": list(task.label_names)} if hasattr(task, "label_names") else {}
    return {
        "task": type(members_of(task)[0]).__name__,
        "head": task.HEAD.task,
        "encoder": type(task.backbone).__name__,
        **labels,
        **{name: config[name] for name in task.HEAD.settings if config.get(name) is not None},
        **task.HEAD.describe(task),
        "encoder_inputs": {**dataclasses.asdict(encoder), "names": list(encoder.names)},
        "input_names": task.input_names and list(task.input_names),
        "tokenizer": type(getattr(task.preprocessor, "tokenizer", None)).__name__,
        "sequence_length": getattr(task.preprocessor, "sequence_length", None),
        "package": name_package(),
        **({"ensemble": task.get_settings()} if isinstance(task, Ensemble) else {}),
    }


def write_description(task: keras_hub.models.Task, directory: pathlib.Path) -> None:
    """Writes `task.json`, in which all numbers are finite, and the model card."""
    text = json.dumps(describe_task(task), indent=2, ensure_ascii=False, allow_nan=False)
    (directory / DESCRIPTION_FILE).write_text(text + "\n", "utf-8")
    write_card(directory, list_facts(task))
