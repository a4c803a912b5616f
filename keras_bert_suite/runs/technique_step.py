"""A training step by the technique of a model."""

import copy
import functools
from typing import Any

import keras
from keras import ops

from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.layers import SHIFT_ARGUMENT, BertEmbeddings
from keras_bert_suite.layers.norms import exact_second_derivatives
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.replicas import count_replicas
from keras_bert_suite.runs.packed_layout import check_encodes_whole_batches
from keras_bert_suite.runs.torch_generators import copy_own_generators, repeated
from keras_bert_suite.training import Technique
from keras_bert_suite.training.techniques.differentiation import (
    differentiate,
    differentiate_twice,
    without_recording,
)
from keras_bert_suite.training.techniques.technique import Batch, Gradients
from keras_bert_suite.training.techniques.technique_state import TechniqueState


def set_technique(model: Any, technique: Any) -> None:
    """Gives a model a copy of the technique of `compile`, and the technique's variables.

    So several models may be compiled with one technique.

    Raises:
        ValueError: if it is no technique, or moves embeddings and the model cannot.
    """
    if technique is not None:
        _check_technique(model, technique)
    model.technique = None
    # `setattr` of Keras would take the technique's variables for weights of the model.
    vars(model)["technique_state"] = None
    if technique is not None:
        technique = copy.copy(technique)
        vars(model)["technique_state"] = TechniqueState(technique, model)
        model.technique = technique


def _check_technique(model, technique):
    if not isinstance(technique, Technique):
        raise ValueError(
            f"technique must be a Technique, such as FGM(), or None, got {technique!r}."
        )
    if not technique.moves_embeddings:
        return
    name = type(technique).__name__
    if not has_movable_embeddings(model):
        raise ValueError(
            f"{name} moves the embeddings of tokens, and those of "
            f"{with_article(model.backbone)} cannot be moved. Take an encoder of this package, or "
            "drop `technique`."
        )
    problem = f"{name} cannot move the embeddings of all"
    check_encodes_whole_batches(model, problem, "`technique`")


def has_movable_embeddings(model: Any) -> bool:
    """Whether a shift can be added to the embeddings of tokens, within the encoder."""
    return isinstance(Encoder.of(model.backbone).embeddings, BertEmbeddings)


def check_memory(model: Any, x: Any) -> None:
    """Raises a ValueError if rows continue others, and a model with a memory would not know it."""
    reads = () if model.technique is None else model.technique.reads
    if (
        isinstance(x, dict)
        and "continues" in x
        and "memory" in model.input
        and "continues" not in reads
    ):
        raise ValueError(
            "Each row continues a row of the batch before, as the array `continues` says, and this "
            f"{type(model).__name__} would begin each row without its memory. Call "
            "compile(technique=CarriedMemory(lanes=batches.batch_size)), or build the backbone "
            "without memory_length."
        )


def take_step(model: Any, *arguments: Any) -> Any:
    """A training step. Arguments and result: see Keras' `train_step`."""
    *states, batch = arguments
    if keras.config.backend() == "jax":
        return _take_stateless_step(model, states[0], batch)
    if not getattr(model._compile_loss, "built", True):  # TensorFlow builds losses within a step.
        model._symbolic_build(data_batch=batch)
    gradients, logs = _make_gradients(model, batch)
    with without_recording():
        model.optimizer.apply(gradients, model.trainable_variables)
        model.technique.after_update()
    return logs


def _take_stateless_step(model, state, batch):
    trainable, _, optimizer, _ = state
    gradients, logs, non_trainable, metrics = make_stateless_gradients(model, state, batch)
    state = update_statelessly(model, trainable, non_trainable, optimizer, gradients)
    return logs, (*state, metrics)


