"""Loads presets of our classes and of KerasHub's, by the loader of KerasHub."""

import contextlib
import os
import warnings

import keras
import keras_hub
from keras_hub.src.utils.preset_utils import get_preset_loader

from keras_bert_suite import checkpoints
from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.checkpoints.left_out import are_random
from keras_bert_suite.files.messages import reading, shorten
from keras_bert_suite.models import BACKBONES
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.preprocessing import FramePacker, SegmentPacker
from keras_bert_suite.preprocessing.preset_files import (
    CONFIG_FILE,
    PREPROCESSOR_CONFIG_FILE,
    TASK_CONFIG_FILE,
    TASK_WEIGHTS_FILE,
    TOKENIZER_CONFIG_FILE,
    find_class,
    find_file,
    read_config,
)


def load_task(cls, preset, load_weights, dtype, arguments):
    """Builds a task of the class `cls` from a preset; see `PresetTask.from_preset`."""
    if dtype is not None:
        arguments["dtype"] = dtype
    loader = get_preset_loader(preset)
    if _is_quantized(loader) and (dtype is not None or not holds_task(preset, cls)):
        raise ValueError(
            f"{preset} was quantized to 8-bit integers, so it opens as the task that it holds and "
            f"in no other dtype, got {with_article(cls)} with dtype={dtype}. Open a preset that "
            "was saved before `quantize`."
        )
    # A preset of this task needs no arguments. An error may be about the arguments, or about a
    # layout for several devices, and not about the preset.
    is_alone = not arguments and keras.distribution.distribution() is None
    is_whole = is_alone and holds_task(preset, cls)
    if dtype is None and _is_mixed(loader):
        # KerasHub opens a preset in the policy of the process, and fails at the name of this one.
        arguments["dtype"] = keras.config.dtype_policy()
    with _reading(preset) if is_whole else contextlib.nullcontext():
        task = cls.load_keras_preset(loader, load_weights, **arguments)
    is_new = not holds_task(preset, cls.preset_classes())
    if is_new:
        choose_global_tokens(task)
    _report_heads(preset, task, is_new, cls.has_new_head(arguments))
    return task


def _report_heads(preset, task, is_new, is_asked):
    """Says which heads of a preset a task does not have, and that heads of the task are new.

    `is_new` says whether the preset holds another task, or none, and `is_asked` whether the user
    asked for a new head.
    """
    name, config = None, {}
    if find_file(preset, TASK_WEIGHTS_FILE):
        with _reading(preset):
            saved = read_config(preset, TASK_CONFIG_FILE)
            name, config = saved["class_name"], saved["config"]
    if not is_new:  # A `MaskedLM` of a `Pretrainer` has the most of its heads.
        others = ("next_sentence", "span_boundary")
        checkpoints.log_left_out(
            preset, [other for other in others if config.get(other) and not hasattr(task, other)]
        )
        return
    of_backbone = {id(weight) for weight in task.backbone.weights}
    has_head = are_random(w for w in task.weights if id(w) not in of_backbone)
    is_pretrained = name is not None and name.endswith(("Pretrainer", "MaskedLM"))
    reports = [f"{preset} holds a backbone, but no {type(task).__name__}."]
    if name and not is_pretrained:
        reports.append(
            f"The head of its {name}, in {TASK_WEIGHTS_FILE}, is left out; {name}.from_preset "
            "keeps it."
        )
    if has_head and not (is_asked and len(reports) == 1):
        reports.append(
            "The layers on top of the backbone are new and random. Train them before use."
        )
    if len(reports) > 1:
        warnings.warn(" ".join(reports), stacklevel=4)
    elif is_pretrained:
        checkpoints.log_left_out(preset, [f"of its {name}"])


def take_preprocessor(arguments, preset, checkpoint, sequence_length, lowercase):
    """Takes the preprocessor out of the arguments of a task, or loads it from the preset."""
    if "preprocessor" not in arguments:
        if checkpoint is None:
            return load_preprocessor(preset, sequence_length, lowercase)
        return SegmentPacker.from_checkpoint(checkpoint, sequence_length, lowercase)
    if sequence_length is not None or lowercase is not None:
        raise ValueError(
            "sequence_length and lowercase are for the checkpoint's own preprocessor. Set them on "
            "the `preprocessor` that you pass."
        )
    return arguments.pop("preprocessor")


