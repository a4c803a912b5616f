"""The base of layers that wrap a `TokenMasker`."""

from typing import Any

import keras_hub

from keras_bert_suite.preprocessing.masking.masking_layer import MaskingLayer
from keras_bert_suite.preprocessing.masking.token_masker import TokenMasker


class MaskerWrapper(MaskingLayer):
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
