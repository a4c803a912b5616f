"""A task that is opened from a preset or a checkpoint."""

import contextlib
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Self

import keras
import keras_hub
from keras_hub.src.utils.preset_utils import (
    PREPROCESSOR_CONFIG_FILE,
    TASK_CONFIG_FILE,
    TOKENIZER_CONFIG_FILE,
    check_config_class,
    check_file_exists,
    get_preset_loader,
    load_json,
)

from keras_bert_suite import checkpoints
from keras_bert_suite.annotations import Dtype, PathLike, Patterns
from keras_bert_suite.argument_checks import (
    check_arguments,
    check_further_arguments,
    list_arguments,
)
from keras_bert_suite.files.messages import reading, shorten
from keras_bert_suite.models import BACKBONES, LongformerBackbone
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.tasks.base.saved_task import SavedTask
from keras_bert_suite.tasks.base.token_states import list_missing_poolers

#: The arguments of a task that the constructors of Keras and KerasHub read.
FURTHER_ARGUMENTS = ("name", "trainable", "compile")


class PresetTask(SavedTask):
    """A task that is opened from a preset, or from a checkpoint of another library.

    A task overrides these hooks where it differs from the others:

    - `arguments_of(checkpoint, arguments)` completes the constructor's arguments from the heads of
      a checkpoint, and names the weights that are new, by regular expressions of their paths;
    - `has_new_head(arguments)` says whether these arguments ask for a new head;
    - `preset_classes()`, `load_keras_preset` and `load_checkpoint` say whose heads it opens.
    """

    #: Which tokens are global in a `LongformerBackbone`, as `from_preset` sets it for a new task.
    global_tokens = "first_token"

    #: Whether the backbone may be an encoder-decoder.
    takes_encoder_decoders = False

    def check_further_arguments(self, arguments: Mapping[str, Any]) -> None:
        """Raises TypeError if a constructor got an argument in `**kwargs` that nothing reads.

        A constructor of a task calls this method first, so that a misspelt argument is the first
        error.
        """
        check_further_arguments(type(self), arguments, FURTHER_ARGUMENTS)

    @classmethod
    def from_preset(
        cls,
        preset: PathLike,
        *,
        load_weights: bool = True,
        sequence_length: int | None = None,
        lowercase: bool | None = None,
        dtype: Dtype | None = None,
        skip: Patterns = (),
        backbone_activation: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Builds the task from a checkpoint.

        Args:
            preset: str or path: the directory of a preset saved by `save_to_preset`, of a
                Hugging Face checkpoint, or of an original Google TF1 checkpoint;
                `hf://owner/name`; or `kaggle://...` for a preset on Kaggle.
            load_weights: bool, whether to load weights or only the configuration.
            sequence_length: int, the most tokens in a row. None takes the length that the
                checkpoint names, or the number of its positions if it names no length.
            lowercase: bool, replaces the setting of the checkpoint.
            dtype: string or `keras.DTypePolicy`, such as "mixed_bfloat16".
            skip: regular expression, or several, for the paths of weights that are not loaded and
                keep their values; see `checkpoints.load_weights`.
            backbone_activation: str, replaces the activation function of a checkpoint of another
                library, as `activation` of a backbone. bert4keras writes Google's format with
                "gelu" and means "gelu_erf", where Google means "gelu_tanh".
            **kwargs: arguments of the constructor. With `preprocessor`, the checkpoint needs no
                vocabulary.

        Raises:
            TypeError: if the constructor has no such argument.
            ValueError: if `preset` is no checkpoint, or if the checkpoint lacks a tensor, has a
                tensor that the model does not have, or a tensor of another shape.
        """
        known = [name for name in list_arguments(cls) if name != "backbone"]
        check_arguments(
            f"{cls.__name__}.from_preset",
            kwargs,
            [*known, *FURTHER_ARGUMENTS],
            similar=["sequence_length", "lowercase", "skip", "backbone_activation"],
        )
        preset = checkpoints.preset_name(preset)
        checkpoint = checkpoints.open_checkpoint(preset)
        if backbone_activation is not None:
            if checkpoint is None or "encoder_arguments" in checkpoint.backbone_config:
                raise ValueError(
                    f"backbone_activation={backbone_activation!r} is for an encoder of another "
                    f"library, not {preset}. Leave it out."
                )
            checkpoint.backbone_config = {
                **checkpoint.backbone_config,
                "activation": backbone_activation,
            }
        preprocessor = _take_preprocessor(kwargs, preset, checkpoint, sequence_length, lowercase)
        if cls.has_new_head(kwargs):
            kwargs = _replace_head(cls, preset, checkpoint, kwargs)
        if checkpoint is None:
            if skip:
                raise ValueError(
                    f"skip={skip!r} is for checkpoints of other libraries, not {preset}."
                )
            task = _load_keras_preset(cls, preset, load_weights, dtype, kwargs)
        else:
            skip = [skip] if isinstance(skip, str) else skip
            task = cls.load_checkpoint(checkpoint, load_weights, dtype=dtype, skip=skip, **kwargs)
        task.preprocessor = preprocessor
        if not task.compiled and kwargs.get("compile", True):
            task.compile()
        return task

    @classmethod
    def arguments_of(
        cls, checkpoint: Any, arguments: dict[str, Any]
    ) -> tuple[dict[str, Any], list[str]]:
        return arguments, list_missing_poolers(checkpoint)

    @classmethod
    def backbone_arguments_of(cls, backbone_cls: type) -> dict[str, Any]:
        """Arguments of a backbone of a class that are set, whatever the checkpoint says."""
        return {}

    @classmethod
    def has_new_head(cls, arguments: dict[str, Any]) -> bool:
        """Whether arguments of the constructor ask for another head than that of a preset."""
        return False

    @classmethod
    def preset_classes(cls) -> tuple[type, ...]:
        """The tasks whose presets hold the head of this task."""
        return (cls,)

    @classmethod
    def load_checkpoint(
        cls,
        checkpoint: Any,
        load_weights: bool,
        *,
        dtype: Any = None,
        skip: Sequence[str] = (),
        **arguments: Any,
    ) -> Self:
        """Builds the task of a checkpoint from `checkpoints.open_checkpoint`."""
        if "encoder_arguments" in checkpoint.backbone_config and not cls.takes_encoder_decoders:
            raise ValueError(
                f"{checkpoint.path} holds an encoder-decoder, which a Seq2Seq opens. Build the "
                f"{cls.__name__} on its encoder: BertEncoderDecoder.from_preset(...).encoder."
            )
        arguments, new_parts = cls.arguments_of(checkpoint, arguments)
        backbone_cls = BACKBONES[checkpoint.model_type.backbone]
        if issubclass(cls.backbone_cls, backbone_cls):
            backbone_cls = cls.backbone_cls
        config = {**checkpoint.backbone_config, **cls.backbone_arguments_of(backbone_cls)}
        backbone = backbone_cls(**config, dtype=dtype)
        task = cls(backbone=backbone, **arguments)  # type: ignore[call-arg]
        _choose_global_tokens(task)
        if load_weights:
            checkpoints.load_weights(task, checkpoint, skip=[*skip, *new_parts])
        return task

    @classmethod
    def load_keras_preset(cls, loader: Any, load_weights: bool, **arguments: Any) -> Self:
        """Builds the task of a preset that KerasHub's loader has opened."""
        own_head = not cls.has_new_head(arguments)
        return loader.load_task(cls, load_weights, own_head, preprocessor=None, **arguments)


def _take_preprocessor(arguments, preset, checkpoint, sequence_length, lowercase):
    """Takes the preprocessor out of the arguments of a task, or loads that of the checkpoint."""
    if "preprocessor" not in arguments:
        return _load_preprocessor(preset, checkpoint, sequence_length, lowercase)
    if sequence_length is not None or lowercase is not None:
        raise ValueError(
            "sequence_length and lowercase are for the checkpoint's own preprocessor. Set them on "
            "the `preprocessor` that you pass."
        )
    return arguments.pop("preprocessor")


def _load_preprocessor(preset, checkpoint, sequence_length, lowercase):
    if checkpoint is not None:
        return SegmentPacker.from_checkpoint(
            checkpoint, sequence_length=sequence_length, lowercase=lowercase
        )
    family = keras_hub.models.TextClassifierPreprocessor
    if _saved_class(preset, PREPROCESSOR_CONFIG_FILE, family):
        with _reading(preset):
            preprocessor = get_preset_loader(preset).load_preprocessor(family)
    elif check_file_exists(preset, TOKENIZER_CONFIG_FILE):
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
                f"lowercase={lowercase} cannot be set on a {type(preprocessor).__name__}. Build a "
                "preprocessor with the tokenizer you want, and pass it as `preprocessor`."
            )
        preprocessor.tokenizer = preprocessor.tokenizer.with_lowercase(lowercase)
    return preprocessor


