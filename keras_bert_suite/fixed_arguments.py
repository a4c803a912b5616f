"""Objects that are built of the arguments of their constructor, which then stay as they are."""

import functools
from typing import Any, ClassVar

import keras
import numpy as np

from keras_bert_suite.argument_checks import list_arguments

_UNSET = object()


class FixedArguments:
    """Refuses a new value of anything that an object was built of.

    An object is built of the arguments of its constructor, and of its layers. A new value would be
    saved, but would not change the layers or a compiled step. An argument may be set if it is a
    property with a setter, or one of `changeable`.
    """

    #: The names of arguments that each call reads, so that a new value holds.
    changeable: ClassVar[frozenset[str]] = frozenset()

    def __setattr__(self, name: str, value: Any) -> None:
        if self.is_fixed(name, value):
            own, new = show_value(getattr(self, name, None)), show_value(value)
            raise AttributeError(
                f"{name}={own} has built this {type(self).__name__}, so {new} would change "
                f"nothing. {self._say_how_to_change(name, value)}"
            )
        super().__setattr__(name, value)

    def is_fixed(self, name: str, value: Any) -> bool:
        """Whether an attribute, which has another value, cannot be set to this one."""
        cls: Any = type(self)
        of_class = getattr(cls, name, _UNSET)
        if isinstance(of_class, property):
            return of_class.fset is None and name in _arguments_of(cls)
        own = getattr(self, name, of_class)
        is_set = own is not of_class or name in vars(self)
        if not is_set or own is value or name in self.changeable:
            return False
        is_argument = name in _arguments_of(cls)
        return (is_argument or _is_made_of_layers(name, own)) and not _are_equal(own, value)

    def _say_how_to_change(self, name: str, value: Any) -> str:
        """The remedy: how to get an object with another value of an argument."""
        return f"Make another {type(self).__name__} with it."


@functools.cache
def _arguments_of(cls):
    return frozenset(list_arguments(cls))


def _is_made_of_layers(name, value):
    parts = value if isinstance(value, list) else [value]
    return not name.startswith("_") and any(isinstance(p, keras.layers.Layer) for p in parts)


def _are_equal(own, value):
    try:
        return bool(np.all(own == value))
    except (TypeError, ValueError):  # Arrays of shapes that cannot be compared.
        return False


def show_value(value: Any) -> str:
    """A value for a message, which may be a layer, a table or a function."""
    if isinstance(value, keras.layers.Layer):
        return f"the layer {value.name}"
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
