"""What Keras looks up several times in a step under PyTorch."""

import contextlib
from collections.abc import Iterator
from typing import Any

import keras

from keras_bert_suite.layers.eager_pass import EagerPass, has_mixed_layers


class StepLists:
    """The layers, weights and metrics of a compiled model.

    Attributes:
        layers: list of the model and of all layers in it.
        metrics: list of `keras.Metric`.
        trained: list of `keras.Variable`, the weights that the step at hand trains.
        calls: `EagerPass` of all steps that have these lists. None for a single step, and where
            each step rounds the weights anew.
    """

    def __init__(self, model: Any, are_kept: bool = False) -> None:
        self.layers = model._flatten_layers()
        self.metrics = model.metrics
        self.trained: list[keras.Variable] = []
        self.calls: EagerPass | None = None
        if are_kept and not has_mixed_layers(self.layers):
            self.calls = EagerPass(model, training=True, is_repeated=True)
        self._weights = [v for v in model.weights if v.path not in model.unused_paths]
        self._are_regularized = any(v.regularizer is not None for v in self._weights)

    def begin_step(self, model: Any) -> None:
        """Finds which weights are trained, which `GradualUnfreezing` changes."""
        self.trained = [v for v in self._weights if v.trainable] if model.trainable else []

    def have_losses(self) -> bool:
        """Whether a layer, or a regularizer of a weight, has added to the loss."""
        return self._are_regularized or any(layer._losses for layer in self.layers)


@contextlib.contextmanager
def keep_step_lists(model: Any, callbacks: Any) -> Iterator[None]:
    """Within it the steps of a model share their lists.

    A callback of a user may change layers, so that with it each step makes its own lists.
    """
    own = vars(model)  # `setattr` of Keras would track the lists.
    outer = own.get("kept_step_lists")  # A callback may train the model within its training.
    callbacks = getattr(callbacks, "callbacks", callbacks) or ()  # Of a `CallbackList`, its list.
    own["kept_step_lists"] = [] if all(map(_is_known, callbacks)) else None
    try:
        yield
    finally:
        own["kept_step_lists"] = outer


def _is_known(callback: Any) -> bool:
    """Whether a callback changes no layer. A `LambdaCallback` calls functions of a user."""
    is_ours = type(callback).__module__.startswith(("keras.", "keras_bert_suite."))
    return is_ours and type(callback) is not keras.callbacks.LambdaCallback


@contextlib.contextmanager
def use_step_lists(model: Any) -> Iterator[None]:
    """The context of a step. Within it the model finds the lists in `step_lists`."""
    own = vars(model)
    kept = own.get("kept_step_lists")
    if kept is None:
        lists = StepLists(model)
    else:
        if not kept:
            kept.append(StepLists(model, are_kept=True))
        lists = kept[0]
    lists.begin_step(model)
    own["step_lists"] = lists
    try:
        with lists.calls.enter() if lists.calls else contextlib.nullcontext():
            yield
    finally:
        del own["step_lists"]
