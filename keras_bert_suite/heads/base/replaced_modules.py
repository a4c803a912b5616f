"""A task whose layers are replaced in some batches: by layers of a teacher, or by nothing."""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.heads.base.inner_states import check_one_encoder, inline_graph
from keras_bert_suite.heads.base.split_models import TaskPart
from keras_bert_suite.layers.adapters.adaptable import Acting, act
from keras_bert_suite.layers.attention.read_tokens import ReadTokens
from keras_bert_suite.models.encoder import Encoder

#: The further input of the model, bool (modules,), whether a module is the student's own.
OWN_MODULES = "own_modules"


def replace_modules(student: Any, teacher: Any = None) -> keras.Model:
    """A student whose i-th layer may be the k layers of its teacher that it stands for.

    Its further input `OWN_MODULES` says which layers are its own in a pass. Layers of the teacher
    run without dropout. Without a teacher, a layer that is not its own returns its input.

    Raises:
        ValueError: if layers are called twice, or those of the teacher are no multiple, or have
            other widths.
    """
    blocks = list(Encoder.of(student.backbone).list_calls())
    if len({*map(id, blocks)}) != len(blocks) or not blocks:
        raise ValueError(
            f"{with_article(student.backbone, 'A')} does not have a layer of its own for each "
            "place, so no layer can be replaced. Take an encoder such as BertBackbone."
        )
    modules = {} if teacher is None else _pair_modules(student, teacher, blocks)
    taught = getattr(teacher, "adapter", None)
    places = {id(block): i for i, block in enumerate(blocks)}
    own = keras.Input(batch_shape=(len(blocks),), dtype="bool", name=OWN_MODULES)
    reads: dict[int, Any] = {}
    called: set[int] = set()

    def call(operation: Any, *args: Any, **kwargs: Any) -> Any:
        found = operation(*args, **kwargs)
        if isinstance(operation, ReadTokens):
            reads[id(found)] = operation, args[1:], kwargs
        if id(operation) not in places:
            return found
        called.add(id(operation))
        replaced = args[0]
        if modules:
            replaced = _call_module(modules[id(operation)], taught, reads, *args, **kwargs)
        return ops.where(own[places[id(operation)]], found, replaced)

    check_one_encoder(student)
    outputs = inline_graph(keras.Model(student.input, student.output), student.input, {}, call)
    if called != set(places):
        raise ValueError(
            f"{with_article(student, 'A')} on {with_article(student.backbone)} has layers that "
            "cannot be found in it, so they cannot be replaced. Take an encoder such as "
            "BertBackbone."
        )
    inputs = {**student.input, OWN_MODULES: own}
    return TaskPart.of(student, inputs, outputs, "replaced_modules")


def _pair_modules(student: Any, teacher: Any, blocks: Any) -> dict[int, Any]:
    """dict of the id of a layer of the student -> list of the layers that it stands for."""
    others = list(Encoder.of(teacher.backbone).list_calls())
    if len(others) % len(blocks):
        raise ValueError(
            f"The student has {len(blocks)} layers, and the teacher {len(others)}, which is no "
            "multiple. Build a student whose layers divide it."
        )
    widths = [task.backbone.hidden_dim for task in (student, teacher)]
    if type(blocks[0]) is not type(others[0]) or widths[0] != widths[1]:
        raise ValueError(
            f"A layer of the student, {with_article(blocks[0])} of width {widths[0]}, cannot "
            f"replace {with_article(others[0])} of width {widths[1]}. Build the student by "
            "teacher.keep_layers."
        )
    size = len(others) // len(blocks)
    return {id(block): others[i * size : (i + 1) * size] for i, block in enumerate(blocks)}


def _call_module(
    blocks: Any, adapter: str | None, reads: Any, hidden: Any, **arguments: Any
) -> Any:
    """The layers of a module of the teacher on the input of a layer of the student."""
    if "source" not in arguments:
        return _FixedBlocks(blocks, adapter)(hidden, **arguments)
    # The last layer of the student computes some tokens alone, and those before it compute all.
    *first, last = blocks
    states = arguments["source"]
    if first:
        skipped = ("source", "source_positions", "positions")
        further = {name: x for name, x in arguments.items() if name not in skipped}
        if "source_positions" in arguments:
            further["positions"] = arguments["source_positions"]
        states = _FixedBlocks(first, adapter)(states, **further)
        read, args, kwargs = reads[id(hidden)]
        hidden = read(states, *args, **kwargs)
    return _FixedBlocks([last], adapter)(hidden, **{**arguments, "source": states})


class _FixedBlocks(keras.layers.Layer):
    """Layers of a teacher, one after the other, without dropout, with the adapter of the teacher.

    The adapter of the student acts in the call around them.
    """

    def __init__(self, blocks: Any, adapter: str | None) -> None:
        super().__init__(dtype=blocks[0].dtype_policy, name=f"{blocks[0].name}_fixed")
        self.blocks = list(blocks)
        self.adapter = adapter

    def build(self, hidden_shape: Any) -> None:
        self.built = True

    def call(self, hidden: Tensor, training: bool | None = None, **arguments: Any) -> Tensor:
        acting = None if self.adapter is None else Acting(self.adapter, training=False)
        with act(acting):
            for block in self.blocks:
                hidden = block(hidden, training=False, **arguments)
        return hidden

    def compute_output_spec(self, hidden: Any, **arguments: Any) -> Any:
        return keras.KerasTensor(hidden.shape, self.compute_dtype)
