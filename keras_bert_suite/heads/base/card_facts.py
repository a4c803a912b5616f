"""The facts of a model card of a task."""

from pathlib import Path
from typing import Any

import keras
import keras_hub
import numpy as np

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.files.model_card import find_licence, name_package
from keras_bert_suite.models.encoder import Encoder

#: More labels are counted, and not listed.
_MOST_LABELS = 50


def list_facts(task: keras_hub.models.Task) -> dict[str, str]:
    """The rows of the card of a task, ours or KerasHub's, in order: dict of str -> str.

    `task.card` has facts that the model itself lacks.
    """
    card = find_card(task)
    facts = {
        "task": type(task).__name__,
        "labels": _list_labels(getattr(task, "label_names", None) or ()),
        **_list_settings(task),
        "encoder": _describe_encoder(task.backbone),
        "texts": _describe_texts(task.preprocessor),
        **{name: _format(value) for name, value in card.items()},
        "versions": f"{name_package()}, Keras {keras.__version__}, "
        f"KerasHub {keras_hub.__version__}",
    }
    return {name: text for name, text in facts.items() if text}


def find_card(task: keras_hub.models.Task) -> dict[str, Any]:
    """`task.card`, with the last epoch of a `fit` in this process, and its backend."""
    card = dict(getattr(task, "card", None) or {})
    history = getattr(task, "history", None)
    if history is not None and history.epoch:
        last = {name: values[-1] for name, values in history.history.items() if values}
        numbers = {name: float(value) for name, value in last.items() if np.ndim(value) == 0}
        epoch = history.epoch[-1] + 1
        card["last epoch"] = {"epoch": epoch, **numbers, "backend": keras.config.backend()}
    return card


def describe_base(preset: PathLike, folder: PathLike) -> dict[str, str]:
    """The facts that `from_preset` adds to a card: the base of a new task, and its known licence.

    The card names the folder of a path, and not its parents. `folder` has the files.
    """
    base = str(preset) if "://" in str(preset) else Path(preset).absolute().name
    licence = find_licence(folder)
    named = {"licence of the base": licence} if licence else {}
    return {"base": base, **named}


def _list_labels(names):
    more = len(names) - _MOST_LABELS
    return ", ".join(names[:_MOST_LABELS]) + (f" and {more} more" if more > 0 else "")


def _list_settings(task):
    """The settings that decide between answers."""
    names = ("problem_type", "thresholds", "no_answer_threshold", "pooling")
    config = task.get_config()
    return {
        name.replace("_", " "): _format(config[name])
        for name in names
        if isinstance(config.get(name), (str, float, list, tuple))
    }


def _describe_encoder(backbone):
    layers = Encoder.of(backbone).num_layers
    depth = f"{layers} layer{'s' * (layers != 1)}, " if isinstance(layers, int) else ""
    size = f"{backbone.count_params():,} weights"
    return f"{type(backbone).__name__}, {depth}{size}, {backbone.dtype_policy.name}"


def _describe_texts(preprocessor):
    tokenizer = getattr(preprocessor, "tokenizer", None)
    if tokenizer is None:
        return ""
    length = getattr(preprocessor, "sequence_length", None)
    size = f"{type(tokenizer).__name__} of {tokenizer.vocabulary_size():,} tokens"
    return size + (f", at most {length} tokens in a row" if length else "")


def _format(value):
    """A value of JSON as text for a person."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_format(item)}" for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_format, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)
