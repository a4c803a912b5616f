"""Predicts rows or a dataset: computes outputs batch by batch, joins them and decodes them."""

import contextlib
import itertools

import keras
import numpy as np

from keras_bert_suite.data.input_dataset import (
    evaluation_batches,
    is_dataset,
    num_batches,
)
from keras_bert_suite.data.passes import read_batches
from keras_bert_suite.replicas import drop_copies, find_group, has_joint_variables, whole_batches
from keras_bert_suite.replicas.compared_batches import compare_batches
from keras_bert_suite.replicas.process_watch import ProcessWatch
from keras_bert_suite.tasks.base.batch_sources import (
    BatchSource,
    check_dataset,
    choose_size,
    read_data,
    read_samples,
)
from keras_bert_suite.tasks.base.held_weights import hold_weights
from keras_bert_suite.tasks.base.joint_start import check_shared
from keras_bert_suite.tasks.base.text_packing import measure_rows


@whole_batches()
def predict(task, x, batch_size, steps, decode, condense=None, *, verbose="auto", callbacks=None):
    """The answers of a task for rows or a dataset, in their order.

    Arguments: as for `RowTask.predict`.

    Several threads may call it. Under JAX, threads wait for each other if their tasks share a
    backbone. So a dataset may not predict with the same backbone in a thread of its own.

    Args:
        decode: function(outputs, rows), such as `RowTask.decode`.
        condense: function(outputs, rows) that reduces the outputs for a batch to the values that
            `decode` needs. It is for tasks that cut windows, and whose outputs are too large to be
            kept. `rows` has the class of the batch's rows, but may hold more rows.
    """
    watch = contextlib.nullcontext(callbacks)
    if has_joint_variables():  # Each process of PyTorch predicts by itself.
        watch = ProcessWatch("predict").watch(callbacks)
        verbose = verbose if find_group().leads else 0
    with watch as callbacks, hold_weights(task):
        kwargs = {"verbose": verbose, "callbacks": callbacks}
        if is_dataset(x):
            check_dataset(task, x, batch_size=batch_size)
            return _predict_dataset(task, x, steps, decode, condense, **kwargs)
        rows = read_data(task, x)
        if steps is not None:
            rows = rows.take(slice(steps * choose_size(batch_size)))
        return _predict_rows(task, rows, batch_size, decode, condense, **kwargs)


def _predict_rows(task, rows, batch_size, decode, condense, **kwargs):
    windows = task.cut_windows(rows)
    if not len(windows):
        _check_shared(task, None, 0)
        return _decode_nothing(task, rows, decode)
    lengths = measure_rows(task.preprocessor, windows)
    batches, visited = evaluation_batches(windows, choose_size(batch_size), lengths)
    source = BatchSource(batches, task.preprocess, is_joint=has_joint_variables())
    _check_shared(task, source, source.num_batches)
    order = np.argsort(visited)
    if windows is rows:
        outputs = keras.Model.predict(
            task, source.preprocessed(), steps=source.num_batches, **kwargs
        )
        return decode(keras.tree.map_structure(lambda output: output[order], outputs), rows)
    outputs = [
        output
        for batch in _run_batches(task, source.preprocessed(), source.num_batches, **kwargs)
        for output in (condense(batch, windows) if condense else batch)
    ]
    return decode([outputs[place] for place in order], windows)


def _decode_nothing(task, rows, decode):
    """The answers for no rows."""
    windows = task.cut_windows(rows)
    outputs = keras.tree.map_structure(_no_rows, task.output)
    return decode(outputs if windows is rows else [], windows)


def _predict_dataset(task, dataset, steps, decode, condense, **kwargs):
    steps = steps or num_batches(dataset)
    if not _has_open_outputs(task):
        source = BatchSource(dataset, task.preprocess_samples, is_joint=has_joint_variables())
        _check_shared(task, source, steps)
        outputs = keras.Model.predict(task, source.preprocessed(), steps=steps, **kwargs)
        return decode(outputs, None)

    read = []

    def pack_batches():
        for batch in read_batches(dataset):
            windows = task.cut_windows(read_samples(task, task.unpack_batch(batch)[0]))
            if not len(windows):
                continue
            read.append(windows)
            x, _, _ = keras.utils.unpack_x_y_sample_weight(task.preprocess(read[-1].inputs))
            yield (x,)

    batches = pack_batches()
    _check_shared(task, None, steps)
    if has_joint_variables():
        batches = compare_batches(batches)
    answers = []
    for number, outputs in enumerate(_run_batches(task, batches, steps, **kwargs)):
        outputs = condense(outputs, read[number]) if condense else outputs
        answers.append(decode(outputs, read[number]))
    if not answers:  # No batch has a row, or a callback has stopped the prediction.
        return _decode_nothing(task, read_data(task, []), decode)
    if isinstance(answers[0], list):
        return [answer for batch in answers for answer in batch]
    return keras.tree.map_structure(lambda *batches: np.concatenate(batches), *answers)


def _check_shared(task, source, steps):
    """Compares the processes of JAX, which predict together."""
    if has_joint_variables():
        check_shared(task, {"data": source}, steps=steps)


def _run_batches(task, batches, steps, verbose="auto", callbacks=None):
    """Yields the outputs for each batch. Arrays of different batches may differ in length.

    `keras.Model.predict` would concatenate the outputs of batches, so all would need one length.
    """
    if not isinstance(callbacks, keras.callbacks.CallbackList):
        callbacks = keras.callbacks.CallbackList(
            callbacks, add_progbar=verbose != 0, verbose=verbose, steps=steps, epochs=1, model=task
        )
    task.stop_predicting = False
    callbacks.on_predict_begin()
    # The numbers come first, so that no batch is taken after the last step.
    numbers = itertools.count() if steps is None else range(steps)
    numbers = itertools.takewhile(lambda _: not task.stop_predicting, numbers)
    for step, batch in zip(numbers, batches, strict=False):
        x, _, _ = keras.utils.unpack_x_y_sample_weight(batch)
        callbacks.on_predict_batch_begin(step)
        # A tf.data dataset yields tensors of TensorFlow, which JAX does not take.
        x = keras.tree.map_structure(np.asarray, x)
        outputs = drop_copies(task, keras.Model.predict_on_batch(task, x))
        callbacks.on_predict_batch_end(step, {"outputs": outputs})
        yield outputs
    callbacks.on_predict_end()


def _has_open_outputs(task):
    """Whether the outputs of two batches may differ in more than the number of rows."""
    return any(None in output.shape[1:] for output in keras.tree.flatten(task.output))


def _no_rows(output):
    """The array of an output of the model for an input without rows."""
    # Under PyTorch, the symbolic shape of a reshaped batch has a number of rows. It is not used.
    return np.zeros([0, *(size or 0 for size in output.shape[1:])], output.dtype)


def softmax(logits):
    """float32 (..., C), the probabilities of logits (..., C).

    It uses NumPy, because JAX would compile it for each shape.
    """
    scores = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return scores / scores.sum(axis=-1, keepdims=True)
