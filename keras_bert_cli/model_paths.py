"""Checks the paths of models and corpora before a framework is imported."""

import dataclasses
import hashlib
import json
import zipfile
from pathlib import Path

from keras_bert_suite.checkpoints.head_types.records import FINE_TUNED, VECTORS
from keras_bert_suite.files import messages

#: A folder with any of these files is a model: a checkpoint, a preset or a SavedModel.
MODEL_FILES = ("config.json", "bert_config.json", "modules.json", "saved_model.pb", "*.index")


def check_model(path):
    """Checks that there is a model at a path, before a framework is imported.

    Args:
        path: str. A `.keras` file, the folder of a preset, of a checkpoint or of a
            SavedModel, the prefix of a TensorFlow checkpoint, or `hf://owner/name`.

    Raises:
        FileNotFoundError: if there is nothing at `path`, or a folder without a model.
    """
    if "://" in path:
        return
    place = Path(path)
    if place.is_dir():
        if any(any(place.glob(pattern)) for pattern in MODEL_FILES):
            return
        raise FileNotFoundError(
            f"{path} holds no model. Pass the folder that directly holds the files of the model: "
            "the folder `model` of a finished run, or a version of a SavedModel."
        )
    if place.is_file() or place.with_name(place.name + ".index").is_file():
        return
    raise FileNotFoundError(
        f"{path} does not exist. To download a model from the Hugging Face Hub, pass "
        "hf://owner/name."
    )


def digest_corpus(path):
    """The SHA-256 of the manifest of a prepared corpus, before a framework is imported.

    The manifest has the checksums of all shards. So corpora with the same manifest are the same.

    Raises:
        FileNotFoundError: if there is no corpus, or `keras-bert prepare` has not finished it.
    """
    try:
        with _open_manifest(path) as file:
            return hashlib.sha256(file.read()).hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(
            f"{path} holds no finished corpus: there is no manifest.json in it. Make one with "
            "keras-bert prepare; the same command resumes a run that was stopped."
        ) from None


def _open_manifest(path):
    if "://" in path:
        import fsspec

        return fsspec.open(f"{path.rstrip('/')}/manifest.json", "rb")
    return open(Path(path) / "manifest.json", "rb")


def is_saved_model(path):
    """Whether a folder is a SavedModel of TensorFlow."""
    return (Path(path) / "saved_model.pb").is_file()


@dataclasses.dataclass(frozen=True)
class SavedTaskConfig:
    """What a saved task says of itself.

    Attributes:
        class_name: str, such as "TextClassifier". It is the class of ours that opens it.
        config: dict, the arguments of the class; of a checkpoint its `config.json`.
    """

    class_name: str
    config: dict


def read_saved_task(path):
    """Reads the `SavedTaskConfig` of a `.keras` file, a preset or a checkpoint of Hugging Face.

    Args:
        path: as for `check_model`.

    Returns:
        `SavedTaskConfig`, or None if there is no such file, or a backbone without a head.

    Raises:
        ValueError: if the file is damaged.
    """
    with messages.reading(path):
        return _read_saved_task(path)


def _read_saved_task(path):
    if path.endswith(".keras"):
        content = _read_archive(path, "config.json")
    else:
        content = _read_json(Path(path) / "task.json")
    if content is not None:
        return SavedTaskConfig(content.get("class_name"), content.get("config") or {})
    if (Path(path) / "modules.json").is_file():  # of sentence-transformers
        return SavedTaskConfig(VECTORS.task, {})
    config = _read_json(Path(path) / "config.json") or {}
    for name in config.get("architectures") or ():
        for head in FINE_TUNED:
            if str(name).endswith(head.ending):
                return SavedTaskConfig(head.task, config)
    return None


def find_input_names(path):
    """The names of the texts of a saved task, from its configuration, or None.

    Args:
        path: as for `check_model`.
    """
    saved = read_saved_task(path)
    with messages.reading(path):
        names = saved.config.get("input_names") if saved else None
        return tuple(names) if names else None


def find_class(path):
    """The class of a saved task, from its configuration, or None.

    Args:
        path: as for `check_model`.
    """
    saved = read_saved_task(path)
    return saved.class_name if saved else None


def _read_json(file):
    """The content of a JSON file, or None if there is no such file."""
    return json.loads(file.read_bytes()) if file.is_file() else None


def _read_archive(path, name):
    """A JSON file in a `.keras` file, or None if the `.keras` file is damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            return json.loads(archive.read(name))
    except (zipfile.BadZipFile, KeyError, ValueError):
        return None
