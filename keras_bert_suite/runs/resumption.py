"""Brings a model to the state of a checkpoint."""

import pathlib
from collections.abc import Iterable
from typing import Any

import grain
import keras

from keras_bert_suite.annotations import Arrays
from keras_bert_suite.replicas import has_joint_variables, take_first_share
from keras_bert_suite.replicas.processes import copy_from_leader, run_on_leader
from keras_bert_suite.runs.callback_states import select_arrays
from keras_bert_suite.runs.model_variables import assign_variables
from keras_bert_suite.runs.progress import Progress
from keras_bert_suite.runs.run_checkpoints import read_arrays
from keras_bert_suite.runs.torch_generators import PREFIX
from keras_bert_suite.training.gradient_sums import keep_on_leader


def check_resumable(
    dataset: Any,
    steps_per_epoch: int | None,
    steps_per_execution: int,
    progress: Progress,
    path: pathlib.Path | None,
) -> None:
    """Checks that a run can resume with these data, from the checkpoint at `path`."""
    if not isinstance(dataset, grain.MapDataset):
        raise ValueError(
            "TrainingCheckpoint needs data that can be entered in the middle: rows in memory or a "
            f"grain.MapDataset of batches, got {type(dataset).__name__}."
        )
    if steps_per_epoch is None:
        raise ValueError("The dataset has no end. Pass `steps_per_epoch`.")
    if progress.steps_per_epoch not in (None, steps_per_epoch):
        raise ValueError(
            f"{path} is of a run with {progress.steps_per_epoch} batches an epoch, got "
            f"{steps_per_epoch}. Train with the same data and batch size, or choose another "
            "directory."
        )
    if steps_per_epoch % steps_per_execution or progress.batches % steps_per_execution:
        raise ValueError(
            f"steps_per_execution={steps_per_execution} must divide the {steps_per_epoch} batches "
            f"of an epoch and the {progress.batches} batches that are done. Compile with "
            "steps_per_execution=1."
        )


def restore_model(model: keras.Model, path: pathlib.Path, batches: Iterable[Any]) -> Arrays:
    """Gives a compiled model, with a built optimizer, the variables of a checkpoint.

    The first of the `batches` to come serves to build the metrics. The result is a dict of name ->
    array. If processes share the run, the leading process alone reads the checkpoint. The others
    get the variables from it, and these arrays are the states of their generators and callbacks.
    Under JAX every process reads it, for its part of the variables.
    """
    # Under TensorFlow, Keras would otherwise make the metrics' variables during the first step.
    model._symbolic_build(data_batch=take_first_share(next(iter(batches))))
    arrays: dict[str, Any] = {}

    def read() -> Arrays:
        arrays.update(read_arrays(path))
        assign_variables(model, arrays, path)
        generators = {name: array for name, array in arrays.items() if name.startswith(PREFIX)}
        return {**generators, **select_arrays(arrays)}

    shared = read() if has_joint_variables() else run_on_leader(read)
    variables = [*model.trainable_variables, *model.non_trainable_variables]
    copy_from_leader([*variables, *model.optimizer.variables])
    keep_on_leader(model.optimizer)
    return arrays or shared
