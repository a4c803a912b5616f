"""Copies all variables of a compiled model to arrays, and assigns arrays to them."""

import collections
import re
from collections.abc import Sequence
from typing import Any

import keras
import ml_dtypes  # noqa: F401  NumPy then knows bfloat16.
import numpy as np
from keras import ops

from keras_bert_suite.annotations import Arrays
from keras_bert_suite.replicas import has_joint_variables

#: Each `fit` writes these variables before its first step.
_OF_A_FIT = re.compile(r"(^|/)schedule_numbers$")


def _automatic_name(name: str) -> str:
    """How Keras begins the name of an unnamed object of a class, "bert_backbone"."""
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", re.sub(r"\W+", "", name))
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()


def named_variables(model: keras.Model) -> dict[str, keras.Variable]:
    """The state of a compiled model, dict of name -> variable.

    The names do not depend on earlier models: weights and random states are `model/...`, variables
    of the optimizer `optimizer/...`, variables of the metrics `metrics/...`, and saved variables of
    a technique `technique/...`. Variables with equal names are numbered in the order of the
    model: `...`, `...#2`, `...#3`.
    """
    # Keras keeps the metrics of `compile` in one metric.
    metrics = [metric for each in model.metrics for metric in getattr(each, "metrics", [each])]
    owners = [*model._flatten_layers(), *metrics, model.optimizer]
    variables = [*model.variables, *model.metrics_variables]
    classes = {"SeedGenerator", *(type(each).__name__ for each in (*owners, *variables))}
    kinds = {
        "metrics": model.metrics_variables,
        "optimizer": model.optimizer.variables,
        "model": model.variables,
    }
    # Keras names an unnamed object after its class, and appends a number. The number depends on
    # the objects that were built before.
    automatic = "|".join(sorted(re.escape(_automatic_name(name)) for name in classes))
    number = re.compile(rf"(?<![a-z0-9])({automatic})_\d+(?=/|$)")
    # The name of a moment begins with the path of its weight, written with underscores.
    weights = {
        variable.path.replace("/", "_"): number.sub(r"\1", variable.path).replace("/", "_")
        for variable in model.variables
    }
    owned = {} if model.technique_state is None else model.technique_state.named
    for name, variable in owned.items():
        weights[variable.path.replace("/", "_")] = f"technique_{name}".replace("/", "_")
    weight = re.compile("|".join(map(re.escape, sorted(weights, key=len, reverse=True))))
    named = {f"technique/{name}": variable for name, variable in owned.items()}
    known = set()
    for kind, variables in kinds.items():
        repeats: collections.Counter[str] = collections.Counter()
        for variable in variables:
            if id(variable) in known or _OF_A_FIT.search(variable.path):
                continue
            known.add(id(variable))
            owner, _, last = number.sub(r"\1", variable.path).rpartition("/")
            if kind == "optimizer" and (found := weight.match(last)):
                last = weights[found[0]] + last[found.end() :]
            name = "/".join(filter(None, (kind, owner, last)))
            repeats[name] += 1
            named[name if repeats[name] == 1 else f"{name}#{repeats[name]}"] = variable
    return named


def copy_variables(model: keras.Model, prefix: str = "") -> Arrays:
    """dict of name -> array, a copy of all variables whose names begin with `prefix`.

    Processes of JAX that hold the variables together must all call it. A weight that is not finite
    is a FloatingPointError, because a checkpoint of such a state is useless.
    """
    # During an epoch Keras' JAX trainer keeps the state outside of the variables.
    if keras.config.backend() == "jax":
        model.jax_state_sync()
    arrays = {}
    for name, variable in named_variables(model).items():
        if not name.startswith(prefix):
            continue
        dtype = keras.backend.standardize_dtype(variable.dtype)
        array = np.array(_read_whole(variable), dtype, order="C")
        if name.startswith("model/") and not np.isfinite(array).all():
            raise FloatingPointError(
                f"{variable.path} holds values that are not finite. Nothing was saved, and the "
                "last checkpoint is intact. Train with `AdamW` or `Lamb` of keras_bert_suite, "
                "which skip steps that are not finite, or lower the learning rate."
            )
        arrays[name] = array
    return arrays


def _read_whole(variable: keras.Variable) -> Any:
    """The value of a variable, of which processes of JAX may hold a part each."""
    if not has_joint_variables() or variable.value.is_fully_replicated:
        return ops.convert_to_numpy(variable)
    from jax.experimental.multihost_utils import process_allgather

    return process_allgather(variable.value, tiled=True)


def assign_variables(model: keras.Model, arrays: Arrays, source: object) -> None:
    """Brings a model to a state that `copy_variables` has copied, on any backend.

    Names of other kinds are ignored. If names, shapes or dtypes differ from the model's, nothing
    is assigned. `source` is the path of the arrays, for the error.
    """
    variables = named_variables(model)
    # Of a technique that draws no numbers, a state may lack the random state.
    if "technique/rng" not in arrays:
        variables.pop("technique/rng", None)
    wanted = {name: _kind(v.shape, v.dtype) for name, v in variables.items()}
    found = {
        name: _kind(array.shape, array.dtype.name)
        for name, array in arrays.items()
        if name.startswith(("model/", "optimizer/", "metrics/", "technique/"))
    }
    differences = [
        f"{name}: {found.get(name, 'missing')}, wanted {wanted.get(name, 'none')}"
        for name in sorted(wanted.keys() | found.keys(), key=lambda n: (n[:5] != "model", n))
        if wanted.get(name) != found.get(name)
    ]
    if differences:
        raise ValueError(
            f"{source} is the state of another model or optimizer: {'; '.join(differences[:5])}. "
            "Build and compile the model that it was saved from, or choose another directory."
        )
    for name, variable in variables.items():
        assign_value(variable, arrays[name])


def assign_value(variable: keras.Variable, array: np.ndarray) -> None:
    """Gives a variable the value that `copy_variables` has copied.

    If processes of JAX hold the variable together, each places its parts. `assign` would compare
    whole values among them, and NaN in a metric is not equal to itself.
    """
    array = array.astype(keras.backend.standardize_dtype(variable.dtype))
    if not has_joint_variables():
        variable.assign(array)
        return
    import jax

    sharding = variable.value.sharding
    variable.assign(jax.make_array_from_callback(array.shape, sharding, lambda i: array[i]))


def _kind(shape: Sequence[int], dtype: Any) -> str:
    """Dtype and shape as text. All integer dtypes are "int", as backends use different widths."""
    dtype = re.sub(r"^u?int\d+$", "int", keras.backend.standardize_dtype(dtype))
    return f"{dtype} {tuple(shape)}"
