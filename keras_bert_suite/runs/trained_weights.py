"""Follows layers that are frozen or thawed: before a training, between two, and in a callback."""

from collections.abc import Sequence
from typing import Any

import keras

from keras_bert_suite.training import fit_optimizer


def follow_weights(model: keras.Model) -> bool:
    """Makes the optimizer of a model train the weights that are to be trained now.

    The variables of a new optimizer are made here. If a step made them, TensorFlow would trace it
    twice, and name an inner optimizer's variables in another way than a checkpoint does. See
    `fit_optimizer` for an optimizer that has trained other weights.
    """
    if model.optimizer is None:
        return False
    trained = model.trainable_variables
    ids = {id(variable) for variable in trained}
    frozen = [variable for variable in model.variables if id(variable) not in ids]
    if not fit_optimizer(model.optimizer, trained, frozen):
        return False
    model.train_function = None  # It has read which weights are trained.
    return True


def list_trained_layers(model: keras.Model) -> list[bool]:
    """Which layers with weights are trained: list of bool, outer layers before inner layers."""
    return [layer.trainable for layer in _layers_with_weights(model)]


def train_layers(model: keras.Model, are_trained: Sequence[bool]) -> None:
    """Freezes and thaws layers as `list_trained_layers` has found them."""
    for layer, is_trained in zip(_layers_with_weights(model), are_trained, strict=True):
        layer.trainable = is_trained


def _layers_with_weights(model):
    return [layer for layer in model._flatten_layers() if layer.weights]


class TrainedWeights(keras.callbacks.Callback):
    """Lets the callbacks before it freeze and thaw layers in the middle of a `fit`.

    The change counts from the next batch on.
    """

    #: Keras may call the methods of a batch in another thread, if no other callback has such a
    #: method. Then nobody freezes a layer between two batches of an epoch.
    async_safe = True

    @classmethod
    def after(cls, callbacks: Any, model: keras.Model) -> Any:
        """The callbacks of a `fit`, followed by this one."""
        if not callbacks:
            return callbacks
        callback = cls()
        if not isinstance(callbacks, keras.callbacks.CallbackList):
            return [*keras.tree.flatten(callbacks), callback]
        callback.set_model(model)
        callbacks.append(callback)
        return callbacks

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._variables = self.model.variables
        self._were_trainable: list[bool] = []
        self._follow()

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._follow()

    def on_train_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        self._follow()

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        self._follow()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._follow()

    def _follow(self):
        are_trainable = [variable.trainable for variable in self._variables]
        if are_trainable == self._were_trainable:
            return
        self._were_trainable = are_trainable
        if keras.config.backend() == "jax":
            self.model.jax_state_sync()
        if follow_weights(self.model):
            self.model.make_train_function()
