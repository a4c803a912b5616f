"""The callbacks of a training that a `TrainingCheckpoint` may resume."""

from typing import Any

import keras

from keras_bert_suite.runs.callback_states import CallbackStates
from keras_bert_suite.runs.training_checkpoint import TrainingCheckpoint
from keras_bert_suite.training.schedule_lengths import unwrap_optimizer


class WholeEpochs(keras.callbacks.CallbackList):
    """The callbacks of a `fit` that SIGTERM may cut short, and that may resume.

    Keras also calls `on_epoch_end` and `on_test_end` when an epoch or a validation was cut short. A
    log would then show means over some of the batches as if they were means over all batches. So
    the list forwards `on_epoch_end` only for completed epochs.

    Callbacks see the number of a batch in its epoch, also after the epoch was interrupted.

    The state of a callback is saved after all callbacks have seen a batch. A resumed run gives it
    back after they have begun: after `on_train_begin`, and within an epoch after `on_epoch_begin`,
    which they then see a second time.
    """

    def __init__(self, checkpoint: TrainingCheckpoint, callbacks: Any, **arguments: Any) -> None:
        super().__init__(callbacks, **arguments)
        self._checkpoint = checkpoint
        self._has_begun, self._skipped = False, 0
        self._states = checkpoint.states = CallbackStates(self.callbacks)

    @property
    def terminated(self) -> bool:
        """bool, whether SIGTERM has come."""
        return self._checkpoint.terminated

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        # `TrainingRun` begins a resumed training before Keras does.
        if self._has_begun:
            return
        self._has_begun = True
        super().on_train_begin(logs)
        if not self._checkpoint.resumes_within_epoch:
            self._checkpoint.give_back_states()

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        # Keras counts the batches of a resumed epoch from 0.
        self._skipped = self._checkpoint.batches_of_epoch
        if not self._checkpoint.resumes_within_epoch:
            super().on_epoch_begin(epoch, logs)
        else:
            # A callback may set the rate at the beginning of an epoch, and has done so.
            rate = unwrap_optimizer(self.model.optimizer)._learning_rate
            is_number = isinstance(rate, keras.Variable)
            value = keras.ops.convert_to_numpy(rate) if is_number else None
            super().on_epoch_begin(epoch, logs)
            if is_number:
                rate.assign(value)
            self._checkpoint.give_back_states()
        self._states.note_attributes()

    def on_train_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        super().on_train_batch_begin(self._skipped + batch, logs)

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        super().on_train_batch_end(self._skipped + batch, logs)
        self._checkpoint.save_after_batch()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if self.terminated:
            self.model.stop_training = True
            return
        super().on_epoch_end(epoch, logs)
        self._checkpoint.close_epoch()

    def on_test_end(self, logs: dict[str, Any] | None = None) -> None:
        super().on_test_end({} if self.terminated else logs)
