"""Opens tasks in all formats, and exports them."""

import os
import zipfile
from pathlib import Path

from keras_bert_suite.checkpoints.head_types.records import HEAD_TYPES
from keras_bert_suite.files import messages
from keras_bert_suite.serving import versions

from .model_paths import find_class
from .outputs import write_output

#: The tasks that `keras-bert pretrain` trains.
PRETRAINERS = ("Pretrainer", "ElectraPretrainer")

#: The tasks that can be opened to be evaluated, exported or asked.
TASKS = {head.task for head in HEAD_TYPES} - {*PRETRAINERS}


def open_task(path, wanted=None):
    """Loads a task.

    Args:
        path: str. A `.keras` file, the folder of a preset or of a checkpoint with a head, or
            `hf://owner/name`. A `Pretrainer` is opened as a `MaskedLM`, and so is the generator of
            an `ElectraPretrainer` if a "MaskedLM" is wanted.
        wanted: str, a class in `TASKS`, or None to open whatever task there is.

    Raises:
        FileNotFoundError: if there is nothing at `path`.
        ValueError: if the model there is not such a task, or its files are damaged.
    """
    import keras_bert_suite as kbs

    found = find_task(path)
    if found == "Pretrainer":
        found = "MaskedLM"
    if found == "ElectraPretrainer" and wanted == "MaskedLM":
        return open_generator(path)
    if found not in TASKS:
        raise ValueError(
            f"{path} has no head, such as a classification layer. Make one with keras-bert "
            f"finetune --checkpoint {path}"
        )
    found_cls = getattr(kbs, found)
    wanted_cls = getattr(kbs, wanted) if wanted else found_cls
    if not path.endswith(".keras"):
        cls = found_cls if issubclass(found_cls, wanted_cls) else wanted_cls
        return cls.from_preset(path)
    with messages.reading(path):
        task = _load_file(path)
    if not isinstance(task, wanted_cls):
        raise ValueError(
            f"{path} holds a {type(task).__name__}, wanted a {wanted_cls.__name__} of "
            "keras_bert_suite."
        )
    return task


def _load_file(path):
    """The model of a `.keras` file."""
    import keras

    if not zipfile.is_zipfile(path):
        raise ValueError(
            f"{path} is damaged, or was not written by Keras: it is not a zip archive. Write it "
            "again, or pass another model."
        )
    try:
        return keras.saving.load_model(path, compile=False)
    except TypeError as error:
        message = str(error).partition(" Full object config")[0]
        raise ValueError(f"{path} cannot be loaded. {message}") from error


def open_generator(path):
    """Loads the generator of an `ElectraPretrainer`, in the folder of a preset, as a `MaskedLM`."""
    import keras_bert_suite as kbs

    pretrainer = kbs.ElectraPretrainer.from_preset(path).make_masked_lm()
    task = kbs.MaskedLM(pretrainer.backbone, preprocessor=pretrainer.preprocessor)
    task.masked_lm.set_weights(pretrainer.masked_lm.get_weights())
    return task


def open_embedder(path):
    """Loads a `TextEmbedder`. Of a checkpoint without a pooling, the vectors are means.

    Args:
        path: str. As for `open_task`, or the folder of any checkpoint of an encoder.

    Raises:
        FileNotFoundError, ValueError: as `open_task`.
    """
    if path.endswith(".keras") or find_task(path) == "TextEmbedder":
        return open_task(path, "TextEmbedder")
    import keras_bert_suite as kbs

    return kbs.TextEmbedder.from_preset(path)


def find_task(path):
    """The class of the task that is saved at a path: one of `TASKS` or of `PRETRAINERS`.

    It is None if there is a backbone without a head.

    Args:
        path: as for `open_task`.

    Raises:
        FileNotFoundError: if there is nothing at `path`.
        ValueError: if it is a `.keras` file of a task that pretrains.
    """
    from keras_bert_suite import checkpoints

    if path.endswith(".keras"):
        if not os.path.isfile(path):
            raise FileNotFoundError(f"{path} does not exist, or is not a file.")
        found = find_class(path)
        if found in PRETRAINERS:
            raise ValueError(
                f"{path} is a .keras file of the class {found}, wanted the folder of a preset. "
                "`save_to_preset` writes one, and a run of keras-bert pretrain has one in `model`."
            )
        return found if found in TASKS else "TextClassifier"
    checkpoint = checkpoints.open_checkpoint(path)
    if checkpoint is not None:
        return checkpoints.find_task(checkpoint)
    file = Path(path) / "task.json"
    if file.is_file():
        # KerasHub's classifiers are read as ours.
        known = (*PRETRAINERS, *TASKS)
        return find_class(path) if find_class(path) in known else "TextClassifier"
    # The class of a preset at an address is found when KerasHub loads it.
    return "TextClassifier" if "://" in path else None


def export_version(task, path, inputs, overwrite=False, max_batch_size=32, precision=None):
    """Writes a version of a SavedModel.

    Args:
        task: a task that can be exported.
        path: str, folder of the model or of a version, as for `export_saved_model`.
        inputs: names of the text inputs.
        overwrite: bool, whether to replace the version.
        max_batch_size, precision: as for `export_saved_model`.

    Returns:
        `pathlib.Path` of the version.
    """
    from keras_bert_suite.serving import export_saved_model

    path = versions.version_path(path)

    def write(aside):
        name = path.absolute().parent.name
        export_saved_model(task, aside, tuple(inputs), max_batch_size, name, precision)

    return write_output(path, write, overwrite, folder=True)