def load_preprocessor(preset, sequence_length, lowercase):
    """The preprocessor of a preset, or one with its tokenizer."""
    family = keras_hub.models.TextClassifierPreprocessor
    if _saved_class(preset, PREPROCESSOR_CONFIG_FILE, family):
        with _reading(preset):
            preprocessor = get_preset_loader(preset).load_preprocessor(family)
    elif _saved_class(preset, PREPROCESSOR_CONFIG_FILE, FramePacker):
        with _reading(preset):
            preprocessor = get_preset_loader(preset).load_preprocessor(FramePacker)
    elif find_file(preset, TOKENIZER_CONFIG_FILE):
        with _reading(preset):
            preprocessor = family.from_preset(preset)  # KerasHub finds the class by the backbone.
    else:
        raise ValueError(
            f"{preset} holds no tokenizer. Pass `preprocessor`, a SegmentPacker with the tokenizer "
            "that the backbone was trained with, or None to bring packed arrays."
        )
    if sequence_length is not None:
        preprocessor.sequence_length = sequence_length
    if lowercase is not None:
        if not isinstance(preprocessor, SegmentPacker):
            raise ValueError(
                f"lowercase={lowercase} cannot be set on {with_article(preprocessor)}. Build a "
                "preprocessor with the tokenizer you want, and pass it as `preprocessor`."
            )
        preprocessor.tokenizer = preprocessor.tokenizer.with_lowercase(lowercase)
    return preprocessor


def choose_global_tokens(task):
    """Gives a backbone with global tokens the rule for them that is usual for a task."""
    if Encoder.of(task.backbone).global_tokens is not None:
        task.backbone.global_tokens = task.global_tokens


def holds_task(preset, classes):
    """Whether the task of a preset is of a class, or of one of several classes."""
    return _saved_class(preset, TASK_CONFIG_FILE, classes)


def holds_encoder_decoder(preset):
    """Whether the backbone of a preset or a checkpoint is an encoder-decoder."""
    preset = checkpoints.preset_name(preset)
    checkpoint = checkpoints.open_checkpoint(preset)
    if checkpoint is not None:
        return hasattr(BACKBONES[checkpoint.model_type.backbone], "encode_sources")
    with _reading(preset):
        config = read_config(preset, CONFIG_FILE)
    return config is not None and hasattr(find_class(config), "encode_sources")


def find_task_class(preset, classes):
    """The class of the task of a preset, if it is one of some classes or extends one; or None."""
    if not holds_task(preset, classes):
        return None
    return find_class(read_config(preset, TASK_CONFIG_FILE))


def read_task_config(preset, classes):
    """The configuration of the task of a preset, or None if it is of no such class."""
    if not holds_task(preset, classes):
        return None
    with _reading(preset):
        return read_config(preset, TASK_CONFIG_FILE)["config"]


def _is_quantized(loader):
    """Whether KerasHub's loader has opened a preset whose backbone has 8-bit integers."""
    policy = loader.config.get("config", {}).get("dtype")
    layers = policy["config"].get("policy_map", {}) if isinstance(policy, dict) else {}
    return any(layer["class_name"] == "QuantizedDTypePolicy" for layer in layers.values())


def _is_mixed(loader):
    """Whether the backbone of a preset that KerasHub's loader has opened has mixed precision."""
    policy = loader.config.get("config", {}).get("dtype")
    name = policy["config"].get("name") if isinstance(policy, dict) else None
    return str(name).startswith("mixed_")


def _saved_class(preset, file, family):
    """Whether a file of a preset holds the configuration of a class of a family."""
    with _reading(preset):
        config = read_config(preset, file)
    if config is None:
        return False
    try:
        return issubclass(find_class(config), family)
    except ValueError as error:  # Its module may not be imported.
        raise ValueError(f"{file} of {preset}: {shorten(error, 600)}") from error


def _reading(preset):
    """`reading` for a preset on this machine. Errors of a hub say nothing about the preset."""
    return reading(preset) if os.path.isdir(preset) else contextlib.nullcontext()
