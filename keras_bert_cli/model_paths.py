"""Checks the paths of models and corpora before a framework is imported."""

import hashlib
import os
import zipfile
from pathlib import Path

from .command_flags import UsageError

#: The files of a folder that `open_runtime` opens.
RUNTIME_FILES = ("model.onnx", "model.xml")

#: A folder with any of these files is a model: a checkpoint, a preset or an export.
MODEL_FILES = (
    "ensemble.json",
    *("config.json", "bert_config.json", "modules.json", "saved_model.pb", "*.index"),
    "*weights.hdf5",
    *RUNTIME_FILES,
)


#: The files of a folder of `save_adapter`, and of one of peft.
ADAPTER_FILE, PEFT_FILE = "adapter.json", "adapter_config.json"


def check_model(path):
    """Checks that there is a model at a path, before a framework is imported.

    It is a `.keras` file, the folder of a preset, of a checkpoint or of a SavedModel, the prefix of
    a TensorFlow checkpoint, or `hf://owner/name`.
    """
    if "://" in path:
        return
    place = Path(path)
    if is_adapter(path):
        raise ValueError(
            f"{path} holds an adapter, and not the model that it was trained on. keras-bert "
            "predict, evaluate, export, embed and search take it with --base"
        )
    if (place / PEFT_FILE).is_file():
        raise ValueError(
            f"{path} is a folder of peft, which does not name labels. Build its task in Python, "
            "such as task = TextClassifier.from_preset(base, label_names=[...]), call "
            f"task.load_adapter({path!r}), and save the task"
        )
    if place.is_dir():
        if any(any(place.glob(pattern)) for pattern in MODEL_FILES):
            return
        raise FileNotFoundError(
            f"{path} holds no model. Pass the folder that directly holds the files of the model: "
            "the folder `model` of a finished run, or a version of a SavedModel."
        )
    if place.suffix == ".keras" and place.is_file() and not zipfile.is_zipfile(place):
        raise ValueError(f"{path} is damaged, or was not written by Keras: it is no zip archive.")
    if place.is_file() or place.with_name(place.name + ".index").is_file():
        return
    raise FileNotFoundError(
        f"{path} does not exist. To download a model from the Hugging Face Hub, pass "
        "hf://owner/name."
    )


def define_base_flag(flags):
    """Defines --base."""
    explanation = (
        "The checkpoint that the adapter of --model was trained on, if --model is a folder that "
        "keras-bert finetune --adapter wrote. Default: the hf://... that this folder names."
    )
    flags.path("base", None, explanation)


def is_adapter(path):
    """Whether a folder holds an adapter and its head, and not their base."""
    return (Path(path) / ADAPTER_FILE).is_file()


def check_models(values, paths):
    """Checks paths of models, of which some may be adapters on --base.

    Raises:
        UsageError: if none is an adapter, and there is a --base.
    """
    adapters = [path for path in paths if is_adapter(path)]
    if values.base and not adapters:
        raise UsageError(
            f"--base is for the folder of an adapter, which has {ADAPTER_FILE}, got --model "
            f"{', '.join(paths)}"
        )
    for path in paths:
        if path not in adapters:
            check_model(path)
    if values.base:
        check_model(values.base)


def take_models(values):
    """Checks the paths of --model, of which several are an ensemble.

    `values.models` then has the list of them, and `values.model` the text that names them.
    """
    values.models = values.model
    values.model = ", ".join(values.models)
    check_models(values, values.models)
    for path in values.models:
        if len(values.models) > 1 and (is_saved_model(path) or is_runtime_folder(path)):
            raise UsageError(
                f"--model {path} is an export, which has no mean with others. Pass the model that "
                "it was exported from, or export the ensemble"
            )


def digest_corpus(path):
    """The SHA-256 of the manifest of a prepared corpus, before a framework is imported.

    The manifest has the checksums of all shards. So corpora with the same manifest are the same.
    The absence of a finished corpus is a FileNotFoundError.
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


def is_runtime_folder(path):
    """Whether a folder holds a model for ONNX Runtime or OpenVINO."""
    # Checkpoints may have a model.onnx beside their weights.
    return (Path(path) / "task.json").is_file() and any(
        (Path(path) / name).is_file() for name in RUNTIME_FILES
    )


def check_input(path):
    """Raises a `FileNotFoundError` if there is no file at a path, which may be "-"."""
    if path != "-":
        os.stat(path)
