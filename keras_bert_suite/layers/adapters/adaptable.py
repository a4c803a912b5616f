"""Layers to which adapters are added by name, and the choice of the adapter that acts in a call."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import keras


class Acting(NamedTuple):
    """What the layers within a call of a model know of adapters.

    Attributes:
        name: str, the adapter that acts.
        training: bool or None, whether dropout of an adapter is active.
        prompt_length: int, the places that it puts before the tokens of each row.
    """

    name: str
    training: bool | None
    prompt_length: int = 0


#: `acting`, within a call of a model: an `Acting`. `torch.compile` reads attributes of this kind.
_calls = threading.local()


def find_acting() -> Acting | None:
    """The adapter that acts in the call around a layer. None outside of a model with adapters."""
    return getattr(_calls, "acting", None)


@contextlib.contextmanager
def act(acting: Acting | None) -> Iterator[None]:
    """Lets an adapter act in the layers that are called within. None changes nothing."""
    if acting is None:
        yield
        return
    outer = find_acting()
    _calls.acting = acting
    try:
        yield
    finally:
        _calls.acting = outer


def act_in(model: Any, training: bool | None) -> contextlib.AbstractContextManager[None]:
    """Lets the adapter of a task, or of an encoder, act in its call.

    An encoder that a task calls has the adapter of the task.
    """
    outer, name = find_acting(), getattr(model, "adapter", None)
    if name is None or (outer is not None and training is None):
        return act(None)
    if outer is not None:
        return act(outer._replace(training=training))
    encoder = getattr(model, "backbone", model)
    return act(Acting(name, training, encoder.find_prompt_length(name)))


class Adaptable:
    """A layer to which adapters are added after it was built.

    Each adapter is a layer of its own, by the name of the adapter and its kind. In a call only one
    adapter acts, or none.

    List it before `keras.layers.Layer` in the bases.
    """

    def add_adapter(self, kind: str, name: str, layer: keras.layers.Layer) -> None:
        """Adds an adapter.

        Args:
            kind: str, what the layer is, of which there may be several in one adapter.
            name: str, the name of the adapter.
            layer: the adapter, built or not. Its paths begin with that of this layer, if it is
                built within `scope_of` this layer.
        """
        tracker = self._tracker  # type: ignore[attr-defined]
        tracker.unlock()
        setattr(self, f"{kind}_{name}", layer)
        tracker.lock()
        own = vars(self).setdefault("adapters", {})  # `setattr` of Keras would wrap it.
        own[kind, name] = layer
        vars(self)["usual_adapter"] = name

    def find_adapter(self, kind: str) -> Any:
        """The layer of a kind of the adapter that acts, or None.

        Outside of a call of a model it is the adapter that was added last.
        """
        own = vars(self).get("adapters")
        if own is None:
            return None
        acting = find_acting()
        return own.get((kind, self.usual_adapter if acting is None else acting.name))

    #: The name of the adapter that was added last.
    usual_adapter: str | None = None


def name_layer(kind: str, name: str) -> str:
    """The name of the layer of an adapter, a part of the paths of its weights.

    >>> name_layer("low_rank", "legal")
    'low_rank-legal'
    """
    return f"{kind}-{name}"


def scope_of(layer: keras.layers.Layer) -> contextlib.ExitStack:
    """The scope of Keras' names in which a layer builds the layers within it."""
    stack = contextlib.ExitStack()
    for part in layer.path.split("/"):
        stack.enter_context(keras.name_scope(part))
    return stack


def choose_policy(layer: keras.layers.Layer) -> str:
    """The dtype policy of an adapter of a layer: its weights are float32, as LoRA's in Keras."""
    compute_dtype = layer.compute_dtype
    is_half = compute_dtype in ("bfloat16", "float16")
    return f"mixed_{compute_dtype}" if is_half else compute_dtype
