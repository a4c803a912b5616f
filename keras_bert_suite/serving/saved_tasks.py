"""Opens tasks in all formats.

The command line loads this file before Keras is imported.
"""

import json
from pathlib import Path

from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.checkpoints.head_types.records import HEAD_TYPES
from keras_bert_suite.files import messages

#: The tasks that `keras-bert pretrain` trains.
PRETRAINERS = ("Pretrainer", "ElectraPretrainer", "ElmoPretrainer", "Seq2SeqPretrainer")

#: The tasks that can be opened to be evaluated, exported or asked.
TASKS = {head.task for head in HEAD_TYPES} - {*PRETRAINERS}


def open_task(path, wanted=None, base=None):
    """Loads a task, one of `TASKS`.

    `path` is a `.keras` file, the folder of a preset or of a checkpoint with a head, that of an
    `Ensemble` or of an adapter on the checkpoint `base`, or `hf://owner/name`. `wanted` is the name
    of the only class that is taken; None takes all. A `Pretrainer` is opened as a `MaskedLM`. If a
    "MaskedLM" is wanted, the generator of an `ElectraPretrainer` is opened.
    """
    import keras

    from keras_bert_suite.heads import tasks
    from keras_bert_suite.heads.base.ensemble_files import ENSEMBLE_FILE

    if is_adapter(path):
        return open_adapter(path, wanted, base)
    if path.endswith(".keras"):
        classes = tuple(getattr(tasks, name) for name in ([wanted] if wanted else TASKS))
        with messages.reading(path):
            task = keras.saving.load_model(path, compile=False)
        if not isinstance(task, classes):
            raise ValueError(
                f"{path} holds {with_article(task)}, wanted a {wanted or 'task'} of "
                "keras_bert_suite. A pretraining is opened from the folder of its preset."
            )
        return task
    if (Path(path) / ENSEMBLE_FILE).is_file():
        return tasks.Ensemble.from_preset(path)
    found = find_task(path)
    if found == "ElectraPretrainer" and wanted == "MaskedLM":
        return open_generator(path)
    if found == "Pretrainer":
        found = "MaskedLM"
    if found not in TASKS:
        raise ValueError(
            f"{path} holds {describe(path, found)}, wanted a model with a head that answers: one "
            f"of {', '.join(sorted(TASKS))}. Make one with keras-bert finetune --checkpoint {path}"
        )
    cls = getattr(tasks, found)
    if wanted and not issubclass(cls, getattr(tasks, wanted)):
        cls = getattr(tasks, wanted)
    return cls.from_preset(path)


def is_adapter(path):
    """Whether a folder holds an adapter and its head, and not their base."""
    from keras_bert_suite.heads.base.adapter_folder import CONFIG_FILE

    return (Path(path) / CONFIG_FILE).is_file()


def open_adapter(path, wanted=None, base=None):
    """Loads the task of an adapter. Without `base` it is on the `hf://...` that its folder names.

    Raises:
        ValueError: if the folder names no such base, or the task is of another class.
    """
    from keras_bert_suite.heads import tasks
    from keras_bert_suite.heads.base.adapter_folder import read_folder

    description, _ = read_folder(path)
    found, named = description["task"]["class_name"], description["base"]["name"]
    if found not in TASKS or (wanted and found != wanted):
        raise ValueError(
            f"{path} holds the adapter of a {found}, wanted one of a "
            f"{wanted or ', '.join(sorted(TASKS))}."
        )
    if base is None and "://" not in (named or ""):
        raise ValueError(
            f"{path} holds an adapter on {named or 'a checkpoint without a name'}, whose place it "
            "does not know. Pass the path of this checkpoint: --base"
        )
    return getattr(tasks, found).from_adapter(path, base or named)


def open_generator(path):
    """Loads the generator of an `ElectraPretrainer`, in the folder of a preset, as a `MaskedLM`."""
    from keras_bert_suite.heads import tasks

    pretrainer = tasks.ElectraPretrainer.from_preset(path).make_masked_lm()
    task = tasks.MaskedLM(pretrainer.backbone, preprocessor=pretrainer.preprocessor)
    task.masked_lm.set_weights(pretrainer.masked_lm.get_weights())
    return task


def open_embedder(path, base=None):
    """Loads a `TextEmbedder`. Of a checkpoint without a pooling, the vectors are means.

    `base` is as for `open_task`.
    """
    from keras_bert_suite.heads import tasks

    if path.endswith(".keras") or is_adapter(path):
        return open_task(path, "TextEmbedder", base)
    return tasks.TextEmbedder.from_preset(path)


def find_task(path):
    """The class of the task in a folder: a name in `TASKS` or `PRETRAINERS`, or another name.

    It is None if there is a backbone without a head that this package knows.
    """
    from keras_bert_suite import checkpoints

    checkpoint = checkpoints.open_checkpoint(path)
    if checkpoint is not None:
        return checkpoints.find_task(checkpoint)
    file = Path(path) / "task.json"
    if file.is_file():
        with messages.reading(path):
            name = json.loads(file.read_bytes())["class_name"]
            # KerasHub's classifiers are read as ours.
            return "TextClassifier" if name.endswith("TextClassifier") else name
    # The class of a preset at an address is found when KerasHub loads it.
    return "TextClassifier" if "://" in path else None


def describe(path, task=None):
    """The content of a folder that is no task, as text for a message."""
    from keras_bert_suite import checkpoints

    if task is not None:
        return f"a {task}"
    checkpoint = checkpoints.open_checkpoint(path)
    heads = checkpoint is not None and checkpoints.find_other_heads(checkpoint, ())
    return f"an encoder with the head {messages.list_names(heads)}" if heads else "only an encoder"


def find_features(model):
    """The `features` of a task or an export, dict; empty for none."""
    description = getattr(model, "description", None)
    found = description.get("features") if description else getattr(model, "features", None)
    return found or {}
