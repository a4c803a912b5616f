"""The common base of tasks whose head has an output for each label."""

from collections.abc import Sequence
from typing import Any, Self

import keras
import keras_hub

from keras_bert_suite import checkpoints
from keras_bert_suite.annotations import Config, PathLike
from keras_bert_suite.layers import Dropout
from keras_bert_suite.tasks.base.task import Task


class LabelledTask(Task):
    """The base of tasks with `label_names`, whose head may come from a checkpoint or be new."""

    #: The name of the layer of the head.
    head_name: str

    @property
    def label_names(self) -> list[str]:
        """list of C str. They may be renamed, one for each output."""
        return self.data.labels.names

    @label_names.setter
    def label_names(self, names: Sequence[str]) -> None:
        if len(names) != self.num_classes:
            raise ValueError(
                f"label_names must be {self.num_classes} names, one for each output, got "
                f"{list(names)}."
            )
        self.data.labels.names = list(names)

    #: Values for a new head, instead of the values in the configuration of a preset's task.
    head_defaults: dict[str, Any] = {"input_names": None}

    @property
    def num_classes(self) -> int:
        """int, C."""
        return len(self.label_names)

    @classmethod
    def from_preset(
        cls,
        preset: PathLike,
        num_classes: int | None = None,
        *,
        label_names: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Builds the task from a checkpoint.

        Args:
            preset, **kwargs: as for `Task.from_preset`: `load_weights`, `sequence_length`,
                `lowercase`, `dtype`, and other arguments of the constructor.
            num_classes: int. If `num_classes` or `label_names` is given, the classification
                layer is new. Otherwise the checkpoint must have the layer.
            label_names: list of str.

        Raises:
            ValueError: as `Task.from_preset`, or if the checkpoint must have a classification
                layer and has none.
        """
        if num_classes is not None or label_names is not None:
            fewest = cls.fewest_labels(kwargs)
            label_names = resolve_label_names(cls.__name__, num_classes, label_names, fewest)
            kwargs.update(num_classes=len(label_names), label_names=label_names)
        return super().from_preset(preset, **kwargs)

    @classmethod
    def fewest_labels(cls, arguments: dict[str, Any]) -> int:
        """The smallest number of labels for a task with these arguments of the constructor."""
        return 2

    @classmethod
    def has_new_head(cls, arguments: dict[str, Any]) -> bool:
        return "num_classes" in arguments

    @classmethod
    def replace_head(cls, old_head: Config, arguments: dict[str, Any]) -> dict[str, Any]:
        """Completes the arguments of a task whose new head replaces the head of a checkpoint."""
        return arguments

    @classmethod
    def arguments_of(
        cls, checkpoint: Any, arguments: dict[str, Any]
    ) -> tuple[dict[str, Any], list[str]]:
        if cls.has_new_head(arguments):
            return arguments, [f"{cls.head_name}/.*"]
        return {**cls.head_arguments(checkpoint), **arguments}, []

    @classmethod
    def head_arguments(cls, checkpoint: Any) -> dict[str, Any]:
        """The arguments of this task with which a checkpoint's own head can be loaded.

        A checkpoint without a head of this kind is a ValueError.
        """
        return checkpoints.head_arguments(checkpoint, cls.head_name)

    @classmethod
    def load_keras_preset(cls, loader: Any, load_weights: bool, **arguments: Any) -> Self:
        if cls.has_new_head(arguments):
            # The preset's task may be for pairs of texts, and the new task for single texts.
            arguments = {**cls.head_defaults, **arguments}
        return super().load_keras_preset(loader, load_weights, **arguments)

    @classmethod
    def from_config(cls, config: Config) -> Self:
        # For a new head KerasHub's loader adds `num_classes` to the saved configuration.
        if config.get("num_classes") not in (None, len(config.get("label_names") or ())):
            config = {**config, "label_names": None}
        return super().from_config(config)

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            "label_names": list(self.label_names),
            "dropout": self.dropout,
            "input_names": self.input_names and list(self.input_names),
        }


def make_head(
    backbone: keras_hub.models.Backbone, num_classes: int, dropout: float, name: str
) -> tuple[Dropout, keras.layers.Dense]:
    """The layers of a head: the dropout of its input, and the dense layer (..., H) to (..., C)."""
    policy = backbone.dtype_policy
    classifier = keras.layers.Dense(
        num_classes,
        kernel_initializer=keras.initializers.TruncatedNormal(stddev=0.02),
        dtype=policy,
        name=name,
    )
    return Dropout(dropout, dtype=policy, name="classifier_dropout"), classifier


def resolve_label_names(
    task: str, num_classes: int | None, label_names: Sequence[str] | None, fewest: int = 2
) -> list[str]:
    """The list of label names, from names or from their number, at least `fewest`."""
    if label_names is None:
        if num_classes is None:
            raise ValueError(f"A {task} needs `num_classes` or `label_names`.")
        label_names = [str(i) for i in range(num_classes)]
    if isinstance(label_names, str):
        raise ValueError(f"label_names must be a list of names, got the string {label_names!r}.")
    for name in label_names:
        if not isinstance(name, str):
            raise ValueError(
                f"label_names must be strings, got {name!r} ({type(name).__name__}). Labels that "
                "are numbers are class ids. Write names as strings, both here and in the data."
            )
    label_names = list(label_names)
    if num_classes is not None and num_classes != len(label_names):
        raise ValueError(
            f"num_classes={num_classes}, but there are {len(label_names)} label_names: "
            f"{label_names}."
        )
    if len(set(label_names)) != len(label_names) or len(label_names) < fewest:
        advice = " For a number as the answer, pass problem_type='regression'."
        raise ValueError(
            f"A classifier needs {fewest} or more different labels, got {label_names}."
            + (advice if len(label_names) == 1 else "")
        )
    return label_names
