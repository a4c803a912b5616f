"""The base of layers that take packed rows, and list the tokens to predict."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Self

import keras
import keras_hub
import numpy as np

from keras_bert_suite.annotations import Config, Tensor
from keras_bert_suite.argument_checks import check_integer, list_arguments
from keras_bert_suite.fixed_arguments import FixedArguments
from keras_bert_suite.masking.array_maker import ArrayMaker
from keras_bert_suite.masking.ragged_rows import RaggedRows, pack_rows
from keras_bert_suite.tokenizers.text_inputs import is_tf_tensor

#: The arguments that may be layers or functions, which Keras saves as objects.
_OBJECTS = ("tokenizer", "masker", "word_segmenter", "phrases")


class MaskingLayer(ArrayMaker, FixedArguments, keras.layers.Layer):
    """A layer that is called with packed rows, and saved by the arguments of its constructor.

    A subclass has `call`, and an attribute for each argument of its constructor. The masker of
    `PretrainingBatches` also has a `tokenizer` and `dynamic`. `call` takes and returns NumPy arrays
    by name. Each reaches the input of the model with its name, or the loss of an output, if
    `labels` says so. The layer itself also takes a single row, and tensors of TensorFlow.
    """

    #: Output of a model -> its labels and their weights, names of two arrays. `PretrainingBatches`
    #: adds the relations of pairs, `pair_labels`. Weights that are no array are 1.
    labels: Mapping[str, tuple[str, str]] = {
        "mlm": ("mask_ids", "mask_weights"),
        "nsp": ("pair_labels", "pair_weights"),
    }

    def __call__(
        self, inputs: Mapping[str, Tensor], row_ids: Tensor = None, epoch: Tensor = 0
    ) -> dict[str, Tensor]:
        # Keras' own `__call__` would convert the arrays to tensors of the backend.
        if not {"token_ids", "padding_mask"} <= inputs.keys():
            raise ValueError(
                f"{type(self).__name__} needs the keys token_ids and padding_mask, got "
                f"{sorted(inputs)}. Pass the dict that SegmentPacker returns."
            )
        if any(map(is_tf_tensor, (*inputs.values(), row_ids, epoch))):
            return self._call_with_tensors(inputs, row_ids, epoch)
        return self._call_with_arrays(inputs, row_ids, epoch)

    def make_arrays(
        self, texts: Sequence[RaggedRows], sequence_length: int, row_ids: np.ndarray, epoch: int
    ) -> dict[str, np.ndarray]:
        """The arrays of a batch: rows of one or two texts, packed and masked.

        Args:
            texts: list of one or two `RaggedRows` with `token_ids`.
            sequence_length, row_ids, epoch: as for `Corruption`.
        """
        return self(pack_rows(self.tokenizer, texts, sequence_length), row_ids, epoch)

    def _call_with_arrays(self, inputs, row_ids, epoch):
        inputs = {name: np.asarray(x) for name, x in inputs.items()}
        row_ids = None if row_ids is None else np.asarray(row_ids)
        if inputs["token_ids"].ndim > 1:
            return self.call(inputs, row_ids, epoch)
        inputs = {name: x[None] for name, x in inputs.items()}
        row_ids = None if row_ids is None else row_ids[None]
        return {name: x[0] for name, x in self.call(inputs, row_ids, epoch).items()}

    def _call_with_tensors(self, inputs, row_ids, epoch):
        """Calls the layer by one operation of TensorFlow, also in a graph."""
        import tensorflow as tf

        inputs = {name: tf.convert_to_tensor(x) for name, x in inputs.items()}
        batch = inputs["token_ids"].shape[:-1]
        sizes = {name: list(x.shape[len(batch) :]) for name, x in inputs.items()}
        # A trial says which arrays the layer makes. It has 8 tokens if their number is not known.
        trial = {
            name: np.ones([1, *(size or 8 for size in sizes[name])], x.dtype.as_numpy_dtype)
            for name, x in inputs.items()
        }
        outputs = self.call(trial, None if row_ids is None else np.zeros(1, "int64"), 0)
        made = {name: x for name, x in outputs.items() if x.dtype != object}  # Texts pass on.
        are_known = all(None not in of_array for of_array in sizes.values())

        def call(epoch, *arrays):
            given = dict(zip(inputs, arrays, strict=False))
            outputs = self._call_with_arrays(given, *arrays[len(inputs) :] or [None], epoch)
            return [outputs[name] for name in made]

        arguments = [epoch, *inputs.values(), *([] if row_ids is None else [row_ids])]
        types = [x.dtype for x in made.values()]
        tensors = tf.numpy_function(call, arguments, types, stateful=False)
        for tensor, x in zip(tensors, made.values(), strict=True):
            tensor.set_shape([*batch, *(x.shape[1:] if are_known else [None] * (x.ndim - 1))])
        return {**inputs, **dict(zip(made, tensors, strict=True))}

    def _list_arguments(self) -> dict[str, Any]:
        """dict of the arguments of the constructor: layers, functions and plain types."""
        return {name: _copy_plain(getattr(self, name)) for name in list_arguments(type(self))}

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


def check_rows(token_ids: np.ndarray, row_ids: Any, epoch: Any) -> None:
    """Raises a ValueError if ids of rows or an epoch cannot be those of a batch, int (B, L)."""
    wanted = row_ids is not None and row_ids.shape == token_ids.shape[:1]
    if not wanted or row_ids.dtype.kind not in "iu" or row_ids.min(initial=0) < 0:
        given = np.asarray(row_ids)
        raise ValueError(
            "row_ids must be the numbers of the rows in the dataset, integers from 0, for "
            f"token_ids of shape {token_ids.shape}, got {given.dtype} {given.ravel()[:5]}."
        )
    check_integer("epoch", epoch)


def _copy_plain(value):
    """A plain dict or list of a mapping, a sequence or an array, without Keras' tracking."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    return list(value) if isinstance(value, (list, tuple)) else value


class MaskerWrapper(MaskingLayer):
    """The base of layers that call a `TokenMasker`, and can be used instead of it."""

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

    @property
    def labels(self) -> Mapping[str, tuple[str, str]]:  # type: ignore[override]
        """The labels of the masker. A subclass that makes others has an attribute of this name."""
        return self.masker.labels

    def check_task(self, task: keras.Model) -> None:
        """Raises a ValueError if a task cannot learn from the arrays of the masker."""
        self.masker.check_task(task)
