"""Trainings that must give the same on any number of replicas, with the same whole batches."""

import contextlib
import warnings

import keras
import numpy as np
from guest_techniques import AverageOfMoved
from small_tasks import make_task, predict, predicted_columns

from keras_bert_suite import (
    FGM,
    AdamW,
    BatchAllTriplet,
    BatchHardTriplet,
    CoSENT,
    InBatchNegatives,
    LoRA,
    MacroF1,
)

#: Of 11 rows in batches of 4, the last batch of each epoch has 3 rows.
NUM_ROWS, BATCH_SIZE, EPOCHS = 11, 4, 2

METRICS = ["accuracy", MacroF1, keras.metrics.AUC]

#: name -> (task of `small_tasks`, arguments of `AdamW`, further settings).
CASES = {
    # Replicas have unequal numbers of masked tokens.
    "pretraining": ("pretraining", {}, {}),
    "weighted rows": ("texts", {}, {"weighted": True}),
    "summed rows": (
        *("texts", {}),
        {"loss": keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")},
    ),
    "clipping": ("pairs", {"global_clipnorm": 0.05}, {}),
    "accumulation": ("texts", {"gradient_accumulation_steps": 2}, {"metrics": METRICS}),
    "words": ("words", {}, {}),
    # Padding is no part of the mean, whatever the loss.
    "focal words": (
        *("words", {}),
        {
            "loss": keras.losses.CategoricalFocalCrossentropy(from_logits=True),
            "metrics": METRICS,
        },
    ),
    "chains": ("chains", {}, {}),
    "spans": ("spans", {}, {}),
    "negatives": ("vectors", {}, {"loss": InBatchNegatives(), "unlabelled": True}),
    "ranks": ("vectors", {}, {"loss": CoSENT()}),
    # A replica has no positive of its own rows.
    "all triplets": ("vectors", {}, {"loss": BatchAllTriplet(), "has_labels": True}),
    "hard triplets": ("vectors", {}, {"loss": BatchHardTriplet("soft"), "has_labels": True}),
    "packed": ("texts", {}, {"packed": True}),
    # A replica has no row of the last batch.
    "one row left": ("pretraining", {}, {"rows": 9}),
    "one text left": ("texts", {}, {"rows": 9}),
    "cached and one row left": (
        "vectors",
        {},
        {"loss": InBatchNegatives(), "unlabelled": True, "rows": 9, "cache_batch_size": 3},
    ),
    "a step that is not finite": ("texts", {}, {"weighted": True, "bad_row": 5}),
    "optimizer of Keras": ("texts", {"keras": True}, {}),
    # Each process would draw other matrices.
    "few weights": ("texts", {}, {"adapt": LoRA(2, targets=".*")}),
    # A random start would be another one for each replica's rows.
    "moved embeddings": ("pretraining", {}, {"technique": AverageOfMoved(first_norm=0.0)}),
    "moved with one row left": ("texts", {}, {"technique": FGM(0.5), "rows": 9}),
}


#: The settings that `compile` takes.
COMPILED = {"loss", "metrics", "cache_batch_size", "technique"}


def run_case(name, seed=0, scope=contextlib.nullcontext):
    """Trains a task on its share of each batch. Args, Returns: as for the functions below."""
    return train_case(name, *build_case(name, seed, scope))


def build_case(name, seed=0, scope=contextlib.nullcontext):
    """(a compiled task, its columns).

    Args:
        name: str, one of `CASES`.
        seed: int, of the weights and of the random generators.
        scope: function without arguments, the scope in which the task is made and compiled.
    """
    kind, optimizer, settings = CASES[name]
    keras.utils.clear_session(free_memory=False)  # A process of its own numbers its layers anew.
    keras.utils.set_random_seed(seed)
    with scope():
        task, columns = make_task(kind, "none" if kind == "pretraining" else "SegmentPacker")
        if "adapt" in settings:
            task.adapt(settings["adapt"], verbose=False)
        if "keras" in optimizer:
            optimizer = keras.optimizers.Adam(1e-3, epsilon=1e-4, global_clipnorm=0.05, name="adam")
        else:
            # With a small epsilon, Adam makes large steps of what is rounding in a gradient of 0.
            optimizer = AdamW(1e-3, epsilon=1e-4, **optimizer)
        task.compile(optimizer, **{name: settings[name] for name in COMPILED & settings.keys()})
    return task, columns


def train_case(name, task, columns, epochs=EPOCHS):
    """Trains a task of `build_case`.

    Returns:
        dict of name -> array: the losses and metrics of each epoch and its validation, the answers
        for all rows, all weights, and the variables of the optimizer, which sum the gradients.
    """
    kind, _, settings = CASES[name]
    x, y, *weights = (_take(part, settings.get("rows", NUM_ROWS)) for part in columns)
    if settings.get("unlabelled"):
        y = None
    asked = x
    if settings.get("has_labels"):
        x, y = x[0], np.arange(len(y)) % 2
    if settings.get("weighted"):
        weights = [np.linspace(0, 2, len(y), dtype="float32")]
    if "bad_row" in settings:
        weights[0][settings["bad_row"]] = 3e38
    rows = {"x": x, "y": y, "sample_weight": weights[0] if weights else None}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* the last batch of each epoch has one row")
        history = task.fit(
            **rows,
            batch_size=BATCH_SIZE,
            epochs=epochs,
            shuffle=False,
            sequence_packing=settings.get("packed", False),
            validation_data=tuple(part for part in rows.values() if part is not None),
            verbose=0,
        ).history
    # Whether a span is an answer depends on the sign of a score, which may be rounding.
    rows = [] if kind == "spans" else predicted_columns(task, asked)
    answers = predict(task, x=rows, batch_size=BATCH_SIZE) if len(rows) else []
    found = {f"answers {i}": np.array(a) for i, a in enumerate(keras.tree.flatten(answers))}
    found |= {f"log {key}": np.array(values) for key, values in history.items()}
    state = [*task.trainable_variables, *task.non_trainable_variables]
    variables = {"state": state, "optimizer": task.optimizer.variables}
    for group, members in variables.items():
        for number, variable in enumerate(members):
            if keras.backend.is_float_dtype(variable.dtype):
                array = keras.ops.convert_to_numpy(variable)
                found[f"{group} {number} {variable.path}"] = np.array(array)
    found["steps"] = np.array(keras.ops.convert_to_numpy(task.optimizer.iterations))
    return found


def _take(part, rows):
    if part is None:
        return None
    if isinstance(part, dict):
        return {name: _take(array, rows) for name, array in part.items()}
    if isinstance(part, tuple):
        return tuple(_take(column, rows) for column in part)
    return part[:rows]


def check_same(found, wanted, tolerance=1e-6):
    """Checks that two results of `run_case` are equal to rounding."""
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=tolerance, err_msg=name)
