"""Learned vectors that stand before the token embeddings of each row."""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers.adapters.adaptable import find_acting
from keras_bert_suite.layers.configured_layer import ConfiguredLayer
from keras_bert_suite.layers.eager_pass import read_weight

#: The kind of adapter that embeddings take.
PROMPT = "prompt"


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class PromptVectors(ConfiguredLayer):
    """Puts learned vectors before the embeddings of the tokens of each row.

    Args:
        length: int P, the number of vectors.
        embedding_dim: int E, their width.
        initializer_range: float, standard deviation of the normal that they are drawn from.

    Source: Lester et al., 2021 (https://arxiv.org/abs/2104.08691), section 2.
    """

    def __init__(
        self, length: int, embedding_dim: int, initializer_range: float = 0.02, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.length = length
        self.embedding_dim = embedding_dim
        self.initializer_range = initializer_range

    def build(self, input_shape: Any = None) -> None:
        draw = keras.initializers.RandomNormal(stddev=self.initializer_range)
        self.vectors = self.add_weight((self.length, self.embedding_dim), draw, name="vectors")
        self.built = True

    def call(self, x: Tensor) -> Tensor:
        """float (B, L, E) -> (B, P + L, E)."""
        shape = (ops.shape(x)[0], self.length, self.embedding_dim)
        vectors = ops.cast(read_weight(self.vectors), x.dtype)
        return ops.concatenate([ops.broadcast_to(vectors[None], shape), x], axis=1)

    def compute_output_shape(self, input_shape: Any) -> Any:
        batch, length, width = input_shape
        return batch, None if length is None else length + self.length, width


def find_prompt_length() -> int:
    """The places that the adapter which acts puts before the tokens of each row."""
    acting = find_acting()
    return 0 if acting is None else acting.prompt_length


def make_room(x: Tensor, value: int = 0, axis: int = 1) -> Tensor:
    """Puts `value` at the places of prompts before those of tokens: L places become P + L.

    Without prompts the result is `x` itself.

    Args:
        x: int or float, with the L places of tokens on the `axis`.
        value: int.
        axis: int.
    """
    length = find_prompt_length()
    if not length:
        return x
    widths = [[0, 0] for _ in x.shape]
    widths[axis][0] = length
    return ops.pad(x, widths, constant_values=value)
