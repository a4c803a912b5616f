"""A task with the hidden states of its encoder, and what its layers make of them."""

from typing import Any

import keras

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.heads.base.attention_maps import find_mask
from keras_bert_suite.heads.base.split_models import TaskPart
from keras_bert_suite.layers import BartBlock, SelfAttention, TransformerBlock
from keras_bert_suite.layers.adapters.adaptable import act_in
from keras_bert_suite.layers.attention.self_attention import expand_attention_mask
from keras_bert_suite.models.encoder import Encoder


class InnerStates:
    """The outputs and the hidden states of a task, in one pass, for techniques that read both.

    Attributes:
        model: the functional model from the inputs of the task to a dict: `outputs`, as the task
            has them, and `states`, a list of float (B, L, H), the embeddings and the output of each
            layer. It has the layers of the task. Where head and states need the same call of a
            layer, it is one call, with one dropout.
        num_layers: int.
        widths: list of the widths of the states.

    Raises:
        ValueError: if the encoder does not name its layers, or reads other rows than the task.
    """

    def __init__(self, task: Any) -> None:
        check_one_encoder(task)
        self.backbone, encoder = task.backbone, Encoder.of(task.backbone)
        output = task.backbone.output
        if isinstance(output, dict) and "sequence_output" not in output:
            raise ValueError(
                f"{with_article(task.backbone, 'A')} is no encoder, so it has no hidden states of "
                "the rows. Learn from the outputs alone: leave out `terms`."
            )
        layers = encoder.make_layer_model()
        if any(task.input.get(name) is not x for name, x in layers.input.items()):
            raise ValueError(
                f"{with_article(task, 'A')} cuts its rows before its encoder reads them, so the "
                "hidden states are of other rows. Learn from the outputs alone: leave out `terms`."
            )
        calls: dict[Any, Any] = {}
        outputs = inline_graph(keras.Model(task.input, task.output), task.input, calls)
        states = inline_graph(layers, dict(layers.input), calls)
        both = {"outputs": outputs, "states": states}
        self.model = TaskPart.of(task, task.input, both, "inner_states")
        self.blocks = encoder.list_calls()
        self.num_layers = len(states) - 1
        self.widths = [state.shape[-1] for state in states]

    @property
    def heads(self) -> list[int | None]:
        """The attention heads of each layer; None where they have no plain scores."""
        return [
            attention and attention.num_heads for attention in map(_find_attention, self.blocks)
        ]

    def count_heads(self, index: int) -> int:
        """The attention heads of layer `index`.

        Raises:
            ValueError: if the scores of its attention are not those of queries and keys alone.
        """
        block = self.blocks[index]
        attention = _find_attention(block)
        if attention is None:
            raise ValueError(
                f"The {type(block).__name__} of {with_article(self.backbone)} does not give its "
                "queries and keys. Learn from its HiddenStates, or take a BertBackbone or "
                "another encoder with plain attention."
            )
        return attention.num_heads

    def count_features(self, index: int) -> int:
        """The width of the heads of layer `index` together, which a removed head makes smaller."""
        return self.blocks[index].self_attention.query.units

    def project(self, index: int, states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values (B, heads, L, D) of layer `index`, with their positions.

        `states` are float (B, L, H), the hidden states that the layer reads. The adapter of the
        task acts, without dropout.
        """
        block = self.blocks[index]
        attention = block.self_attention
        with act_in(self.model, training=False):
            query, key, value = attention.project(block.prepare(states))
        return attention.place_queries(query, None), *attention.place_keys(key, value, None)

    def find_visible(self, inputs: dict[str, Tensor]) -> Tensor:
        """bool, broadcastable to (B, heads, L, L), whether a token may attend to another."""
        return expand_attention_mask(find_mask(self.backbone, inputs))


def _find_attention(block: Any) -> SelfAttention | None:
    """The attention of a block, if its scores are those of queries and keys alone."""
    attention = getattr(block, "self_attention", None)
    if not isinstance(block, TransformerBlock) or isinstance(block, BartBlock):
        return None
    plain = SelfAttention.compute_probabilities
    is_plain = getattr(type(attention), "compute_probabilities", None) is plain
    return attention if is_plain else None


def check_one_encoder(task: Any) -> None:
    """Raises a ValueError if a task has a second encoder, which has layers of the same names."""
    if getattr(task, "generator", None) is not None:
        raise ValueError(
            f"{with_article(task, 'A')} has two encoders, so its layers cannot be told apart. "
            "Train a Pretrainer or a MaskedLM so, or drop `technique`."
        )


def inline_graph(model: Any, inputs: Any, calls: dict[Any, Any], call_operation: Any = None) -> Any:
    """Runs the graph of a functional model on symbolic tensors, and those of models within it.

    `calls` has the outputs of the calls so far: a layer is not called on the same tensors again.
    `call_operation` is a function (operation, *args, **kwargs) in the place of the call.
    """

    def choose(operation: Any) -> Any:
        if isinstance(operation, keras.Model) and hasattr(operation, "_run_through_graph"):
            return lambda x, **_: inline_graph(operation, x, calls, call_operation)

        def call(*args: Any, **kwargs: Any) -> Any:
            leaves = keras.tree.flatten((args, kwargs))
            key = (
                id(operation),
                *(id(x) if isinstance(x, keras.KerasTensor) else repr(x) for x in leaves),
            )
            if key not in calls:
                run = operation if call_operation is None else call_operation
                own = () if call_operation is None else (operation,)
                calls[key] = run(*own, *args, **kwargs)
            return calls[key]

        return call

    if isinstance(inputs, dict):
        inputs = {name: inputs[name] for name in model.input}
    outputs = model._run_through_graph(inputs, operation_fn=choose)
    return outputs[0] if isinstance(outputs, (list, tuple)) and len(outputs) == 1 else outputs
