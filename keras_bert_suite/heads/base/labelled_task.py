"""The common base of tasks whose head has an output for each label."""

from collections.abc import Sequence
from typing import Self

import keras
import keras_hub

from keras_bert_suite.annotations import Config, Labels
from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.data.rows import read_labels
from keras_bert_suite.heads.base.task import Task
from keras_bert_suite.layers import Dropout

#: The layer of the columns beside the texts, and the size of its vectors.
FEATURE_LAYER, FEATURE_DIM = "feature_layer", 64

#: The layer of columns has the rate of the head times this. It begins as 0, and a training has some
#: hundred steps.
FEATURE_RATE = 10.0


class LabelledTask(Task):
    """The base of tasks with `label_names`, which name the layer of their head, `head_name`."""

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
        name = type(self).__name__
        self.data.labels.names = resolve_label_names(name, None, names, fewest=1)

    @property
    def num_classes(self) -> int:
        """int, C."""
        return len(self.label_names)

    def balance_classes(self, y: Labels) -> dict[str, float]:
        """The weights by which the classes of labels have the same weight in the loss.

        For `class_weight` of a `fit` on a dataset. On rows in memory, `class_weight="balanced"`
        does it.

        Args:
            y: labels as for `fit`.

        Returns:
            dict of label name -> weight. A class without a row has none.
        """
        labels = read_labels(self.data.labels.read(y))
        return self.data.labels.balance(self.data.labels.encode(labels))

    @classmethod
    def from_config(cls, config: Config) -> Self:
        # For a new head KerasHub's loader adds `num_classes` to the saved configuration, whose
        # names of labels are then those of the old head.
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


def make_feature_layer(backbone: keras_hub.models.Backbone) -> keras.layers.Dense:
    """The layer from the features (B, D) of rows to a vector that is put beside the text's.

    It begins as 0. So a new layer changes nothing, and neither does a place that no training row
    has, such as the place of unknown categories.
    """
    return keras.layers.Dense(
        FEATURE_DIM,
        activation="gelu",
        kernel_initializer="zeros",
        dtype=backbone.dtype_policy,
        name=FEATURE_LAYER,
    )


def resolve_label_names(
    task: str, num_classes: int | None, label_names: Sequence[str] | None, fewest: int = 2
) -> list[str]:
    """The list of label names, from names or from their number, at least `fewest`."""
    if label_names is None:
        if num_classes is None:
            raise ValueError(f"A {task} needs `num_classes` or `label_names`.")
        check_integer("num_classes", num_classes)
        label_names = [str(i) for i in range(num_classes)]
    # A set has another order in each process, so a resumed run would have other class ids.
    if isinstance(label_names, (str, set)) or not all(
        isinstance(name, str) for name in label_names
    ):
        raise ValueError(
            f"label_names must be a list of strings, got {label_names!r}. Labels that are numbers "
            "are class ids. Write names as strings, both here and in the data."
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
