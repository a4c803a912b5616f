"""The head that guesses masked tokens."""

import functools
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Activation, Config, Shape, Tensor
from keras_bert_suite.layers.configured_layer import ConfiguredLayer
from keras_bert_suite.layers.dense import make_dense
from keras_bert_suite.layers.eager_pass import pack, read_weight
from keras_bert_suite.layers.inner_call import call_inner
from keras_bert_suite.layers.norms import make_norm
from keras_bert_suite.layers.torch_products import linear, multiply_packed, pack_table


class VocabularyHead(ConfiguredLayer):
    """A head that ends with the product with the token embedding, and a bias for each token."""

    def __init__(
        self,
        token_embedding: keras.layers.ReversibleEmbedding,
        activation: Activation,
        layer_norm_epsilon: float,
        initializer_range: float,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.token_embedding = token_embedding
        self.activation = keras.activations.get(activation)
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_range = initializer_range

    def add_bias_of_tokens(self) -> None:
        """Makes the bias (V,)."""
        self.bias = self.add_weight(
            shape=(self.token_embedding.input_dim,), initializer="zeros", name="bias"
        )

    def score_vocabulary(self, x: Tensor) -> Tensor:
        """float (B, P, E) -> float (B, P, V), the logits of all tokens."""
        # The product takes a matrix with one row for each prediction. XLA would copy a tensor with
        # three axes before the products of the backward pass.
        rows, embedding = ops.reshape(x, (-1, x.shape[-1])), self.token_embedding
        is_plain = (
            isinstance(embedding, keras.layers.ReversibleEmbedding)
            and embedding.tie_weights
            and embedding.logit_soft_cap is None
            and embedding.quantization_mode is None
        )
        if keras.config.backend() == "torch" and is_plain:
            packed = pack(_pack_embedding, self)
            if packed is not None:
                logits = multiply_packed(rows, packed, read_weight(self.bias))
            else:
                weights = (rows, embedding.embeddings, self.bias)
                rows, table, bias = (ops.cast(x, self.compute_dtype) for x in weights)
                logits = linear(rows, table.T, bias)
        else:
            logits = embedding(rows, reverse=True)
            logits = _add_bias(logits, ops.cast(self.bias, logits.dtype))
        return ops.reshape(logits, (*ops.shape(x)[:-1], logits.shape[-1]))

    def compute_output_shape(
        self, sequence_output_shape: Shape, mask_positions_shape: Shape | None = None
    ) -> Shape:
        rows = sequence_output_shape[:-1] if mask_positions_shape is None else mask_positions_shape
        return (*rows, self.token_embedding.input_dim)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class MaskedLMHead(VocabularyHead):
    """Gathers the masked positions and scores every token of the vocabulary for each.

    A dense layer, an activation and a norm are followed by the product with the token embedding,
    whose matrix the head shares, and a bias for each token.

    Args:
        token_embedding: `keras.layers.ReversibleEmbedding` (V, E) of the backbone.
        activation: function.
        layer_norm_epsilon: float, added to the variance.
        initializer_range: float, standard deviation of the truncated normal.
        transform: a layer (..., H) to (..., E) that the head shares with the backbone, instead of
            the dense layer, the activation and the norm; None to make these layers.

    Source: google-research/bert, run_pretraining.py, `get_masked_lm_output`.
    """

    #: `build` makes it, unless it is given. After that Keras refuses another layer.
    changeable = frozenset({"transform"})

    def __init__(
        self,
        token_embedding: keras.layers.ReversibleEmbedding,
        activation: Activation,
        layer_norm_epsilon: float = 1e-12,
        initializer_range: float = 0.02,
        transform: keras.layers.Layer | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            token_embedding, activation, layer_norm_epsilon, initializer_range, **kwargs
        )
        self.shared_transform = transform
        self.transform: Any = transform

    def build(
        self, sequence_output_shape: Shape, mask_positions_shape: Shape | None = None
    ) -> None:
        if self.shared_transform is None:
            self.transform = make_dense(
                self,
                self.token_embedding.output_dim,
                "transform",
                sequence_output_shape,
                self.initializer_range,
                activation=self.activation,
            )
            self.layer_norm = make_norm(self, "layer_norm", self.layer_norm_epsilon)
            self.layer_norm.build((None, None, self.token_embedding.output_dim))
        elif not self.shared_transform.built:
            self.shared_transform.build(sequence_output_shape)
        self.add_bias_of_tokens()

    def call(self, sequence_output: Tensor, mask_positions: Tensor | None = None) -> Tensor:
        """Scores the vocabulary at some positions.

        Args:
            sequence_output: float (B, L, H).
            mask_positions: int32 (B, P), in [0, L); None for all positions, P = L.

        Returns:
            float (B, P, V) in the compute dtype, logits.
        """
        x = sequence_output
        if mask_positions is not None:
            x = ops.take_along_axis(x, mask_positions[:, :, None], axis=1)
        if self.shared_transform is None:
            x = call_inner(self.layer_norm, call_inner(self.transform, x))
        else:
            x = self.shared_transform(x)
        return self.score_vocabulary(x)

    def get_config(self) -> Config:
        shared = self.shared_transform
        return {**super().get_config(), "transform": shared and keras.layers.serialize(shared)}


def _pack_embedding(head: VocabularyHead) -> Tensor | None:
    """The table (V, E) of a head that computes in the dtype of its weights, see `pack_table`."""
    if head.compute_dtype != head.variable_dtype:
        return None
    return pack_table(read_weight(head.token_embedding.embeddings))


def _add_bias(x: Tensor, bias: Tensor) -> Tensor:
    """Computes `x + bias`, (..., D). Under JAX the gradient of the bias is one matrix product.

    The gradient of the bias is the sum over all rows. XLA sums the rows column by column. For the
    logits of a vocabulary this takes as long on a CPU as the product that made the logits. A
    product of ones with the rows reads the rows in order.
    """
    return _jax_add_bias()(x, bias) if keras.config.backend() == "jax" else x + bias


@functools.cache
def _jax_add_bias() -> Callable[[Tensor, Tensor], Tensor]:
    import jax
    import jax.numpy as jnp

    @jax.custom_vjp
    def add(x: Tensor, bias: Tensor) -> Tensor:
        return x + bias

    def forward(x: Tensor, bias: Tensor) -> tuple[Tensor, None]:
        return x + bias, None

    def backward(_: None, gradient: Tensor) -> tuple[Tensor, Tensor]:
        rows = gradient.reshape(-1, gradient.shape[-1])
        ones = jnp.ones(len(rows), rows.dtype)
        total = jnp.matmul(ones, rows, preferred_element_type=jnp.float32)
        return gradient, total.astype(rows.dtype)

    add.defvjp(forward, backward)
    return add
