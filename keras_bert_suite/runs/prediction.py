"""Predicts rows or a dataset: computes outputs batch by batch, and has them decoded."""

import contextlib
import inspect
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import keras
import keras_hub
import numpy as np
from keras import ops

from keras_bert_suite.annotations import Inputs
from keras_bert_suite.argument_checks import check_arguments
from keras_bert_suite.data.input_dataset import count_steps
from keras_bert_suite.data.passes import read_batches
from keras_bert_suite.data.rows import Rows
from keras_bert_suite.layers.eager_pass import EagerPass, is_eager_torch, to_tensor
from keras_bert_suite.layers.graph_calls import takes_training
from keras_bert_suite.layers.inner_call import choose_call
from keras_bert_suite.replicas import (
    drop_copies,
    find_process,
    has_joint_variables,
    in_scope_of_model,
    join_rows,
    split_rows,
    whole_batches,
)
from keras_bert_suite.replicas.process_watch import ProcessWatch
from keras_bert_suite.replicas.processes import compare_batches
from keras_bert_suite.runs.batches import (
    Batches,
    batch_rows,
    choose_size,
    pack_batch,
    pack_elements,
    pack_rows,
    read,
)
from keras_bert_suite.runs.joint_start import check_shared, share_batch
from keras_bert_suite.runs.slow_bfloat16 import warn_of_slow_bfloat16
from keras_bert_suite.runs.weight_lock import lock_weights

#: Stands for the rows of a dataset that Keras reads: only their outputs are known afterwards.
_UNKNOWN = Rows({})


