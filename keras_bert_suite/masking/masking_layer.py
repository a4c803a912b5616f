"""The base of layers that take packed rows, and list the tokens to predict."""

import functools
from collections.abc import Mapping
from typing import Any, Self

import keras
import keras_hub
import numpy as np

from keras_bert_suite.annotations import Config, Tensor
from keras_bert_suite.argument_checks import list_arguments

#: The arrays that a `TokenMasker` makes or changes.
OUTPUTS = ("token_ids", "mask_positions", "mask_ids", "mask_weights")
#: The arguments that may be layers or functions, which Keras saves as objects.
_OBJECTS = ("tokenizer", "masker", "word_segmenter", "phrases")


class MaskingLayer(keras.layers.Layer):
    """A layer that is called with packed rows, and saved by the arguments of its constructor.

    A subclass has `call`, and an attribute for each argument of its constructor. The masker of
    `PretrainingBatches` also has a `tokenizer` and `dynamic`. Its `call` returns the arrays that
    `TokenMasker` returns, and may add others: each reaches the input of the model with its name.
    """

    tokenizer: Any
    dynamic: bool

    def __call__(self, *args: Any, **kwargs: Any) -> dict[str, Tensor]:
        # Keras' own `__call__` would convert the arrays to tensors of the backend.
        return self.call(*args, **kwargs)

    def _list_arguments(self) -> dict[str, Any]:
        """dict of the arguments of the constructor: layers, functions and plain types."""
        return {name: _copy_plain(getattr(self, name)) for name in list_arguments(type(self))}

    def _check_keys(self, inputs: Mapping[str, Tensor]) -> None:
        if not {"token_ids", "padding_mask"} <= inputs.keys():
            raise ValueError(
                f"{type(self).__name__} needs the keys token_ids and padding_mask, got "
                f"{sorted(inputs)}. Pass the dict that SegmentPacker returns."
            )

    def _call_python(self, function, arrays, width):
        """Calls a function of NumPy arrays in a TensorFlow graph, by one operation.

        Args:
            function: takes `arrays` and returns `OUTPUTS`, as NumPy arrays.
            arrays: list of tensors, the first of them `token_ids`.
            width: int, the number P of predictions, or None if the graph does not know it.

        Returns:
            list of four tensors.
        """
        import tensorflow as tf

        types = [arrays[0].dtype, tf.int32, tf.int32, tf.float32]
        outputs = tf.numpy_function(function, arrays, types, stateful=False)
        shape = arrays[0].shape
        outputs[0].set_shape(shape)
        if shape.rank is not None:
            for output in outputs[1:]:
                output.set_shape([*shape[:-1], width])
        return outputs

    def get_config(self) -> Config:
        serialize = keras.saving.serialize_keras_object
        arguments = self._list_arguments().items()
        return {
            **super().get_config(),
            **{name: serialize(value) if callable(value) else value for name, value in arguments},
        }

    @classmethod
    def from_config(cls, config: Config) -> Self:
        config = dict(config)
        for name in _OBJECTS:
            if isinstance(config.get(name), dict):
                config[name] = keras.saving.deserialize_keras_object(config[name])
        return cls(**config)

    def __reduce__(self):
        # Keras would pickle a whole archive. Data workers need only the arguments.
        return functools.partial(type(self), **self._list_arguments(), name=self.name), ()


def _copy_plain(value):
    """A dict of a mapping, and a list of a sequence or an array: Keras tracks its own kinds."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    return list(value) if isinstance(value, (list, tuple)) else value


class MaskerWrapper(MaskingLayer):
    """The base of layers that call a `TokenMasker`, and can be used instead of it.

    Args:
        masker: `TokenMasker`.
    """

    def __init__(self, masker: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.masker = masker

    @property
    def tokenizer(self) -> keras_hub.tokenizers.Tokenizer:
        """The tokenizer of the masker."""
        return self.masker.tokenizer

    @property
    def dynamic(self) -> bool:  # type: ignore[override]  # Nobody sets it.
        """Whether the rows of each epoch are masked and changed anew."""
        return self.masker.dynamic
