"""The base of layers that wrap a `TokenMasker`."""

from collections.abc import Mapping
from typing import Any

import keras
import keras_hub

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.preprocessing.masking.token_masker import TokenMasker


class MaskerWrapper(keras.layers.Layer):
    """The base of layers that call a `TokenMasker`, and can be used instead of it.

    Args:
        masker: `TokenMasker`.

    Raises:
        ValueError: if `masker` is of another class.
    """

    def __init__(self, masker: TokenMasker, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(masker, TokenMasker):
            raise ValueError(
                f"A {type(self).__name__} is wrapped around a TokenMasker, got a "
                f"{type(masker).__name__}. The layers that wrap a TokenMasker do not wrap each "
                "other."
            )
        self.masker = masker

    @property
    def tokenizer(self) -> keras_hub.tokenizers.Tokenizer:
        """The tokenizer of the masker."""
        return self.masker.tokenizer

    @property
    def dynamic(self) -> bool:
        """Whether the rows of each epoch are masked and changed anew."""
        return self.masker.dynamic

    def __call__(
        self, inputs: Mapping[str, Tensor], row_ids: Tensor, epoch: Tensor = 0
    ) -> dict[str, Tensor]:
        # Keras' own `__call__` would convert the arrays to tensors of the backend.
        return self.call(inputs, row_ids, epoch)