class PredictingModel:
    """A `keras.Model` with `data` and `answers`, whose `predict` takes rows or a dataset."""

    data: Any
    answers: Any

    @in_scope_of_model
    def predict(
        self,
        x: Inputs = None,
        batch_size: int | None = None,
        steps: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Returns the answers in the order of the rows; see `keras.Model.predict`.

        Each process of PyTorch answers all rows itself, and waits for no other process. Under a
        `keras.distribution` of JAX all processes predict the same rows together.

        Several threads may call it. Under JAX, threads wait for each other if their models share a
        backbone. So a dataset may not predict with the same backbone in another thread.

        Args:
            x, batch_size: as for `fit`.
            steps: int. Only the first `steps` batches of rows are answered. None answers all rows.
            **kwargs: `verbose` and `callbacks`, as in Keras.

        Raises:
            ValueError: in all processes of JAX, if they have different models, arguments or rows.
        """
        answers = self.answers
        return self.predict_with(answers.decode, x, batch_size, steps, answers.condense, **kwargs)

    @whole_batches()
    def predict_with(
        self,
        decode: Callable[[Any, Any], Any],
        x: Inputs,
        batch_size: int | None = None,
        steps: int | None = None,
        condense: Callable[[Any, Any], Any] | None = None,
        callbacks: Any = None,
        verbose: str | int = "auto",
        run: Callable[[dict[str, np.ndarray]], Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Predicts with other answers than `predict`.

        Args:
            decode: function(outputs, rows) that returns the answers. `rows` are the `Rows` that the
                model has seen. Element i of `outputs`, or of each array in it, belongs to entry i.
                For a dataset that is not read row by row, `rows` has no columns.
            condense: function(outputs, rows) that reduces the outputs for a batch to the input of
                `decode`, where outputs are too large to be kept; None keeps them. `rows` has the
                class of the batch's rows, but may hold more rows.
            run: function(the inputs of the model for a batch, arrays by name) that returns the
                outputs, arrays whose first axis is that of the rows; None calls the model.
            x, batch_size, steps, callbacks, verbose: as for `predict`.
            **kwargs: none; an argument of another library is an error that names ours.

        Raises:
            TypeError: for further arguments.
        """
        self.check_predict_arguments(kwargs)
        warn_of_slow_bfloat16(self, training=False)
        watch: Any = contextlib.nullcontext(callbacks)
        if has_joint_variables():  # Each process of PyTorch predicts by itself.
            watch = ProcessWatch("predict").watch(callbacks)
            verbose = verbose if find_process().leads else 0
        with watch as callbacks:
            given = read(self, x, batch_size=batch_size)
            kwargs = {"verbose": verbose, "callbacks": callbacks}
            with lock_weights(self):
                if not isinstance(given, Rows):
                    return _predict_dataset(self, given, steps, decode, condense, run, **kwargs)
                if steps is not None:
                    given = given.take(slice(steps * choose_size(batch_size)))
                return _predict_rows(self, given, batch_size, decode, condense, run, **kwargs)

    def check_predict_arguments(self, arguments: Iterable[str]) -> None:
        """Raises TypeError if `predict` got an argument in `**kwargs` that nothing reads."""
        named = [name for name in inspect.signature(self.predict).parameters if name != "kwargs"]
        known = [*named, "callbacks", "verbose"]
        check_arguments(f"{type(self).__name__}.predict", arguments, known)

    def make_predict_function(self, force: bool = False) -> Any:
        """Keras' `predict_function`; under PyTorch with `jit_compile=True` a better one."""
        if keras.config.backend() != "torch" or not self.jit_compile:
            return super().make_predict_function(force)
        if self.predict_function is None or force:
            self.predict_function: Any = compile_forward(self)
        return self.predict_function

    def predict_step(self, *arguments: Any) -> Any:
        """See `keras.Model.predict_step`."""
        *state, batch = arguments
        x, _, _ = keras.utils.unpack_x_y_sample_weight(batch)
        if isinstance(x, dict) and self._calls_directly():
            x = {name: to_tensor(array) for name, array in x.items()}
            return choose_call(self, x)(x, training=False)
        result = super().predict_step(*state, split_rows(batch))
        if not state:
            return result
        outputs, state = result
        return join_rows(outputs), state

    def _calls_directly(self):
        """Whether `predict_step` leaves out Keras' work for a call, as `choose_call` says."""
        return (
            keras.config.backend() == "torch"
            and not self.jit_compile
            and takes_training(type(self))
            and type(self).__call__ is keras_hub.models.Task.__call__
        )

    @whole_batches()
    def predict_on_batch(self, x: Inputs) -> Any:
        """The outputs for one batch of rows, as for `fit`; see `keras.Model.predict_on_batch`."""
        batch = pack_batch(self, x)
        if has_joint_variables():
            batch = share_batch("predict_on_batch", batch)
        with lock_weights(self):
            return _compute_outputs(self, batch[0])


def _predict_rows(model, rows, batch_size, decode, condense, run, **kwargs):
    data = model.data
    windows = data.window(rows)
    if not len(windows):
        _check_shared(model, None, 0)
        return decode(_no_outputs(model), windows)
    # A single row needs no order, and to count its tokens takes as long as to pack it.
    lengths = data.lengths(windows) if len(windows) > 1 else None
    batches, visited = batch_rows(windows, batch_size, lengths)
    source = Batches(batches, pack_rows(data), is_joint=has_joint_variables())
    _check_shared(model, source, source.num_batches)
    order = np.argsort(visited)
    # The outputs for packed arrays have one length, the length of the arrays.
    have_one_length = windows.is_packed or not _has_open_outputs(model)
    if source.num_batches > 1 and run is None and kwargs.get("callbacks") is None:
        run = _repeat_calls(model)
    if source.num_batches == 1 and _is_quiet(**kwargs):
        found = [_run_batch(model, source.pack(batches[0]), run)]
    elif have_one_length and run is None:
        found = [keras.Model.predict(model, source.packed(), steps=source.num_batches, **kwargs)]
    else:
        found = _run_batches(model, source.packed(), source.num_batches, run, **kwargs)
    if have_one_length:
        found = list(found)
        _check_all_answered(model, sum(len(keras.tree.flatten(o)[0]) for o in found), len(order))
        outputs, *others = found
        if others:
            outputs = keras.tree.map_structure(_join, outputs, *others)
        return decode(keras.tree.map_structure(lambda output: output[order], outputs), windows)
    batches = [condense(batch, windows) if condense else batch for batch in found]
    _check_all_answered(model, sum(map(_count_rows, batches)), len(order))
    return decode(_order_rows(batches, order), windows)


def _check_all_answered(model, answered, wanted):
    """Raises a ValueError if a callback has ended a prediction of rows in memory."""
    if answered < wanted and getattr(model, "stop_predicting", False):
        raise ValueError(
            f"A callback ended `predict` after {answered} of {wanted} windows of rows, and the "
            "short ones come first. Pass a dataset of batches: its answers come in its order."
        )


def _join(*batches):
    return np.concatenate(batches)


def _count_rows(batch):
    """int, the rows of a batch of outputs; of several outputs a dict."""
    return _count_rows(next(iter(batch.values()))) if isinstance(batch, dict) else len(batch)


def _order_rows(batches, order):
    """list of the outputs of each row of all batches, in an order; of several outputs a dict."""
    if isinstance(batches[0], dict):
        return {name: _order_rows([batch[name] for batch in batches], order) for name in batches[0]}
    rows = [row for batch in batches for row in batch]
    return [rows[number] for number in order]


def _is_quiet(callbacks=None, verbose="auto"):
    """Whether nobody watches a prediction, so that one batch needs no dataset and no callbacks.

    For a single text they would take several times as long as the model.
    """
    return callbacks is None and verbose in ("auto", 0)


def _run_batch(model, batch, run=None):
    """The outputs for a batch as Keras takes it, of the model or of a function."""
    x, _, _ = keras.utils.unpack_x_y_sample_weight(batch)
    # A tf.data dataset yields tensors of TensorFlow, which JAX does not take.
    x = keras.tree.map_structure(np.asarray, x)
    if run is not None:
        return run(x)
    return _compute_outputs(model, x)


def _compute_outputs(model, x):
    """The outputs for the inputs of a batch, once, however many devices have computed them."""
    return drop_copies(model, keras.Model.predict_on_batch(model, x))


def _repeat_calls(model):
    """The function that predicts batches under PyTorch, and asks once how layers compute.

    It is for predictions without callbacks, which may change layers. None where Keras predicts all
    batches itself.
    """
    if not is_eager_torch() or model.jit_compile:
        return None
    import torch

    with torch.no_grad():
        calls = EagerPass(model, training=False, is_repeated=True)

    def run(x):
        with calls.enter():
            return _compute_outputs(model, x)

    return run


def _predict_dataset(model, dataset, steps, decode, condense, run, **kwargs):
    data, steps = model.data, count_steps(dataset, steps, "steps")
    if not _has_open_outputs(model) and run is None:
        source = Batches(
            dataset,
            pack_elements(data),
            in_graph=data.takes_graphs,
            is_joint=has_joint_variables(),
        )
        _check_shared(model, source, steps)
        outputs = keras.Model.predict(model, source.packed(), steps=steps, **kwargs)
        return decode(outputs, _UNKNOWN)

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
    for number, outputs in enumerate(_run_batches(model, batches, steps, run, **kwargs)):
        outputs = condense(outputs, read[number]) if condense else outputs
        answers.append(decode(outputs, read[number]))
    if not answers:  # No batch has a row, or a callback has stopped the prediction.
        return decode(_no_outputs(model), data.window(data.read([])))
    if isinstance(answers[0], list):
        return [answer for batch in answers for answer in batch]
    return keras.tree.map_structure(_join, *answers)


def _check_shared(model, source, steps):
    """Compares the processes of JAX, which predict together."""
    if has_joint_variables():
        check_shared(model, {"data": source}, steps=steps)


def _run_batches(model, batches, steps, run=None, verbose="auto", callbacks=None):
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
        callbacks.on_predict_batch_begin(step)
        outputs = _run_batch(model, batch, run)
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


def compile_forward(model: keras.Model) -> Callable[[list[Any]], Any]:
    """Makes a `predict_function` for Keras that compiles the forward pass of a built model, whole.

    Keras would compile the step together with the conversion of its batch. The compiler leaves its
    graph to convert a NumPy array, and does not use CUDA graphs if an input is on the CPU. Here the
    batch becomes tensors of the model's device before the compiled function is called, and the
    compiler sees one function from tensors to tensors. PyTorch compiles it at the first batch, and
    once more, for all lengths, at the first batch of another length.

    On a GPU the compiled function runs as CUDA graphs, which PyTorch records for each shape of a
    batch. A CUDA graph writes its outputs to the same memory each time, so they are copied.
    """
    import torch

    on_gpu = any(variable.value.is_cuda for variable in model.variables)

    @torch.compile(mode="reduce-overhead" if on_gpu else "default")
    def forward(x: Any) -> Any:
        return model(x, training=False)

    def predict_on(data: list[Any]) -> Any:
        x, _, _ = keras.utils.unpack_x_y_sample_weight(data[0])
        x = keras.tree.map_structure(ops.convert_to_tensor, x)
        if not on_gpu:
            with torch.no_grad():
                return forward(x)
        torch.compiler.cudagraph_mark_step_begin()
        with torch.no_grad():
            return keras.tree.map_structure(torch.clone, forward(x))

    return predict_on
