"""What Keras looks up several times in a step under PyTorch, and no step of a `fit` changes."""

import contextlib
from collections.abc import Iterator
from typing import Any

import keras

from keras_bert_suite.layers.eager_pass import Bound, has_mixed_layers
from keras_bert_suite.layers.inner_call import find_hooks


class StepLists:
    """The layers, weights and metrics of a compiled model, as they are at the first step.

    Attributes:
        layers: list of the model and of all layers in it.
        metrics: list of `keras.Metric`.
        trained: list of `keras.Variable`, the weights that the step at hand trains.
        bound: see `bound_calls`; None where weights are rounded in each step, and in a step with
            hooks of PyTorch.
    """

    def __init__(self, model: Any) -> None:
        self.layers = model._flatten_layers()
        self.metrics = model.metrics
        self.bound: Bound | None = None
        self._calls: Bound | None = None if has_mixed_layers(self.layers) else {}
        self._hooks = [hooks for layer in self.layers for hooks in find_hooks(layer)]
        self.trained: list[keras.Variable] = []
        self._weights = [v for v in model.weights if v.path not in model.unused_paths]
        self._are_regularized = any(v.regularizer is not None for v in self._weights)

    def begin_step(self, model: Any) -> None:
        """Looks at what a callback may have changed."""
        self.bound = None if any(self._hooks) else self._calls
        self.trained = [v for v in self._weights if v.trainable] if model.trainable else []

    def have_losses(self) -> bool:
        """Whether a layer, or a regularizer of a weight, has added to the loss."""
        return self._are_regularized or any(layer._losses for layer in self.layers)


@contextlib.contextmanager
def keep_step_lists(model: Any) -> Iterator[None]:
    """Within it the steps of a model share their lists. Outside each step makes its own."""
    own = vars(model)  # `setattr` of Keras would track the lists.
    own["keeps_step_lists"] = True
    try:
        yield
    finally:
        del own["keeps_step_lists"]
        own.pop("kept_step_lists", None)


@contextlib.contextmanager
def use_step_lists(model: Any) -> Iterator[StepLists]:
    """The context of a step. Within it the model finds the lists in `step_lists`."""
    own = vars(model)
    lists = own.get("kept_step_lists") or StepLists(model)
    if "keeps_step_lists" in own:
        own["kept_step_lists"] = lists
    lists.begin_step(model)
    own["step_lists"] = lists
    try:
        yield lists
    finally:
        del own["step_lists"]
