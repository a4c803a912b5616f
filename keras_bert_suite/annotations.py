"""Types for annotations."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import keras
import numpy as np

#: A tensor of the Keras backend or of TensorFlow, a NumPy array, or one of Keras' symbolic tensors.
#: These have no base class in common, so a type checker takes any value.
Tensor: TypeAlias = Any

#: Names of arrays and the arrays.
Arrays: TypeAlias = Mapping[str, np.ndarray]

#: Sizes of a tensor. A size is an int, or None if it is unknown.
Shape: TypeAlias = tuple[Any, ...]

#: The configuration of a Keras object, from `get_config`. JSON can hold it.
Config: TypeAlias = dict[str, Any]

#: An activation function, or its name.
Activation: TypeAlias = str | Callable[[Tensor], Tensor]

#: A precision, such as "float32" or "mixed_bfloat16".
Dtype: TypeAlias = str | keras.DTypePolicy

#: A learning rate, or a schedule of learning rates.
LearningRate: TypeAlias = float | keras.optimizers.schedules.LearningRateSchedule

#: A file or a folder. Where a function says so, also an address such as "hf://owner/name".
PathLike: TypeAlias = str | os.PathLike[str]

#: A regular expression, or several.
Patterns: TypeAlias = str | Sequence[str]

#: The argument `x` of `fit`: texts, rows of words, columns by name, packed arrays or a dataset.
Inputs: TypeAlias = Any

#: The arguments `y` and `sample_weight` of `fit`: a value for each row, an array, or a dict of
#: arrays.
Labels: TypeAlias = Any
