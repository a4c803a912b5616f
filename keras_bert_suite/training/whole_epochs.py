"""The callbacks of a `fit` that SIGTERM may cut short."""

from typing import Any

import keras

from keras_bert_suite.training.training_checkpoint import TrainingCheckpoint


class WholeEpochs(keras.callbacks.CallbackList):
    """The callbacks of a `fit`. The list forwards `on_epoch_end` only for completed epochs.

    Keras also calls `on_epoch_end` and `on_test_end` when an epoch or a validation was cut short.
    A log would then show means over some of the batches as if they were means over all batches.

    Args:
        checkpoint: `TrainingCheckpoint`, which is one of the callbacks.
        callbacks, **arguments: as for `keras.callbacks.CallbackList`.
    """

    def __init__(self, checkpoint: TrainingCheckpoint, callbacks: Any, **arguments: Any) -> None:
        super().__init__(callbacks, **arguments)
        self._checkpoint = checkpoint

    @property
    def terminated(self) -> bool:
        """bool, whether SIGTERM has come."""
        return self._checkpoint.terminated

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if not (self.terminated and self._checkpoint.within_epoch):
            super().on_epoch_end(epoch, logs)

    def on_test_end(self, logs: dict[str, Any] | None = None) -> None:
        super().on_test_end({} if self.terminated else logs)