def _replace_head(cls, preset, checkpoint, arguments):
    """The arguments of a task with a new head. Warns if the new head replaces an old head."""
    old_head = _read_head(cls, preset, checkpoint)
    if not old_head:
        return arguments
    arguments = cls.replace_head(old_head, arguments)
    kind = arguments.get("problem_type")
    warnings.warn(
        f"{preset} holds a classification layer. It is left out, because num_classes or "
        "label_names ask for a new layer. Drop both arguments to keep it."
        + (f" The new layer has problem_type={kind!r}." if kind else ""),
        stacklevel=4,
    )
    return arguments


def _read_head(cls, preset, checkpoint):
    """The arguments of a task with the head of a preset or checkpoint; None without a head."""
    if checkpoint is None:
        if not holds_task(preset, cls):
            return None
        with _reading(preset):
            return load_json(preset, TASK_CONFIG_FILE)["config"]
    try:
        return cls.head_arguments(checkpoint)
    except ValueError:
        return None  # The checkpoint has no head of this kind.


def _load_keras_preset(cls, preset, load_weights, dtype, arguments):
    if dtype is not None:
        arguments["dtype"] = dtype
    loader = get_preset_loader(preset)
    if _is_quantized(loader) and (dtype is not None or not holds_task(preset, cls)):
        raise ValueError(
            f"{preset} was quantized to 8-bit integers, so it opens as the task that it holds and "
            f"in no other dtype, got a {cls.__name__} with dtype={dtype}. Open a preset that was "
            "saved before `quantize`."
        )
    # If the backbone is not the class' own, KerasHub's `from_preset` would look for another class.
    # A preset of this task needs no arguments. With some, or with a layout for several devices, an
    # error may be about them.
    is_alone = not arguments and keras.distribution.distribution() is None
    is_whole = is_alone and holds_task(preset, cls)
    with _reading(preset) if is_whole else contextlib.nullcontext():
        task = cls.load_keras_preset(loader, load_weights, **arguments)
    is_new = not holds_task(preset, cls.preset_classes())
    if is_new:
        _choose_global_tokens(task)
    has_head = len(task.weights) > len(task.backbone.weights)
    if is_new and has_head and not cls.has_new_head(arguments):
        warnings.warn(
            f"{preset} holds a backbone, but no {cls.__name__}. The layers on top of the backbone "
            "are new. Train them before you use their output.",
            stacklevel=4,
        )
    return task


