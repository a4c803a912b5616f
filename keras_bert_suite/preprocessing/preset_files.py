"""The files of a preset of Keras, on this machine or on a hub."""

import json

import keras
from keras_hub.src.utils.preset_utils import get_file

from keras_bert_suite.annotations import Config

CONFIG_FILE = "config.json"
PREPROCESSOR_CONFIG_FILE = "preprocessor.json"
TOKENIZER_CONFIG_FILE = "tokenizer.json"
TASK_CONFIG_FILE = "task.json"
TASK_WEIGHTS_FILE = "task.weights.h5"


def find_file(preset: str, name: str) -> str | None:
    """The path of a file of a preset, which may be downloaded first; None if there is none."""
    try:
        return get_file(preset, name)
    except FileNotFoundError:
        return None


def read_config(preset: str, name: str) -> Config | None:
    """The configuration of an object in a file of a preset; None if there is no such file."""
    path = find_file(preset, name)
    if path is None:
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def find_class(config: Config) -> type:
    """The class of the object of a configuration. One that is not registered is a ValueError."""
    name = config["registered_name"]
    cls = keras.saving.get_registered_object(name)
    if cls is None and name in ("Functional", "Sequential"):
        return keras.Model
    if cls is None:
        raise ValueError(
            f"There is no registered class {name}. Import the module that registers it, with "
            "`keras.saving.register_keras_serializable`, before you open the preset."
        )
    return cls
