"""Predicts rows or a dataset: computes outputs batch by batch, and has them decoded."""

import contextlib
import itertools

import keras
import numpy as np

from keras_bert_suite.data.input_dataset import num_batches
from keras_bert_suite.data.passes import read_batches
from keras_bert_suite.data.rows import Rows
from keras_bert_suite.replicas import drop_copies, find_group, has_joint_variables
from keras_bert_suite.replicas.process_watch import ProcessWatch
from keras_bert_suite.replicas.processes import compare_batches
from keras_bert_suite.runs.batches import (
    Batches,
    batch_rows,
    choose_size,
    pack_elements,
    pack_rows,
)
from keras_bert_suite.runs.joint_start import check_shared
from keras_bert_suite.runs.weight_lock import lock_weights


def watch_prediction(callbacks):
    """A context that watches the processes of a prediction, if they predict together.

    It yields `callbacks` with those of the watch.
    """
    if not has_joint_variables():  # Each process of PyTorch predicts by itself.
        return contextlib.nullcontext(callbacks)
    return ProcessWatch("predict").watch(callbacks)


def predict(
    model,
    data,
    given,
    batch_size,
    steps,
    decode,
    condense=None,
    callbacks=None,
    verbose="auto",
):
    """The answers of a model for rows or a dataset, in their order.

    Several threads may call it. Under JAX, threads wait for each other if their models share a
    backbone. So a dataset may not predict with the same backbone in a thread of its own.

    Args:
        model: task.
        data: the data of the task, such as `TextData`.
        given: `Rows`, or a user's dataset.
        batch_size, steps, verbose, callbacks: as for `Task.predict`.
        decode: function(outputs, windows). `windows` are the `Rows` that the model has seen. If
            they are not known any more, as those of a dataset, they have no columns. Of `outputs`,
            or of each array in it, element i belongs to entry i of `windows`.
        condense: function(outputs, windows) that reduces the outputs for a batch to the values that
            `decode` needs. It is for outputs that are too large to be kept. `windows` has the class
            of the batch's rows, but may hold more rows.
    """
    if has_joint_variables() and not find_group().leads:
        verbose = 0
    with lock_weights(model):
        kwargs = {"verbose": verbose, "callbacks": callbacks}
        if not isinstance(given, Rows):
            return _predict_dataset(model, data, given, steps, decode, condense, **kwargs)
        if steps is not None:
            given = given.take(slice(steps * choose_size(batch_size)))
        return _predict_rows(model, data, given, batch_size, decode, condense, **kwargs)


def _predict_rows(model, data, rows, batch_size, decode, condense, **kwargs):
    windows = data.window(rows)
    if not len(windows):
        _check_shared(model, None, 0)
        return decode(_no_outputs(model), windows)
    batches, visited = batch_rows(windows, batch_size, data.lengths(windows))
    source = Batches(batches, pack_rows(data), is_joint=has_joint_variables())
    _check_shared(model, source, source.num_batches)
    order = np.argsort(visited)
    # The outputs for packed arrays have one length, the length of the arrays.
    if windows.is_packed or not _has_open_outputs(model):
        outputs = keras.Model.predict(model, source.packed(), steps=source.num_batches, **kwargs)
        return decode(keras.tree.map_structure(lambda output: output[order], outputs), windows)
    outputs = [
        output
        for batch in _run_batches(model, source.packed(), source.num_batches, **kwargs)
        for output in (condense(batch, windows) if condense else batch)
    ]
    return decode([outputs[place] for place in order], windows)


def _predict_dataset(model, data, dataset, steps, decode, condense, **kwargs):
    steps = steps or num_batches(dataset)
    if not _has_open_outputs(model):
        source = Batches(
            dataset,
            pack_elements(data),
            in_graph=data.takes_graphs,
            is_joint=has_joint_variables(),
        )
        _check_shared(model, source, steps)
        outputs = keras.Model.predict(model, source.packed(), steps=steps, **kwargs)
        return decode(outputs, Rows({}))

    read = []

    def pack_batches():
        pack = pack_rows(data)
        for element in read_batches(dataset):
            windows = data.window(data.read_batch(data.unpack(element)[0]))
            if len(windows):
                read.append(windows)
                yield pack(windows)

    batches = pack_batches()
    _check_shared(model, None, steps)
    if has_joint_variables():
        batches = compare_batches(batches)
    answers = []
    for number, outputs in enumerate(_run_batches(model, batches, steps, **kwargs)):
        outputs = condense(outputs, read[number]) if condense else outputs
        answers.append(decode(outputs, read[number]))
    if not answers:  # No batch has a row, or a callback has stopped the prediction.
        return decode(_no_outputs(model), data.window(data.read([])))
    if isinstance(answers[0], list):
        return [answer for batch in answers for answer in batch]
    return keras.tree.map_structure(lambda *batches: np.concatenate(batches), *answers)


def _check_shared(model, source, steps):
    """Compares the processes of JAX, which predict together."""
    if has_joint_variables():
        check_shared(model, {"data": source}, steps=steps)


def _run_batches(model, batches, steps, verbose="auto", callbacks=None):
    """Yields the outputs for each batch. Arrays of different batches may differ in length.

    `keras.Model.predict` would concatenate the outputs of batches, so all would need one length.
    """
    if not isinstance(callbacks, keras.callbacks.CallbackList):
        callbacks = keras.callbacks.CallbackList(
            callbacks, add_progbar=verbose != 0, verbose=verbose, steps=steps, epochs=1, model=model
        )
    model.stop_predicting = False
    callbacks.on_predict_begin()
    # The numbers come first, so that no batch is taken after the last step.
    numbers = itertools.count() if steps is None else range(steps)
    numbers = itertools.takewhile(lambda _: not model.stop_predicting, numbers)
    for step, batch in zip(numbers, batches, strict=False):
        x, _, _ = keras.utils.unpack_x_y_sample_weight(batch)
        callbacks.on_predict_batch_begin(step)
        # A tf.data dataset yields tensors of TensorFlow, which JAX does not take.
        x = keras.tree.map_structure(np.asarray, x)
        outputs = drop_copies(model, keras.Model.predict_on_batch(model, x))
        callbacks.on_predict_batch_end(step, {"outputs": outputs})
        yield outputs
    callbacks.on_predict_end()


def _has_open_outputs(model):
    """Whether the outputs of two batches may differ in more than the number of rows."""
    return any(None in output.shape[1:] for output in keras.tree.flatten(model.output))


def _no_outputs(model):
    """The outputs of a model for an input without rows."""
    # Under PyTorch, the symbolic shape of a reshaped batch has a number of rows. It is not used.
    return keras.tree.map_structure(
        lambda output: np.zeros([0, *(size or 0 for size in output.shape[1:])], output.dtype),
        model.output,
    )