def make_stateless_gradients(model: Any, state: Any, batch: Any) -> tuple[Any, ...]:
    """The first part of a training step of JAX; the update of the weights follows.

    The result is the gradients of the trainable variables, the logs, and the new values of the
    other variables of the model and its metrics.
    """
    kinds = (
        model.trainable_variables,
        model.non_trainable_variables,
        model.optimizer.variables,
        model.metrics_variables,
    )
    with keras.StatelessScope(_pair(kinds, state)) as scope:
        gradients, logs = _make_gradients(model, batch)
    _, non_trainable, _, metrics = _read(scope, kinds)
    return gradients, logs, non_trainable, metrics


def update_statelessly(
    model: Any, trainable: Any, non_trainable: Any, optimizer: Any, gradients: Any
) -> tuple[Any, ...]:
    """The second part of a training step of JAX.

    The result is the new values of the trainable variables, the other variables and the variables
    of the optimizer.
    """
    trainable, optimizer = model.optimizer.stateless_apply(optimizer, gradients, trainable)
    if model.technique is None:
        return trainable, non_trainable, optimizer
    kinds = model.trainable_variables, model.non_trainable_variables
    with keras.StatelessScope(_pair(kinds, (trainable, non_trainable))) as scope:
        model.technique.after_update()
    return *_read(scope, kinds), optimizer


def _pair(kinds, values):
    """(variable, value) of lists of variables and of their values."""
    pairs = [zip(kind, each, strict=True) for kind, each in zip(kinds, values, strict=True)]
    return [pair for kind in pairs for pair in kind]


def _read(scope, kinds):
    """The values of lists of variables in a scope."""
    return [[scope.get_current_value(variable) for variable in kind] for kind in kinds]


def _make_gradients(model, batch):
    """(the gradients of the trainable variables by the technique of a model, the logs)."""
    technique = model.technique or Technique()
    x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(batch)
    # `train_on_batch` of PyTorch hands over arrays of NumPy.
    check_memory(model, x)
    batch = Batch(keras.tree.map_structure(ops.convert_to_tensor, x), y, sample_weight)
    if technique.moves_embeddings:
        shape = (*ops.shape(batch.x["padding_mask"]), model.backbone.embeddings.embedding_dim)
        batch = batch._replace(shift=ops.zeros(shape))
    passes = _Passes(model, batch, technique)
    result = technique.gradients(passes.differentiate, batch, passes.rng)
    if not isinstance(result, Gradients) or result.weights is None:
        raise ValueError(
            f"{type(technique).__name__}.gradients must return Gradients with weights, got "
            f"{with_article(result)}. Return what `differentiate()` returns, or a sum of several."
        )
    # The logs are about the first pass of the sum.
    _assign(model.metrics_variables, result.metrics)
    num_rows = ops.shape(keras.tree.flatten(batch.x)[0])[0]
    # As Keras' own step does. Under a strategy of TensorFlow losses are divided by the replicas.
    scale = count_replicas() if keras.config.backend() == "tensorflow" else 1
    model._loss_tracker.update_state(result.loss * scale, num_rows)
    return result.weights, model.compute_metrics(batch.x, y, result.outputs, sample_weight)


