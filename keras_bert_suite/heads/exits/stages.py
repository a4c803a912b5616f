"""Runs an encoder exit by exit: rows that are done leave the batch, and the others go on."""

from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.heads.base.split_models import TaskPart


class Stages:
    """The models between the exits of a task, which share its weights.

    Stage k goes from the states (B, L, H) at exit k - 1, and the inputs of the encoder, to the
    states and the logits (B, C) at exit k. The first has no states, and the last returns none.

    Args:
        models: list of E `keras.Model`.
        layers: list of E int, the layers of the encoder up to each exit.
    """

    def __init__(self, models: list[keras.Model], layers: list[int]) -> None:
        self.models = models
        self.layers = np.array(layers, "int32")
        self._run = [_compile(model) for model in models]

    def predict(self, x: Mapping[str, np.ndarray], rule: Any) -> dict[str, np.ndarray]:
        """The logits of the exit at which each row leaves.

        Args:
            x: dict of (B, ...), the inputs of the encoder.
            rule: `Patience` or `Certainty`.

        Returns:
            dict of `logits`, float32 (B, C), and `layers`, int32 (B,).
        """
        inputs = {name: ops.convert_to_tensor(array) for name, array in x.items()}
        rows = np.arange(len(next(iter(x.values()))))
        left, layers = [], np.zeros(len(rows), "int32")
        states, kept = None, None
        for run, layer in zip(self._run, self.layers, strict=True):
            states, found = run(take_inputs(inputs, states))
            logits = ops.convert_to_numpy(ops.cast(found, "float32"))[: len(rows)]
            leaves, kept = rule.step(logits, kept)
            if states is None:
                leaves = np.ones_like(leaves)
            left.append((rows[leaves], logits[leaves]))
            layers[rows[leaves]] = layer
            stay = np.flatnonzero(~leaves)
            if not len(stay):
                break
            if len(stay) < len(rows):
                places = _fill(stay)
                inputs, states = keras.tree.map_structure(
                    lambda tensor, places=places: ops.take(tensor, places, axis=0),
                    (inputs, states),
                )
                kept = keras.tree.map_structure(lambda array, stay=stay: array[stay], kept)
                rows = rows[stay]
        order, logits = map(np.concatenate, zip(*left, strict=True))
        return {"logits": logits[order.argsort()], "layers": layers}


def take_inputs(inputs: dict[str, Any], states: Any) -> dict[str, Any]:
    """The inputs of a stage by name. The first has no states."""
    return inputs if states is None else {**inputs, "states": states}


def make_stage_models(task: Any, states: list[Tensor], logits: list[Tensor]) -> list[keras.Model]:
    """Cuts the graph of an encoder with exits at its states.

    What all layers share, such as masks and positions, each stage computes for its rows anew.

    Args:
        task: `EarlyExitClassifier`, whose adapter acts in the stages.
        states: list of E - 1 symbolic (B, L, H), at each exit but the last.
        logits: list of E symbolic (B, C).
    """
    models: list[keras.Model] = []
    for before, after, found in zip([None, *states], [*states, None], logits, strict=True):
        taken = take_inputs(task.backbone.input, before)
        given = {"logits": found} if after is None else {"logits": found, "states": after}
        # Keras' own model from the states would take the layers that ALBERT shares for its input.
        own = {name: _make_input(name, tensor) for name, tensor in taken.items()}
        outputs = keras.Function(taken, given).call(own)
        models.append(TaskPart.of(task, own, outputs, f"stage_{len(models)}"))
    return models


def _make_input(name, tensor):
    return keras.Input(batch_shape=tensor.shape, dtype=tensor.dtype, name=name)


def _compile(model: keras.Model) -> Callable[[Any], tuple[Any, Any]]:
    """function(inputs) -> (states or None, logits), as fast as the backend computes a model."""
    backend = keras.config.backend()
    if backend == "jax":
        import jax

        call = jax.jit(
            lambda weights, x: model.stateless_call(*weights, x, training=False)[0],
        )

        def run(x):
            variables = model.trainable_variables, model.non_trainable_variables
            return split_outputs(call([[v.value for v in part] for part in variables], x))

    elif backend == "tensorflow":
        import tensorflow as tf

        call = tf.function(lambda x: model(x, training=False), reduce_retracing=True)

        def run(x):
            return split_outputs(call(x))

    else:
        import torch

        def run(x):
            with torch.no_grad():
                return split_outputs(model.call(x, training=False))

    return run


def split_outputs(outputs: dict[str, Any]) -> tuple[Any, Any]:
    """(states or None, logits) of a stage."""
    return outputs.get("states"), outputs["logits"]


def _fill(places: np.ndarray) -> np.ndarray:
    """int (P,), some rows of a batch. JAX compiles a model for each number of rows.

    So the last row is repeated up to a power of 2. A row does not depend on the others.
    """
    if keras.config.backend() != "jax":
        return places
    size = 1 << (len(places) - 1).bit_length()
    return np.pad(places, (0, size - len(places)), mode="edge")
