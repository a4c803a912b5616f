"""Layers that save the arguments of their constructors."""

from collections.abc import Container, Mapping
from typing import Any, Self

import keras

from keras_bert_suite.annotations import Config, Shape
from keras_bert_suite.argument_checks import list_arguments
from keras_bert_suite.fixed_arguments import FixedArguments


class ConfiguredLayer(FixedArguments, keras.layers.Layer):
    """A layer whose configuration has every argument of its constructor.

    Each argument is kept in an attribute of the same name.
    """

    def get_config(self) -> Config:
        return {**super().get_config(), **read_arguments(self, type(self))}

    @classmethod
    def from_config(cls, config: Config) -> Self:
        return super().from_config({name: _from_json(value) for name, value in config.items()})


class ShapeKeepingLayer(ConfiguredLayer):
    """A layer whose output has the shape of its first input."""

    def compute_output_shape(self, shape: Shape, *_: Shape) -> Shape:
        return shape


def read_arguments(
    layer: keras.layers.Layer, cls: type, left_out: Container[str] = ("dtype",)
) -> Config:
    """Reads the arguments of the constructor of `cls` from the attributes of a layer or a model.

    The arguments of a user's subclass are left to the `get_config` of that class. The result is a
    dict that JSON can hold, without the arguments `left_out`: Keras has the "dtype".
    """
    ours = next(base for base in cls.__mro__ if base.__module__.startswith("keras_bert_suite."))
    names = list_arguments(ours)
    return {name: _to_json(getattr(layer, name)) for name in names if name not in left_out}


def _to_json(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_to_json(part) for part in value]
    if isinstance(value, Mapping):
        return {name: _to_json(part) for name, part in value.items()}
    if hasattr(value, "get_config"):  # A layer, or a sampler.
        return keras.saving.serialize_keras_object(value)
    return keras.activations.serialize(value) if callable(value) else value


def _from_json(value: Any) -> Any:
    is_object = isinstance(value, dict) and "class_name" in value
    return keras.saving.deserialize_keras_object(value) if is_object else value
