"""Says beside an exported model which task it answers, so that a client need not be told."""

import dataclasses
import json
import pathlib
from typing import Any

import keras_hub

from keras_bert_suite.files.model_card import name_package, write_card
from keras_bert_suite.heads.base.card_facts import list_facts

#: The file in each exported folder.
DESCRIPTION_FILE = "task.json"

#: The file beside an exported model that takes packed texts.
PACKING_FILE = "packing.json"

#: The settings of tasks that a client needs: names of arguments of their constructors.
_SETTINGS = (
    *("problem_type", "thresholds", "no_answer_threshold", "max_answer_length", "scheme"),
    *("max_windows", "stride", "query_length", "prompts", "top_k", "markers", "attributes"),
    "word_cutting",
)


def describe_task(task: keras_hub.models.Task) -> dict[str, Any]:
    """What a client must know of a task: dict of values that JSON can hold.

    It has the classes of the task, its encoder and its tokenizer, `labels` in the order of the
    probabilities, `input_names` of the texts of a row, the `sequence_length` to which texts are
    cut, the version of this package, and of `problem_type`, `thresholds`, `no_answer_threshold`,
    `max_answer_length`, `scheme`, `max_windows`, `stride`, `query_length`, `prompts`, `top_k`,
    `markers`, `attributes` and `word_cutting` those that the task has. `encoder_inputs` are the
    fields of its `EncoderInputs`, `crf` the start scores, end scores and transitions of a
    `CrfTokenClassifier`, and `direction` is that of a `MaskedLM` that sees one side of a mask.
    """
    config = task.get_config()
    settings = {name: config[name] for name in _SETTINGS if config.get(name) is not None}
    if not getattr(task, "pools_prompts", True):
        settings.pop("prompts", None)  # The model's inputs do not say which tokens are of a prompt.
    settings |= _describe_parts(task)
    labels = {"labels": list(task.label_names)} if hasattr(task, "label_names") else {}
    return {
        "task": type(task).__name__,
        "encoder": type(task.backbone).__name__,
        **labels,
        **settings,
        "input_names": task.input_names and list(task.input_names),
        "tokenizer": type(getattr(task.preprocessor, "tokenizer", None)).__name__,
        "sequence_length": getattr(task.preprocessor, "sequence_length", None),
        "package": name_package(),
    }


def _describe_parts(task):
    """What the data and the answers of a task have, beside the settings of its constructor."""
    encoder = task.data.encoder
    encoder = {**dataclasses.asdict(encoder), "names": list(encoder.names)}
    described = {"encoder_inputs": encoder}
    if hasattr(task.answers, "read_scores"):
        described["crf"] = [scores.tolist() for scores in task.answers.read_scores()]
    if getattr(task.data, "direction", None) is not None:
        described["direction"] = task.data.direction
    return described


def write_description(task: keras_hub.models.Task, directory: pathlib.Path) -> None:
    """Writes `task.json`, in which all numbers are finite, and the model card."""
    text = json.dumps(describe_task(task), indent=2, ensure_ascii=False, allow_nan=False)
    (directory / DESCRIPTION_FILE).write_text(text + "\n", "utf-8")
    write_card(directory, list_facts(task))
