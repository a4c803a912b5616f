"""A task that is opened from a preset or a checkpoint."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Self

from keras_bert_suite import checkpoints
from keras_bert_suite.annotations import Config, Dtype, PathLike, Patterns
from keras_bert_suite.argument_checks import (
    check_arguments,
    check_further_arguments,
    list_arguments,
)
from keras_bert_suite.heads.base.adapted_task import AdaptedTask
from keras_bert_suite.heads.base.card_facts import describe_base
from keras_bert_suite.heads.base.ensemble_files import check_no_ensemble
from keras_bert_suite.heads.base.keras_presets import (
    choose_global_tokens,
    load_task,
    read_task_config,
    take_preprocessor,
)
from keras_bert_suite.heads.base.poolings import list_missing_poolers
from keras_bert_suite.heads.base.saved_task import SavedTask
from keras_bert_suite.models import BACKBONES
from keras_bert_suite.models.text_encoder import RESIZED
from keras_bert_suite.preprocessing import SegmentPacker

#: The arguments of `from_preset` that no constructor has.
_TAKEN = (
    "preset",
    "sequence_length",
    "lowercase",
    "dtype",
    "skip",
    "rename",
    "backbone_activation",
    *RESIZED,
)

#: The arguments of a task that the constructors of Keras and KerasHub read.
FURTHER_ARGUMENTS = ("name", "trainable", "compile")


class PresetTask(AdaptedTask, SavedTask):
    """A task that is opened from a preset, or from a checkpoint of another library.

    A task overrides these hooks where it differs from the others:

    - `arguments_of(checkpoint, arguments)` completes the constructor's arguments from the heads of
      a checkpoint, and names the weights that are new, by regular expressions of their paths;
    - `replace_head(old_head, arguments)` completes the arguments of a task with a new head;
    - `preset_classes()`, `load_keras_preset` and `load_checkpoint` say whose heads it opens.
    """

    #: The name of the layer of a head with labels: from the checkpoint, or new if `from_preset`
    #: gets `num_classes` or `label_names`. None for other tasks.
    head_name: str | None = None

    #: Values for a new head, instead of the values in the configuration of a preset's task.
    head_defaults: dict[str, Any] = {"input_names": None}

    #: Which tokens are global in a `LongformerBackbone`, as `from_preset` sets it for a new task.
    global_tokens = "first_token"

    #: Whether a backbone keeps the inputs that no packer makes, such as those of two streams.
    takes_further_inputs = False

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
        num_classes: int | None = None,
        label_names: Sequence[str] | None = None,
        load_weights: bool = True,
        sequence_length: int | None = None,
        lowercase: bool | None = None,
        dtype: Dtype | None = None,
        skip: Patterns = (),
        rename: Mapping[str, str] | None = None,
        backbone_activation: str | None = None,
        num_layers: int | None = None,
        max_sequence_length: int | None = None,
        hierarchical_positions: bool | float = False,
        keep_tokens: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Builds the task from a checkpoint.

        Args:
            preset: str or path: the directory of a preset saved by `save_to_preset`, of a
                Hugging Face checkpoint, or of an original Google TF1 checkpoint;
                `hf://owner/name`; or `kaggle://...` for a preset on Kaggle.
            num_classes: int, for tasks with labels. If `num_classes` or `label_names` is given,
                the classification layer is new. Otherwise the checkpoint must have the layer.
            label_names: list of str, for tasks with labels.
            load_weights: bool, whether to load weights or only the configuration.
            sequence_length: int, the most tokens in a row. None takes the length that the
                checkpoint names, or the number of its positions if it names no length.
            lowercase: bool, replaces the setting of the checkpoint.
            dtype: string or `keras.DTypePolicy`, such as "mixed_bfloat16".
            skip: regular expression, or several, for the paths of weights that are not loaded and
                keep their values; see `checkpoints.load_weights`.
            rename: dict of the beginning of names of tensors -> another beginning, for a module
                with names of its own, such as {"encoder.": ""}; see `open_checkpoint`.
            backbone_activation: str, replaces the activation function of a checkpoint of another
                library, as `activation` of a backbone. bert4keras writes Google's format with
                "gelu" and means "gelu_erf", where Google means "gelu_tanh".
            num_layers, max_sequence_length, hierarchical_positions: as for `TextEncoder.resize`:
                the first layers only, and another number of positions.
            keep_tokens: list of str or tokenizer, the tokens that stay of a WordPiece vocabulary;
                see `keep_tokens` of the task, and `trim_vocabulary`. None keeps all.
            **kwargs: arguments of the constructor. With `preprocessor`, the checkpoint needs no
                vocabulary.

        Returns:
            the task, compiled: as it was saved, or by `compile()`.

        Raises:
            TypeError: if the constructor has no such argument.
            ValueError: if `preset` is no checkpoint, or if the checkpoint lacks a tensor, has a
                tensor that the model does not have, or a tensor of another shape; or if it must
                have a classification layer and has none.
        """
        if label_names is not None:
            # `from_config` would give names of another number to the old head.
            if num_classes not in (None, len(label_names)):
                raise ValueError(f"num_classes={num_classes}, but label_names={label_names}.")
            num_classes = len(label_names)
        if num_classes is not None:
            kwargs.update(num_classes=num_classes, label_names=label_names)
        _check_preset_arguments(cls, kwargs)
        sizes = (num_layers, max_sequence_length, hierarchical_positions)
        if max_sequence_length and "preprocessor" not in kwargs:
            sequence_length = sequence_length or max_sequence_length
        preset = checkpoints.preset_name(preset)
        check_no_ensemble(preset)
        checkpoint = checkpoints.open_checkpoint(preset, rename)
        if backbone_activation is not None:
            _replace_activation(checkpoint, backbone_activation, preset)
        preprocessor = take_preprocessor(kwargs, preset, checkpoint, sequence_length, lowercase)
        if cls.has_new_head(kwargs):
            kwargs = _replace_head(cls, preset, checkpoint, kwargs)
        if checkpoint is None:
            if skip:
                raise ValueError(
                    f"skip={skip!r} is for checkpoints of other libraries, not {preset}."
                )
            task = load_task(cls, preset, load_weights, dtype, kwargs)
        else:
            skip = [skip] if isinstance(skip, str) else skip
            task = cls.load_checkpoint(checkpoint, load_weights, dtype=dtype, skip=skip, **kwargs)
        if not task.takes_further_inputs and _has_further_inputs(task.backbone):
            task = task._resize("for_texts")
        if sizes != (None, None, False):
            task = task._resize("resize", **dict(zip(RESIZED, sizes, strict=True)))
        task.preprocessor = preprocessor
        if keep_tokens is not None:
            task = task.keep_tokens(keep_tokens)
        if not task.card:
            task.card.update(describe_base(preset, checkpoint.path if checkpoint else preset))
        if not task.compiled and kwargs.get("compile", True):
            task.compile()
        return task

    @classmethod
    def arguments_of(
        cls, checkpoint: Any, arguments: dict[str, Any]
    ) -> tuple[dict[str, Any], list[str]]:
        if cls.head_name is None:
            return arguments, list_missing_poolers(checkpoint)
        if cls.has_new_head(arguments):
            return arguments, [f"{cls.head_name}/.*"]
        return {**checkpoints.head_arguments(checkpoint, cls.head_name), **arguments}, []

    @classmethod
    def backbone_arguments_of(cls, backbone_cls: type) -> dict[str, Any]:
        """Arguments of a backbone of a class that are set, whatever the checkpoint says."""
        return {}

    @classmethod
    def has_new_head(cls, arguments: dict[str, Any]) -> bool:
        """Whether arguments of the constructor ask for another head than the preset has."""
        return "num_classes" in arguments

    @classmethod
    def replace_head(cls, old_head: Config, arguments: dict[str, Any]) -> dict[str, Any]:
        """Completes the arguments of a task whose new head replaces the head of a checkpoint."""
        return arguments

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
        choose_global_tokens(task)
        if load_weights:
            checkpoints.load_weights(task, checkpoint, skip=skip, new=new_parts)
        return task

    @classmethod
    def load_keras_preset(cls, loader: Any, load_weights: bool, **arguments: Any) -> Self:
        """Builds the task of a preset that KerasHub's loader has opened."""
        own_head = not cls.has_new_head(arguments)
        if not own_head:
            # The preset's task may be for pairs of texts, and the new task for single texts.
            arguments = {**cls.head_defaults, **arguments}
        return loader.load_task(cls, load_weights, own_head, preprocessor=None, **arguments)


