"""A callback that saves a training, so that the same command resumes it."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import keras

from keras_bert_suite.annotations import Arrays, PathLike
from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.replicas import find_process, has_joint_variables
from keras_bert_suite.replicas.processes import (
    exchange,
    is_true_anywhere,
    run_on_leader,
    summed_variables,
)
from keras_bert_suite.runs.callback_states import CallbackStates, select_arrays
from keras_bert_suite.runs.checkpoint_writer import CheckpointWriter
from keras_bert_suite.runs.model_variables import assign_value, copy_variables, named_variables
from keras_bert_suite.runs.progress import Progress
from keras_bert_suite.runs.resumption import check_resumable, restore_model
from keras_bert_suite.runs.run_checkpoints import find_checkpoint
from keras_bert_suite.runs.sigterm import SigtermFlag
from keras_bert_suite.runs.step_watchdog import StepWatchdog
from keras_bert_suite.runs.torch_generators import copy_generators, restore_generators
from keras_bert_suite.runs.trained_weights import list_trained_layers, train_layers
from keras_bert_suite.runs.training_facts import check_same_training
from keras_bert_suite.training.gradient_sums import summed_accumulators


class TrainingCheckpoint(keras.callbacks.Callback):
    """Saves the state of a training, so that the same `fit` resumes it after a kill.

    Hand the callback to `fit`. After a kill at any moment, run the same command again. `fit` then
    reads the newest valid checkpoint and restores the weights, the optimizer, the schedule, the
    random states, the metrics and the position in the data. On a CPU, and with the same backend,
    every following batch, loss and weight is the same as in an uninterrupted run. If the run has
    finished, `fit` says so and returns at once. The folder is for one training: a `fit` on other
    rows, or with another batch size, loss or kind of optimizer, is an error.

    The other callbacks go on as well. The checkpoint holds the counts of `EarlyStopping`,
    `ReduceLROnPlateau` and `ModelCheckpoint`, with the best weights. A training that
    `EarlyStopping` has ended is finished. A callback of your own is kept if it has `get_state()`,
    which returns numbers, texts, None, arrays, or lists, tuples and dicts of them, and
    `set_state(state)`, which is called after `on_train_begin`, and within an epoch after
    `on_epoch_begin`. Another callback that changes its attributes is named in a warning. The
    `History` has the epochs that this call of `fit` has ended.

    SIGTERM ends the training: `fit` saves after the current batch and returns. An epoch that
    SIGTERM cuts short is neither validated nor logged. If all its batches are done, the run that
    resumes validates and logs it before it goes on.

    If a checkpoint cannot be written, for example because the disk is full, the callback warns and
    training continues. Only the last checkpoint, at the end of `fit`, must succeed.

    The epoch's log `skipped_steps` counts the steps that the optimizer has skipped, because the
    loss or a gradient was not finite.

    If processes share the run, the first process writes and reads the checkpoints, and hands the
    state to the others. Under JAX all processes read them, so they share the folder. A run may
    resume with another number of processes. SIGTERM in any process ends the training of all of them
    after the same batch. If gradients are accumulated, the checkpoint holds their sum over the
    processes, and a run that resumes in the middle of a step adds them in another order: it equals
    an uninterrupted run up to rounding.

    A checkpoint of one backend can be resumed under another backend. The dropout masks then differ.

    Args:
        directory: str or path of a folder for this run alone. The folder is made when needed.
        every: int, batches from one checkpoint to the next, counted over the whole run.
        keep: int, how many checkpoints are kept. The oldest is removed after the newest is written.
        asynchronous: bool, whether a thread writes the checkpoint during training. The
            thread gets a copy of the variables, which takes as much memory as they do.
        max_skipped: int. Training stops when so many steps in a row are skipped. It continues while
            a `LossScaleOptimizer` still lowers its scale to 1.

    Attributes:
        terminated: bool, whether SIGTERM has ended the last `fit`.
        progress: `Progress`, where the run stands.
        skipped: int, optimizer steps skipped since the run began, as of the last check.

    Raises:
        FloatingPointError: in `fit`, after `max_skipped` skipped steps, or if a weight is not
            finite.
        OSError: at the end of `fit`, if the last checkpoint cannot be written.
        ValueError: at the beginning of `fit`, if no checkpoint in the folder is valid, or the
            newest checkpoint belongs to another training or model, or reading cannot begin in the
            middle of the data.

    Example:
    ```python
    pretrainer.fit(batches, epochs=40, callbacks=[TrainingCheckpoint("checkpoints/tiny")])
    ```
    """

    def __init__(
        self,
        directory: PathLike,
        every: int = 1000,
        keep: int = 3,
        asynchronous: bool = True,
        max_skipped: int = 20,
    ) -> None:
        super().__init__()
        for name, value in (("every", every), ("keep", keep), ("max_skipped", max_skipped)):
            check_integer(name, value, at_least=1)
        self.directory = Path(directory).expanduser()
        self.every = every
        self.keep = keep
        self.asynchronous = asynchronous
        self.max_skipped = max_skipped
        self.terminated = False
        self.progress: Progress | None = None
        self._path: Path | None = None
        self._writer: CheckpointWriter | None = None
        self._watchdog: StepWatchdog | None = None
        self._sigterm = SigtermFlag()
        #: The states of the callbacks of this `fit`, which `WholeEpochs` sets.
        self.states: CallbackStates | None = None
        self._is_due = False
        # Arrays that go back to the callbacks, and to the model in `on_epoch_begin` and
        # `on_train_batch_begin`.
        self._of_callbacks: Arrays = {}
        self._metrics: Arrays = {}
        self._metrics_of_epoch: Arrays = {}
        self._generators: Arrays = {}

    @property
    def skipped(self) -> int:
        """int, optimizer steps skipped since the run began, as of the last check."""
        return 0 if self._watchdog is None else self._watchdog.skipped

    def find_progress(self, new: Progress) -> Progress:
        """The `Progress` of the newest valid checkpoint, or `new` if there is no checkpoint."""
        self._path, self.progress = run_on_leader(
            lambda: find_checkpoint(self.directory) or (None, new)
        )
        return self.progress

    def recognize(self, facts: dict[str, Any]) -> None:
        """Raises a ValueError if the checkpoint is of another training, see `describe_training`."""
        check_same_training(self.directory, self.progress.training, facts)
        self.progress = dataclasses.replace(self.progress, training=facts)

    def thaw(self, model: keras.Model) -> None:
        """Freezes and thaws layers as callbacks have done since the run began.

        A model with other frozen layers than at the beginning stays as it is: it was changed since.
        """
        now = list_trained_layers(model)
        first, last = self.progress.trained_layers or (now, now)
        if now == first != last:
            train_layers(model, last)
        self.progress = dataclasses.replace(self.progress, trained_layers=[first, last])

    def keep_lengths(self, choose: Callable[[], Sequence[int] | None]) -> Sequence[int] | None:
        """The lengths to which the run pads its batches, as they were chosen when it began."""
        if not self.resumes:
            self.progress = dataclasses.replace(self.progress, padding_lengths=choose())
        return self.progress.padding_lengths

    @contextlib.contextmanager
    def resume(
        self,
        model: keras.Model,
        dataset: Any,
        batches: Iterable[Any],
        steps_per_epoch: int | None,
        initial_epoch: int,
    ) -> Iterator[None]:
        """Restores the checkpoint that `find_progress` has found, and saves until the block ends.

        `dataset` is the dataset of an epoch, `batches` the batches still to come, and
        `initial_epoch` the first epoch of the whole run.
        """
        done = self.progress.batches
        check_resumable(
            dataset, steps_per_epoch, model.steps_per_execution, self.progress, self._path
        )
        self._metrics, self._generators, self._is_due = {}, {}, False
        self._in_epoch = bool(done % steps_per_epoch) or self.progress.epoch_is_open
        if self._path is not None:
            self._generators = arrays = restore_model(model, self._path, batches)
            self._of_callbacks = select_arrays(arrays)
            # All processes have the metrics of the first.
            if self._in_epoch and (find_process().leads or has_joint_variables()):
                self._metrics = {n: a for n, a in arrays.items() if n.startswith("metrics/")}
        self.progress = dataclasses.replace(self.progress, steps_per_epoch=steps_per_epoch)
        self._initial_epoch = initial_epoch
        self.terminated = self._is_given_back = False
        self._watchdog = StepWatchdog(model, self.progress.first_step, self.max_skipped, done)
        writer = CheckpointWriter(self.directory, self.keep, self.asynchronous, self.progress)
        with self._sigterm.listen(), writer as self._writer:
            try:
                yield
            finally:
                self._writer = None

    @property
    def resumes(self) -> bool:
        """bool, whether this `fit` has found a checkpoint."""
        return self._path is not None

    @property
    def resumes_within_epoch(self) -> bool:
        """bool, whether the states of a checkpoint within an epoch are still to be given back."""
        return self._in_epoch and self.resumes

    def give_back_states(self) -> None:
        """Brings the other callbacks to the states of the checkpoint, if there is one."""
        if self.resumes and not self._is_given_back:
            self.states.give_back(self.progress.callbacks, self._of_callbacks, self._path)
        self._of_callbacks, self._in_epoch, self._is_given_back = {}, False, True

    @property
    def batches_of_epoch(self) -> int:
        """int, the batches of an incomplete epoch that are done."""
        return self.progress.batches % self.progress.steps_per_epoch

    @property
    def within_epoch(self) -> bool:
        """bool, whether the current epoch still has batches to train on."""
        return self.progress.batches < self._epoch_end

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        if self._writer is None:
            raise RuntimeError(
                "TrainingCheckpoint needs the `fit` of a keras_bert_suite task, which can resume "
                "in the middle of the data, and a plain list of callbacks without a second one."
            )

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        # Keras has just reset the metrics.
        variables = named_variables(self.model) if self._metrics else {}
        for name, array in self._metrics.items():
            assign_value(variables[name], array)
        self._metrics = self._metrics_of_epoch = {}
        self._resumed = self.batches_of_epoch > 0
        self._epoch_begin = self.progress.batches - self.batches_of_epoch
        steps_per_epoch = self.progress.steps_per_epoch
        self._epoch_end = (epoch - self._initial_epoch + 1) * steps_per_epoch

    def on_train_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        restore_generators(self._generators)
        self._generators = {}

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        if self._writer is None:
            return
        # The validation takes the variables of the metrics. If SIGTERM cuts it short, the run that
        # resumes logs the epoch.
        with summed_variables(self.model.metrics_variables):
            self._metrics_of_epoch = copy_variables(self.model, "metrics/")
        # A checkpoint at the end of an epoch is made before the validation, and a resumed run
        # validates before it goes on. So validation must not change the random states.
        self._generators = self._generators or copy_generators()

    def on_test_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        if self._sigterm.check():
            self.terminated = self.model.stop_evaluating = True

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        before, now = self.progress.batches, self._epoch_begin + batch + 1
        self.progress = dataclasses.replace(
            self.progress, batches=now, epoch_is_open=now % self.progress.steps_per_epoch == 0
        )
        self._watchdog.check(now)
        self.terminated = self._sigterm.check()
        self._is_due = self.terminated or now // self.every > before // self.every
        # Keras does not know that a resumed epoch is shorter.
        if self.terminated or self._resumed and not self.within_epoch:
            self.model.stop_training = True

    def save_after_batch(self) -> None:
        """Saves if it is time, once all callbacks have seen a batch.

        It is also time if a callback stops the training within an epoch. Keras then ends the epoch
        as if it were whole, and a run that resumes ends it again.
        """
        if self._is_due or self.model.stop_training and self.within_epoch:
            self.states.warn_of_changes()
            self._save()

    def close_epoch(self) -> None:
        """Notes that an epoch was validated and logged."""
        self.progress = dataclasses.replace(self.progress, epoch_is_open=False)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._watchdog.count(self.progress.batches)
        if logs is not None:
            logs["skipped_steps"] = self.skipped
        if self._resumed and not self.within_epoch:
            self.model.stop_training = False
        if is_true_anywhere(self._sigterm.received):
            self.model.stop_training = self.terminated = True

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        self._writer.wait()
        # Only the first process knows whether its last checkpoint was written.
        if any(exchange(not self.progress.is_at(self._writer.saved))):
            self._save()
            self._writer.wait()
        if self._writer.failure is not None:
            raise self._writer.failure

    def _save(self) -> None:
        # The variables are copied only when the previous copy is on the disk.
        self._writer.wait()
        states, arrays_of_states = self.states.copy()
        first, _ = self.progress.trained_layers
        layers = [first, list_trained_layers(self.model)]
        self.progress = dataclasses.replace(self.progress, callbacks=states, trained_layers=layers)
        # After a validation the checkpoint holds the random states from before the validation.
        random_states = self._generators or copy_generators()
        with (
            summed_variables(self.model.metrics_variables),
            summed_accumulators(self.model.optimizer),
        ):
            # The first process alone writes. A weight that is not finite is an error in all.
            arrays = {**random_states, **arrays_of_states}

            def copy() -> None:
                arrays.update(copy_variables(self.model))

            if has_joint_variables():
                copy()
            else:
                run_on_leader(copy)
        if self.progress.epoch_is_open:
            arrays.update(self._metrics_of_epoch)
        if find_process().leads:
            self._writer.write(self.progress, arrays)
        else:
            self._writer.saved = self.progress


def find_training_checkpoint(callbacks: Any) -> tuple[TrainingCheckpoint | None, Any]:
    """(the `TrainingCheckpoint` among callbacks or None, the callbacks with it in the first place).

    The `TrainingCheckpoint` ends a resumed epoch with `stop_training`. It must reset this flag
    before another callback sets it on purpose. So it comes first.
    """
    if callbacks is None or isinstance(callbacks, keras.callbacks.CallbackList):
        return None, callbacks
    callbacks = keras.tree.flatten(callbacks)
    first = sorted(callbacks, key=lambda callback: not isinstance(callback, TrainingCheckpoint))
    return (first[0] if first and isinstance(first[0], TrainingCheckpoint) else None), first