class _Passes:
    """The passes of a technique over a batch. The next pass goes on with the changes of a pass."""

    def __init__(self, model, batch, technique):
        self.model = model
        self.technique = technique
        self.rng = None if model.technique is None else model.technique_state.rng
        self.batch = batch
        self.weights = model.trainable_variables
        self.states = model.non_trainable_variables
        self.metrics = model.metrics_variables
        self.scale = model.optimizer.scale_loss(ops.ones(()))
        self.first = None

    def differentiate(
        self, shift=None, *, loss=None, weights=True, by_shift=True, same_dropout=False
    ):
        """See `Technique.gradients`."""
        values = [variable.value for variable in self.weights] if weights else []
        by_shift = by_shift and self.batch.shift is not None
        if by_shift:
            values.append(self.batch.shift if shift is None else shift)
        repeats = same_dropout and self.first is not None
        if self.first is None:
            self.first = self._copy_random_states()
        states, generators = self.first if repeats else ({}, None)
        run = functools.partial(self._run, loss or self.technique.loss, states, weights)
        with repeated(generators):
            gradients, (loss, outputs, states, metrics) = differentiate(run, values)
        if not repeats:  # Otherwise the first pass has drawn these numbers.
            _assign(self.states, states)
        found = gradients.pop() / self.scale if by_shift else None
        return Gradients(gradients if weights else None, found, loss, outputs, metrics)

    def _copy_random_states(self):
        """(id of a variable -> value, the states of PyTorch's generators)."""
        integers = [v for v in self.states if not keras.backend.is_float_dtype(v.dtype)]
        variables = [v for v in integers if len(v.shape) < 2]  # No matrices of 8 bits.
        return {id(v): ops.copy(v.value) for v in variables}, copy_own_generators()

    def _run(self, loss, random_states, weights, values):
        """(scaled loss, (loss, outputs, new states, new metrics)), as a pure function.

        `values` are the weights, if they are asked for, and the shift, if it is.
        """
        batch = self.batch
        if len(values) > (len(self.weights) if weights else 0):
            *values, shift = values
            batch = batch._replace(shift=shift)
        held = [] if weights else self.weights
        held = [*held, *self.states, *self.metrics]
        mapping = [
            *zip(self.weights, values, strict=False),
            *((v, random_states.get(id(v), _hold(v))) for v in held),
        ]
        variables = [*self.weights, *self.states, *self.metrics]
        with keras.StatelessScope(mapping, collect_losses=True) as scope:
            before = dict(scope.state_mapping)
            found = loss(_Forward(self.model, scope, variables), batch, self.rng)
        loss, outputs = self._check_loss(found)
        states, metrics = (
            [_find_new(scope, before, v) for v in variables]
            for variables in (self.states, self.metrics)
        )
        return loss * self.scale, (loss, outputs, states, metrics)

    def _check_loss(self, found):
        """The pair that a loss of the technique must return."""
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            raise ValueError(
                f"A loss of {type(self.technique).__name__} must return (the scalar to "
                f"differentiate, the outputs for the metrics), got {with_article(found)}. Return "
                "the outputs of `forward(batch)` beside it."
            )
        return found


class _Forward:
    """See `Forward` in training/techniques/technique.py."""

    def __init__(self, model, scope, variables):
        self.model = model
        self.scope = scope
        self.variables = variables

    def __call__(self, batch):
        outputs = self.compute_outputs(batch)
        return self.compute_loss(batch, outputs), outputs

    def compute_outputs(self, batch, part=None):
        x = batch.x if batch.shift is None else {**batch.x, SHIFT_ARGUMENT: batch.shift}
        return (self.model if part is None else part)(x, training=True)

    def compute_loss(self, batch, outputs):
        return self.model.compute_loss(
            batch.x, batch.y, outputs, batch.sample_weight, training=True
        )

    def differentiate(self, batch):
        scope, variables = self.scope, self.variables
        values = [(variable, scope.get_current_value(variable)) for variable in variables]

        # The changes of variables leave the function as results, or JAX would lose them.
        def run(shift):
            with keras.StatelessScope(values, collect_losses=True) as inner:
                before = dict(inner.state_mapping)
                forward = _Forward(self.model, inner, variables)
                loss, outputs = forward(batch._replace(shift=shift))
            return loss, (outputs, [_find_new(inner, before, v) for v in variables])

        with exact_second_derivatives():
            loss, gradient, (outputs, changes) = differentiate_twice(run, batch.shift)
        for variable, value in zip(variables, changes, strict=True):
            if value is not None:
                scope.add_update((variable, value))
        return loss, outputs, gradient


def _hold(variable):
    """The value of a variable by which a pass does not differentiate."""
    return ops.stop_gradient(variable.value) if variable.trainable else variable.value


def _find_new(scope, before, variable):
    """The value of a variable in a scope, or None if the scope has not changed it."""
    value = scope.get_current_value(variable)
    return None if value is before[id(variable)] else value


def _assign(variables, values):
    for variable, value in zip(variables, values, strict=True):
        if value is not None:
            variable.assign(value)
