"""A task as two models, with what one returns and the other takes between them."""

from typing import Any

import keras

from keras_bert_suite.layers import PackedSequences


class FirstPart(PackedSequences, keras.Model):
    """The layers of a task up to some tensors. It takes packed rows as the task does."""


def split_at(task: Any, tensors: Any) -> tuple[keras.Model, keras.Model]:
    """(the model from the inputs of a task to symbolic tensors, the model from these to its end).

    Both share the layers of the task.
    """
    first = FirstPart(task.input, tensors, name="first_part")
    return first, keras.Model(tensors, task.output, name="second_part")