def _has_further_inputs(backbone):
    """Whether a backbone has inputs that no packer makes, and a copy without them."""
    return hasattr(backbone, "for_texts") and set(backbone.input) > set(backbone.input_names)


def _check_preset_arguments(cls, arguments):
    """Raises a TypeError if `from_preset` of a task got an argument that no constructor has."""
    known = [name for name in list_arguments(cls) if name != "backbone"]
    for name in {*arguments} & {*list_arguments(SegmentPacker)} - {*known}:
        raise TypeError(
            f"{cls.__name__}.from_preset has no argument {name!r}, which is one of its "
            f"SegmentPacker. Set `task.preprocessor.{name}` after it."
        )
    check_arguments(
        f"{cls.__name__}.from_preset",
        arguments,
        [*known, *FURTHER_ARGUMENTS],
        similar=_TAKEN,
    )


def _replace_activation(checkpoint, activation, preset):
    """Gives the encoder of a checkpoint of another library another activation function."""
    if checkpoint is None or "encoder_arguments" in checkpoint.backbone_config:
        raise ValueError(
            f"backbone_activation={activation!r} is for an encoder of another library, not "
            f"{preset}. Leave it out."
        )
    checkpoint.backbone_config = {**checkpoint.backbone_config, "activation": activation}


def _replace_head(cls, preset, checkpoint, arguments):
    """The arguments of a task with a new head. Warns if the new head replaces an old head."""
    if checkpoint is None:
        old_head = read_task_config(preset, cls)
    else:
        old_head = checkpoint.heads.get(cls.head_name)
    if not old_head:
        return arguments
    arguments = cls.replace_head(old_head, arguments)
    kind = arguments.get("problem_type")
    asked = "head_layers" if cls.head_name is None else "num_classes or label_names"
    warnings.warn(
        f"{preset} holds a classification layer. It is left out, because {asked} ask for a new "
        "layer. Drop these arguments to keep it."
        + (f" The new layer has problem_type={kind!r}." if kind else ""),
        stacklevel=3,
    )
    return arguments
