"""A task as two models, with what one returns and the other takes between them."""

from typing import Any, Self

import keras

from keras_bert_suite.layers import PackedSequences


class TaskPart(PackedSequences, keras.Model):
    """A part of the graph of a task. It takes packed rows as the task does.

    The adapter of the task acts in its calls; see `AdaptedTask`.
    """

    #: str, the adapter that acts; None without adapters.
    adapter: str | None = None

    @classmethod
    def of(cls, task: Any, inputs: Any, outputs: Any, name: str) -> Self:
        """The part between symbolic tensors. It shares the layers of the task."""
        part = cls(inputs, outputs, name=name)
        part.adapter = getattr(task, "adapter", None)
        part.__dict__["backbone"] = task.backbone  # Keras would take it for a layer of the part.
        return part


def split_at(task: Any, tensors: Any) -> tuple[keras.Model, keras.Model]:
    """(the model from the inputs of a task to symbolic tensors, the model from these to its end).

    Both share the layers of the task.
    """
    first = TaskPart.of(task, task.input, tensors, "first_part")
    return first, keras.Model(tensors, task.output, name="second_part")
