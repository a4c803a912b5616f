"""A table of tokens of low rank."""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Shape, Tensor
from keras_bert_suite.layers.configured_layer import ConfiguredLayer
from keras_bert_suite.layers.inner_call import call_inner


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class FactorizedEmbedding(ConfiguredLayer):
    """A table of tokens (V, E) that is the product of a narrow table (V, R) and a matrix (R, E).

    It takes the place of a `keras.layers.ReversibleEmbedding`, also for heads that score the
    vocabulary. The product is the token embedding itself, before positions, segments and norm. So
    with the factors of a singular value decomposition the encoder computes what it computes with
    the nearest table of this rank. ALBERT and ELECTRA (`embedding_dim`) project after the norm, and
    are other models.

    Args:
        input_dim: int V, the tokens.
        output_dim: int E, the width of their embeddings.
        rank: int R.
        initializer_range: float, standard deviation of the truncated normals.

    Source: Lan et al., 2019 (https://arxiv.org/abs/1909.11942), section 3.1, for the factors.
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        rank: int,
        initializer_range: float = 0.02,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.input_dim = input_dim
        self.output_dim = output_dim
        self.rank = rank
        self.initializer_range = initializer_range
        self.table = keras.layers.ReversibleEmbedding(
            input_dim,
            rank,
            embeddings_initializer=keras.initializers.TruncatedNormal(stddev=initializer_range),
            reverse_dtype=self.compute_dtype,
            dtype=self.dtype_policy,
            name="table",
        )

    @property
    def embeddings(self) -> keras.Variable:
        """The narrow table (V, R), with a row for each token."""
        return self.table.embeddings

    def build(self, *_: Shape | None) -> None:
        self.table.build()
        self.factor = self.add_weight(
            (self.rank, self.output_dim),
            keras.initializers.TruncatedNormal(stddev=self.initializer_range),
            name="factor",
        )

    def call(self, inputs: Tensor, reverse: bool = False) -> Tensor:
        """Embeds token ids int (..., ) as float (..., E).

        With `reverse` it scores the tokens, float (..., E) -> (..., V).
        """
        factor = ops.cast(ops.convert_to_tensor(self.factor), self.compute_dtype)
        if reverse:
            return self.table(ops.matmul(inputs, ops.transpose(factor)), reverse=True)
        return ops.matmul(call_inner(self.table, inputs), factor)

    def compute_output_shape(self, shape: Shape, reverse: bool = False) -> Shape:
        return (*shape[:-1], self.input_dim) if reverse else (*shape, self.output_dim)
