"""Copies the state of callbacks into a checkpoint, and gives it back."""

import collections
import reprlib
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import keras
import numpy as np

from keras_bert_suite.annotations import Arrays
from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.files.messages import list_names

#: The attributes of Keras' callbacks that a training changes. `monitor` says of which number.
_ATTRIBUTES: dict[type, tuple[str, ...]] = {
    keras.callbacks.EarlyStopping: (
        "monitor",
        "best",
        "wait",
        "stopped_epoch",
        "best_epoch",
        "best_weights",
    ),
    keras.callbacks.ReduceLROnPlateau: ("monitor", "best", "wait", "cooldown_counter"),
    keras.callbacks.ModelCheckpoint: (
        "monitor",
        "best",
        "_batches_seen_since_last_saving",
        "_last_batch_seen",
    ),
}

_PREFIX = "callbacks/"


class CallbackStates:
    """The states of the callbacks of a training, in the order in which they are listed.

    A callback returns its state from `get_state()`, and takes it back by `set_state(state)`. It may
    hold numbers, texts, None, arrays, and lists, tuples and dicts of them. Keras' own callbacks
    lack these methods, so the class copies their attributes.
    """

    def __init__(self, callbacks: Iterable[keras.callbacks.Callback]) -> None:
        numbers: collections.Counter[str] = collections.Counter()
        self._callbacks: dict[str, keras.callbacks.Callback] = {}
        for callback in callbacks:
            name = type(callback).__name__
            numbers[name] += 1
            key = name if numbers[name] == 1 else f"{name}#{numbers[name]}"
            self._callbacks[key] = callback
        self._first_attributes: dict[str, dict[str, Any]] | None = None

    def copy(self) -> tuple[dict[str, Any], Arrays]:
        """(states by the name of the callback, for JSON; the arrays of the states by name)."""
        arrays: Arrays = {}
        states = {}
        for key, callback in self._callbacks.items():
            if has_methods(callback):
                state = callback.get_state()
            elif names := _list_attributes(callback):
                state = {name: getattr(callback, name) for name in names}
            else:
                continue
            states[key] = _encode(state, _PREFIX + key, arrays)
        return states, arrays

    def give_back(self, states: Mapping[str, Any], arrays: Arrays, source: object) -> None:
        """Brings callbacks to the states of a checkpoint. `source` is its path, for a warning.

        `model.stop_training` is then true if an `EarlyStopping` has ended the training.
        """
        new = []
        for key, callback in self._callbacks.items():
            names = _list_attributes(callback)
            if not names and not has_methods(callback):
                continue
            if key not in states:
                new.append(key)
                continue
            state = _decode(states[key], arrays)
            if has_methods(callback):
                callback.set_state(state)
            elif state["monitor"] != callback.monitor:
                new.append(f"{key} (it has watched {state['monitor']})")
            else:
                for name in names:
                    setattr(callback, name, state[name])
                if isinstance(callback, keras.callbacks.EarlyStopping):
                    _stop_again(callback)
        if new:
            warnings.warn(
                f"{source} has no state of {list_names(new)}: such a callback begins anew. Pass "
                "the same callbacks at each start.",
                stacklevel=2,
            )

    def note_attributes(self) -> None:
        """Notes the attributes at the beginning, so that `warn_of_changes` can compare."""
        if self._first_attributes is None:
            self._first_attributes = {
                key: _describe_attributes(callback)
                for key, callback in self._callbacks.items()
                if not _is_known(callback)
            }

    def warn_of_changes(self) -> None:
        """Warns once of callbacks that have changed attributes which no checkpoint will hold."""
        changed = []
        for key, before in (self._first_attributes or {}).items():
            now = _describe_attributes(self._callbacks[key])
            names = sorted(n for n in before.keys() | now.keys() if before.get(n) != now.get(n))
            if names:
                changed.append(f"{key} ({list_names(names)})")
        if changed:
            self._first_attributes = {}
            warnings.warn(
                "The checkpoints do not hold what these callbacks have changed on themselves: "
                f"{list_names(changed)}. After an interruption they begin anew. To keep it, give "
                "the callback get_state(), which returns numbers, texts, arrays, or lists and "
                "dicts of them, and set_state(state).",
                stacklevel=2,
            )


def has_methods(callback: Any) -> bool:
    """Whether a callback has `get_state` and `set_state`."""
    return callable(getattr(callback, "get_state", None)) and callable(
        getattr(callback, "set_state", None)
    )


def _list_attributes(callback):
    """The names of the attributes that are the state of one of Keras' callbacks."""
    if isinstance(callback, keras.callbacks.ModelCheckpoint):
        # Another one saves after each epoch, whatever came before.
        if not callback.save_best_only and callback.save_freq == "epoch":
            return ()
    names = (names for kind, names in _ATTRIBUTES.items() if isinstance(callback, kind))
    return next(names, ())


def _stop_again(stopper):
    """Ends a training that an `EarlyStopping` has ended, unless its patience is longer now."""
    if stopper.stopped_epoch and stopper.wait >= stopper.patience:
        stopper.model.stop_training = True
    else:
        stopper.stopped_epoch = 0


def _is_known(callback):
    """Whether a callback is of Keras or of this package, or has methods for its state."""
    return has_methods(callback) or type(callback).__module__.startswith(
        ("keras.", "keras_bert_suite.", "keras_bert_cli.")
    )


def _describe_attributes(callback):
    """dict of name -> short text, which differs if the attribute has changed.

    Attributes that are no plain values are compared by identity. A subclass of one of Keras' own
    callbacks has further attributes of Keras.
    """
    kept = _list_attributes(callback)
    bases = [base for base in type(callback).__mro__ if base.__module__.startswith("keras.")]
    is_plain = bases[0] is keras.callbacks.Callback
    return {
        name: _describe(value)
        for name, value in vars(callback).items()
        if name not in ("params", "_model", "monitor_op", "min_delta", *kept)
        and (is_plain or not name.startswith("_"))
    }


def _describe(value):
    is_plain = isinstance(value, bool | int | float | str | list | tuple | dict | set | None)
    return _SHORT.repr(value) if is_plain else id(value)


_SHORT = reprlib.Repr()
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = _SHORT.maxset = 50


def _encode(value, name, arrays):
    """A state as JSON can hold it. Its arrays go to `arrays`, by names that begin with `name`."""
    if isinstance(value, bool | int | float | str | None):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list):
        return [_encode(item, f"{name}/{number}", arrays) for number, item in enumerate(value)]
    if isinstance(value, tuple):
        return {"tuple": _encode(list(value), name, arrays)}
    if isinstance(value, Mapping):
        items = [[key, _encode(item, f"{name}/{key}", arrays)] for key, item in value.items()]
        return {"dict": items}
    if isinstance(value, np.ndarray) or keras.ops.is_tensor(value):
        arrays[name] = np.array(keras.ops.convert_to_numpy(value), order="C")
        return {"array": name}
    raise TypeError(
        f"The state of a callback holds {with_article(value)} at {name}. get_state() must "
        "return numbers, texts, None, arrays, or lists, tuples and dicts of them."
    )


def _decode(value, arrays):
    """The state that `_encode` has encoded."""
    if isinstance(value, list):
        return [_decode(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "array":
        return arrays[content]
    if kind == "tuple":
        return tuple(_decode(content, arrays))
    return {key: _decode(item, arrays) for key, item in content}


def select_arrays(arrays: Arrays) -> Arrays:
    """The arrays of states in a checkpoint."""
    return {name: array for name, array in arrays.items() if name.startswith(_PREFIX)}
