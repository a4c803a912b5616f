"""How much the loss of a task depends on each attention head and on each feed-forward unit."""

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert_suite.annotations import Inputs, Labels
from keras_bert_suite.argument_checks import check_integer, check_share
from keras_bert_suite.heads.base.input_checks import check_in_memory
from keras_bert_suite.layers.gates import hold_gates
from keras_bert_suite.models.pruned_encoder import (
    HEADS,
    UNITS,
    check_prunable,
    count_heads,
    count_units,
)
from keras_bert_suite.runs.batches import evaluation_batches, read
from keras_bert_suite.training.techniques.differentiation import differentiate

_COUNTS = {HEADS: count_heads, UNITS: count_units}


def choose_parts(
    task: Any,
    kind: str,
    x: Inputs,
    y: Labels,
    share: float,
    step: float,
    by_layer: bool,
    batch_size: int,
) -> list[list[int]]:
    """Chooses the parts that stay: the least important ones go, some at a time.

    After each step the importance is measured again, without the parts that are gone.

    Args:
        task: a task on a `TextEncoder`.
        kind: `HEADS` or `UNITS`.
        x, y: as for `evaluate`, in memory.
        share: float, of all parts, that go.
        step: float, the share of all parts that goes at a time.
        by_layer: bool, whether layers may lose different numbers of parts.
        batch_size: int.

    Returns:
        list of lists of int, the parts that stay of each layer.
    """
    check_share("share", share)
    check_share("step", step, positive=True)
    check_integer("batch_size", batch_size, at_least=1)
    check_prunable(task.backbone, kind)
    masks = [np.ones(count, "float32") for count in _COUNTS[kind](task.backbone)]
    goals = list(_list_goals(masks, share, step, by_layer))
    batches = list(_pack(task, x, y, batch_size)) if goals else []
    for goal in goals:
        importance = measure_importance(task, kind, batches, masks)
        _remove(masks, importance, goal)
    return [np.flatnonzero(mask).tolist() for mask in masks]


def _list_goals(
    masks: list[np.ndarray], share: float, step: float, by_layer: bool
) -> Iterator[list[int] | int]:
    """How many parts are gone after each step: of all layers together, or of each layer."""
    counts = [len(mask) for mask in masks]
    goal: list[int] | int = 0 if by_layer else [0] * len(counts)
    for number in range(1, int(np.ceil(share / step - 1e-9)) + 1):
        reached, before = min(number * step, share), goal
        if by_layer:  # A layer keeps a part.
            goal = min(round(reached * sum(counts)), sum(counts) - len(counts))
        else:
            goal = [min(round(reached * count), count - 1) for count in counts]
        if goal != before:  # A step may be less than one part.
            yield goal


def _remove(masks: list[np.ndarray], importance: list[np.ndarray], goal: list[int] | int) -> None:
    """Sets the masks of the least important parts to 0, until as many as `goal` says are gone."""
    order = sorted(
        (float(score), layer, part)
        for layer, scores in enumerate(importance)
        for part, score in enumerate(scores)
        if masks[layer][part]
    )
    gone = [int(np.sum(mask == 0)) for mask in masks]
    for _, layer, part in order:
        if isinstance(goal, list):
            is_enough = gone[layer] >= goal[layer]
        else:
            is_enough = sum(gone) >= goal
        if not is_enough and gone[layer] + 1 < len(masks[layer]):
            masks[layer][part] = 0
            gone[layer] += 1


def measure_importance(
    task: Any, kind: str, batches: list[Any], masks: list[np.ndarray]
) -> list[np.ndarray]:
    """The importance of the parts of each layer, of norm 1 in a layer.

    It is the mean over the rows of the absolute derivative of the loss of a row by a factor of the
    part, at 1 for parts that are there and at 0 for others. Where the loss is a mean over the
    tokens or pairs of a batch, a row has its part of the mean.

    Args:
        task: a compiled task.
        kind: `HEADS` or `UNITS`.
        batches: list of (inputs, labels, weights).
        masks: list of float32, for each layer 1 for parts that are there.

    Returns:
        list of float64, 0 for parts that are not there.
    """
    blocks = task.backbone.transformer_layers
    layers = [block.self_attention for block in blocks] if kind == HEADS else blocks
    totals = [np.zeros(len(mask)) for mask in masks]
    for x, y, weights in batches:
        num_rows = len(keras.tree.flatten(x)[0])
        gates = [ops.convert_to_tensor(np.tile(mask, (num_rows, 1))) for mask in masks]

        def find_loss(values: list[Any], x: Any = x, y: Any = y, weights: Any = weights) -> Any:
            gates = dict(zip(layers, values, strict=True))
            # What a loss adds to metrics and states is dropped.
            with keras.StatelessScope(), hold_gates(gates):
                outputs = task(x, training=False)
                return task.compute_loss(x, y, outputs, weights, training=False), ()

        gradients, _ = differentiate(find_loss, gates)
        for total, gradient in zip(totals, gradients, strict=True):
            if gradient is not None:  # No output depends on the layer.
                # The loss is a mean over the rows.
                total += num_rows * np.abs(ops.convert_to_numpy(gradient)).sum(axis=0)
    totals = [total * mask for total, mask in zip(totals, masks, strict=True)]
    return [total / (np.linalg.norm(total) or 1.0) for total in totals]


def _pack(task: Any, x: Inputs, y: Labels, batch_size: int) -> Iterator[tuple[Any, Any, Any]]:
    """The batches of an evaluation, as tensors."""
    check_in_memory(x)
    batches = evaluation_batches(task.data, read(task, x, y, labelled=True), batch_size)
    for number in range(len(batches.dataset)):
        rows = batches.dataset[number]
        inputs, labels, weights = (
            None if part is None else keras.tree.map_structure(ops.convert_to_tensor, part)
            for part in keras.utils.unpack_x_y_sample_weight(batches.pack(rows))
        )
        yield inputs, labels, weights
