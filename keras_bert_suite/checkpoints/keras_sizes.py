"""Checks the sizes in the configuration of a Keras model before the model is built."""

import io
import math
import zipfile

from keras_bert_suite.checkpoints.model_types.config_values import read_json
from keras_bert_suite.checkpoints.tensor_files import HDF5File
from keras_bert_suite.files.atomic_file import parse_json
from keras_bert_suite.files.messages import reading, shorten

_WEIGHTS = "model.weights.h5"

#: The JSON files of a preset that describe an object of Keras.
_OBJECTS = ("config.json", "task.json", "preprocessor.json", "tokenizer.json")

#: The sizes of tensors in the configuration of a backbone.
_SIZES = ("num_heads", "num_segments", "max_sequence_length")

#: A model of any configuration may have so many numbers: some megabytes.
_LEAST_NUMBERS = 1 << 20

#: Layers may share their weights. A model with more layers needs as many tensors.
_MOST_SHARED_LAYERS = 1000


def check_preset(path):
    """Checks that the files of a preset of Keras can be read, and that they fit together.

    Keras builds a model of any size that a configuration asks for, before it looks at the weights.

    Args:
        path: `pathlib.Path` of the folder.

    Raises:
        ValueError: if a file is damaged, or the model would be larger than its weights.
    """
    for name in _OBJECTS:
        if (path / name).is_file():
            _check_object(read_json(path / name), path / name)
    files = {file.name: HDF5File(file) for file in path.glob("*.weights.h5")}
    if _WEIGHTS in files:
        config = read_json(path / "config.json").get("config", {})
        _check_sizes(config, files[_WEIGHTS].shapes(), path / "config.json")


def check_archive(path):
    """Checks that a `.keras` file can be read, and that its parts fit together.

    Args:
        path: str or path.

    Raises:
        ValueError: as `check_preset`.
    """
    with reading(path), zipfile.ZipFile(path) as archive:
        content = parse_json(archive.read("config.json"))
        # An object of Keras itself has a class name and no registered name.
        _check_object(content, path, "class_name")
        backbone = content["config"].get("backbone")
        if isinstance(backbone, dict):
            _check_object(backbone, path)
            weights = HDF5File(path, io.BytesIO(archive.read(_WEIGHTS)))
            _check_sizes(backbone["config"], weights.shapes(), path)


def _check_object(content, path, key="registered_name"):
    """Raises ValueError unless JSON describes an object of Keras by a name under `key`."""
    name, config = content.get(key), content.get("config", {})
    if not isinstance(name, str) or not isinstance(config, dict):
        raise ValueError(
            f"{path} describes no object of Keras: wanted a str {key!r} and an object "
            f"'config', got {shorten(repr(name))} and {shorten(repr(config))}. Restore the file."
        )


def _check_sizes(config, shapes, path):
    """Raises ValueError if a configuration asks for larger tensors than there are."""
    sizes = {name: value for name, value in config.items() if type(value) is int}
    most = max(_LEAST_NUMBERS, sum(map(math.prod, shapes.values())))
    width = sizes.get("embedding_dim", sizes.get("hidden_dim", 1))
    needed = {
        **{name: sizes.get(name, 1) for name in _SIZES},
        "vocabulary_size x width": sizes.get("vocabulary_size", 1) * width,
        "hidden_dim x intermediate_dim": sizes.get("hidden_dim", 1)
        * sizes.get("intermediate_dim", 1),
    }
    wrong = [name for name, value in needed.items() if value > most]
    if sizes.get("num_layers", 0) > max(len(shapes), _MOST_SHARED_LAYERS):
        wrong.append("num_layers")
    if wrong:
        raise ValueError(
            f"{path} asks for a larger model than its weights are: {', '.join(wrong)} with "
            f"{most:,} numbers in {len(shapes):,} tensors. Use the configuration that came with "
            "the weights."
        )