def _is_quantized(loader):
    """Whether KerasHub's loader has opened a preset whose backbone has 8-bit integers."""
    policy = loader.config.get("config", {}).get("dtype")
    layers = policy["config"].get("policy_map", {}) if isinstance(policy, dict) else {}
    return any(layer["class_name"] == "QuantizedDTypePolicy" for layer in layers.values())


def _choose_global_tokens(task):
    """Gives a backbone with global tokens the rule for them that is usual for a task."""
    if isinstance(task.backbone, LongformerBackbone):
        task.backbone.global_tokens = task.global_tokens


def holds_task(preset, classes):
    """Whether the task of a preset is of a class, or of one of several classes."""
    return _saved_class(preset, TASK_CONFIG_FILE, classes)


def _saved_class(preset, file, family):
    """Whether a file of a preset holds the configuration of a class of a family."""
    if not check_file_exists(preset, file):
        return False
    with _reading(preset):
        config = load_json(preset, file)
    try:
        return issubclass(check_config_class(config), family)
    except ValueError as error:  # Its module may not be imported.
        raise ValueError(f"{file} of {preset}: {shorten(error, 600)}") from error


def _reading(preset):
    """`reading` for a preset on this machine. Errors of a hub say nothing about the preset."""
    return reading(preset) if os.path.isdir(preset) else contextlib.nullcontext()
