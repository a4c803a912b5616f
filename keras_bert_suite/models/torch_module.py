"""Models that are modules of PyTorch under its backend, with the parameters that Keras trains."""

from typing import Any

import keras
from keras.src.backend.common.stateless_scope import in_stateless_scope


class _Module:
    """A model whose weights are the parameters of its `torch.nn.Module`, each by its `path`.

    So `parameters()`, `state_dict()` and `load_state_dict()` work, also if the model is a part of a
    user's module. A parameter is the value of its Keras variable, not a copy. Classes of KerasHub
    hide their parameters from PyTorch, and models of Keras do not follow LoRA or `quantize` of a
    layer. So each method of PyTorch that reads parameters looks up the weights first.

    The states of random generators are no parameters. Keras numbers them by process, so another
    model would have other names.
    """

    def _track_variables(self) -> None:
        """Registers the weights as parameters. Keras calls this once a model is built."""
        weights: dict[str, Any] = {}
        for weight in self.weights:  # type: ignore[attr-defined]
            name = weight.path
            while name in weights:  # Layers without a name, in two layers of one name.
                name += "_"
            weights[name] = weight._value
        own = vars(self)  # `setattr` of Keras would wrap the dictionaries.
        own.setdefault("_torch_params", {})  # Keras would call this method where it finds none.
        before = own.get("torch_weights", {})
        others = {name: p for name, p in own["_parameters"].items() if name not in before}
        own["torch_weights"] = weights
        own["_parameters"] = {**weights, **others}

    def _clear_losses(self) -> None:
        """Forgets the losses of layers. Keras asks every layer where it keeps them: 1 ms a call."""
        if in_stateless_scope():
            super()._clear_losses()  # type: ignore[misc]
            return
        for layer in self._flatten_layers():  # type: ignore[attr-defined]
            if layer._losses:
                layer._losses.clear()
                layer._loss_ids.clear()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients: in a step of `fit`, those of the weights that it trains."""
        lists = getattr(self, "step_lists", None)
        if lists is None:
            super().zero_grad(set_to_none)  # type: ignore[misc]
            return
        for weight in lists.trained:
            weight._value.grad = None

    def named_modules(self, *args: Any, **kwargs: Any) -> Any:
        self._track_variables()
        return super().named_modules(*args, **kwargs)  # type: ignore[misc]

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        self._track_variables()
        return super()._apply(*args, **kwargs)  # type: ignore[misc]

    def _save_to_state_dict(self, *args: Any) -> None:
        self._track_variables()
        super()._save_to_state_dict(*args)  # type: ignore[misc]

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: dict[str, Any], *args: Any
    ) -> None:
        self._track_variables()
        # With `assign`, the variables of Keras would keep their old values.
        metadata = {**local_metadata, "assign_to_params_buffers": False}
        super()._load_from_state_dict(state_dict, prefix, metadata, *args)  # type: ignore[misc]


class _NoModule:
    """A model of another backend, which has no parameters beside its variables."""

    def _track_variables(self) -> None:
        """Does nothing."""


if keras.config.backend() == "torch":

    class TorchModule(_Module):
        """A model that is a module of PyTorch."""

else:

    class TorchModule(_NoModule):  # type: ignore[no-redef]
        """A model that is no module of PyTorch."""
