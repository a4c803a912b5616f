"""A callback whose checkpoints the same command goes on from."""

import contextlib
import dataclasses
import math
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grain
import keras

from keras_bert_suite.training.state_files import find_checkpoint, read_arrays, write_checkpoint
from keras_bert_suite.training.termination import on_sigterm
from keras_bert_suite.training.torch_generators import copy_generators, restore_generators
from keras_bert_suite.training.training_state import (
    assign_variables,
    copy_variables,
    named_variables,
)


class TrainingCheckpoint(keras.callbacks.Callback):
    """Saves a training as it goes on, and lets `fit` of a task go on where it was killed.

    Hand it to `fit`. The same command again, after a kill at any moment, restores weights,
    optimizer, schedule, random states, metrics and the place in the data from the newest valid
    checkpoint; on a CPU, and with the same backend, every batch, loss and weight is then that of
    a run that was never killed. A run that has finished returns at once.

    SIGTERM ends the training after the batch at hand, saved, and `fit` returns. The epoch that it
    cuts short is neither validated nor logged; of a validation that it cuts short nothing is
    logged. A checkpoint that cannot be written, as on a full disk, is warned about and training
    goes on with those before; only the last one, at the end, must succeed. The number of skipped
    steps, those with a loss or gradient that was not finite, is the epoch's log `skipped_steps`.

    What other callbacks remember is not restored. Weights and optimizer go from one backend to
    another, and the dropout that follows is then another.

    Args:
        directory: str or path, of this run alone; made when needed.
        every: int, batches from one checkpoint to the next, counted over the whole run.
        keep: int, how many are kept; the oldest goes when the newest is in place.
        asynchronous: bool, whether a thread writes while training goes on. The variables are
            copied first, which takes as much memory again.
        max_skipped: int. When so many steps in a row are skipped, training stops; not while a
            `LossScaleOptimizer` still lowers its scale to 1.

    Attributes:
        terminated: bool, whether SIGTERM has ended the last `fit`.
        progress: `Progress`, where the run stands.
        skipped: int, optimizer steps skipped since the run began, as of the last check.

    Raises:
        FloatingPointError: in `fit`, after `max_skipped` or if a weight is not finite.
        OSError: at the end of `fit`, if the last checkpoint cannot be written.
        ValueError: at the beginning of `fit`, if there are checkpoints but none is valid, or the
            newest is of another model, or the data cannot be entered in the middle.

    Example:
    ```python
    pretrainer.fit(batches, epochs=40, callbacks=[TrainingCheckpoint("checkpoints/tiny")])
    ```
    """

    def __init__(self, directory, every=1000, keep=3, asynchronous=True, max_skipped=20):
        super().__init__()
        for name, value in (("every", every), ("keep", keep), ("max_skipped", max_skipped)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}.")
        self.directory = Path(directory).expanduser()
        self.every = every
        self.keep = keep
        self.asynchronous = asynchronous
        self.max_skipped = max_skipped
        self.terminated = False
        self.progress = None
        self.skipped = 0
        self._found = None
        self._signalled = False
        self._writer = self._writing = self._failure = None

    def find_progress(self, new):
        """Where the run stands: as the newest valid checkpoint has it, or else `new`."""
        self._found, self.progress = find_checkpoint(self.directory) or (None, new)
        return self.progress

    @contextlib.contextmanager
    def resume(self, model, dataset, batches, steps_per_epoch, initial_epoch):
        """Restores what `find_progress` has found, and is ready to save until the block ends.

        Args:
            model: the compiled task.
            dataset: what `fit` was given, or made of its rows.
            batches: the batches still to come, iterable.
            steps_per_epoch: int.
            initial_epoch: int, that of the whole run.
        """
        self._check(model, dataset, steps_per_epoch)
        self._initial_epoch = initial_epoch
        self._saved = self.progress.batches
        self._metrics, self._generators = {}, {}
        if not model.optimizer.built:
            # Built during a step of TensorFlow, one within another has other names.
            model.optimizer.build(model.trainable_variables)
        if self._found is not None:
            # Under TensorFlow Keras would make the metrics' variables during the first step.
            model._symbolic_build(data_batch=next(iter(batches)))
            self._generators = arrays = read_arrays(self._found)
            assign_variables(model, arrays, self._found)
            if self._saved % steps_per_epoch:
                self._metrics = {n: a for n, a in arrays.items() if n.startswith("metrics/")}
        self.progress = dataclasses.replace(self.progress, steps_per_epoch=steps_per_epoch)
        self._last_check = self._saved, int(_inner(model.optimizer).iterations)
        self.terminated = False
        self._failure = None
        with on_sigterm(self._remember_signal), ThreadPoolExecutor(1) as self._writer:
            try:
                yield
            finally:
                self._finish_writing()
                self._writer = None
                self._signalled = False

    @property
    def within_epoch(self):
        """bool, whether batches are left of the epoch at hand."""
        return self.progress.batches < self._epoch_end

    def on_train_begin(self, logs=None):
        if self._writer is None:
            raise RuntimeError(
                "TrainingCheckpoint needs the `fit` of a keras_bert_suite task, which can go on in "
                "the middle of the data, and a plain list of callbacks without a second one."
            )

    def on_epoch_begin(self, epoch, logs=None):
        # Keras has just reset them.
        variables = named_variables(self.model) if self._metrics else {}
        for name, array in self._metrics.items():
            variables[name].assign(array)
        self._metrics = {}
        self._epoch_begin = self.progress.batches
        steps_per_epoch = self.progress.steps_per_epoch
        self._resumed = self._epoch_begin % steps_per_epoch > 0
        self._epoch_end = (epoch - self._initial_epoch + 1) * steps_per_epoch

    def on_train_batch_begin(self, batch, logs=None):
        restore_generators(self._generators)
        self._generators = {}

    def on_test_begin(self, logs=None):
        # A checkpoint of the end of an epoch is made before its validation, which a resumed run
        # leaves out; so what validation draws must not matter.
        self._generators = copy_generators()

    def on_test_batch_end(self, batch, logs=None):
        if self._signalled:
            self.terminated = self.model.stop_evaluating = True

    def on_train_batch_end(self, batch, logs=None):
        before, now = self.progress.batches, self._epoch_begin + batch + 1
        self.progress = dataclasses.replace(self.progress, batches=now)
        if now - self._last_check[0] >= self.max_skipped * self._batches_per_step():
            self._check_steps()
        self.terminated = self._signalled
        if self.terminated or now // self.every > before // self.every:
            self._save()
        # Keras does not know that a resumed epoch is shorter.
        if self.terminated or self._resumed and not self.within_epoch:
            self.model.stop_training = True

    def on_epoch_end(self, epoch, logs=None):
        self._count_steps()
        if logs is not None:
            logs["skipped_steps"] = self.skipped
        if self._resumed and not self.within_epoch:
            self.model.stop_training = False
        if self._signalled:
            self.model.stop_training = self.terminated = True

    def on_train_end(self, logs=None):
        self._finish_writing()
        if self.progress.batches != self._saved:
            self._save()
            self._finish_writing()
        if self._failure is not None:
            raise self._failure

    def _check(self, model, dataset, steps_per_epoch):
        if not isinstance(dataset, grain.MapDataset):
            raise ValueError(
                "TrainingCheckpoint needs data that can be entered in the middle: rows in memory "
                f"or a grain.MapDataset of batches, got {type(dataset).__name__}."
            )
        if steps_per_epoch is None:
            raise ValueError("The dataset does not end. Pass `steps_per_epoch`.")
        known = self.progress.steps_per_epoch
        if known not in (None, steps_per_epoch):
            raise ValueError(
                f"{self._found} is of a run with {known} batches an epoch, got {steps_per_epoch}. "
                "Train with the same data and batch size, or choose another directory."
            )
        at_once = model.steps_per_execution
        if steps_per_epoch % at_once or self.progress.batches % at_once:
            raise ValueError(
                f"steps_per_execution={at_once} must divide the {steps_per_epoch} batches of an "
                f"epoch and the {self.progress.batches} that are done."
            )

    def _save(self):
        self._finish_writing()
        # Validation must not change the random states. So a checkpoint that is made after a
        # validation holds the random states from before it.
        arrays = {**copy_variables(self.model), **(self._generators or copy_generators())}
        self._writing = self._writer.submit(
            write_checkpoint, self.directory, self.progress, arrays, self.keep
        )
        if not self.asynchronous:
            self._finish_writing()

    def _finish_writing(self):
        """Waits for the checkpoint being written; one that fails is warned about."""
        if self._writing is None:
            return
        writing, self._writing = self._writing, None
        try:
            self._saved = writing.result()
            self._failure = None
        except OSError as error:
            self._failure = error
            warnings.warn(
                f"A checkpoint could not be written, and those before it stay: {error}. Make room "
                f"in {self.directory}.",
                stacklevel=2,
            )

    def _batches_per_step(self):
        return _inner(self.model.optimizer).gradient_accumulation_steps or 1

    def _count_steps(self):
        """Optimizer steps taken; counts those skipped, whose batches the optimizer does not."""
        if keras.config.backend() == "jax":
            self.model.jax_state_sync()
        optimizer, group = _inner(self.model.optimizer), self._batches_per_step()
        counted = int(optimizer._iterations) - self.progress.first_step * group
        # A loss scale drops a single batch, and the group of this batch then takes one more. So
        # the dropped batches need not be a multiple of `group`.
        self.skipped = math.ceil((self.progress.batches - counted) / group)
        return int(optimizer.iterations)

    def _check_steps(self):
        batches, before = self._last_check
        steps = self._count_steps()
        if steps > before:
            self._last_check = self.progress.batches, steps
            return
        optimizer = self.model.optimizer
        if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
            if float(keras.ops.convert_to_numpy(optimizer.dynamic_scale)) >= 1:
                return
        raise FloatingPointError(
            f"No step was taken in batches {batches} to {self.progress.batches} of the run: "
            "the loss or a gradient of each was not finite. The weights are those of before. "
            "Look at these batches, lower the learning rate, or leave float16 for bfloat16."
        )

    def _remember_signal(self, *_):
        self._signalled = True


def find_training_checkpoint(callbacks):
    """Sets the `TrainingCheckpoint` of a list of callbacks apart, and puts it first.

    First, since it lets a resumed epoch end with `stop_training`, which it takes back before
    another callback may mean it.

    Returns:
        (`TrainingCheckpoint` or None, callbacks).
    """
    if isinstance(callbacks, TrainingCheckpoint):
        callbacks = [callbacks]
    if not isinstance(callbacks, (list, tuple)):
        return None, callbacks
    first = sorted(callbacks, key=lambda callback: not isinstance(callback, TrainingCheckpoint))
    return (first[0] if first and isinstance(first[0], TrainingCheckpoint) else None), first


def _inner(optimizer):
    """The optimizer that a `LossScaleOptimizer` wraps, or the optimizer itself."""
    return getattr(optimizer, "inner_optimizer", optimizer)
