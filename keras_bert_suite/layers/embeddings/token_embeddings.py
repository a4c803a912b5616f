"""Token embeddings, normalised, for encoders whose attention layers know the positions."""

from typing import Any

import keras

from keras_bert_suite.annotations import Config, Shape, Tensor
from keras_bert_suite.layers.attention.sequence_layout import LAYOUT_ARGUMENT, SequenceLayout
from keras_bert_suite.layers.dropout import Dropout


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class TokenEmbeddings(keras.layers.Layer):
    """The embeddings of tokens alone, without positions and segments, normalised, with dropout.

    Args:
        vocabulary_size: int V, rows of the token embedding.
        hidden_dim: int H, width of the output.
        max_sequence_length: int, the maximum sequence length.
        dropout: float, rate of the dropout after the norm.
        layer_norm_epsilon: float, added to the variance.
        norm_bias: bool, whether the norm has a bias.
        initializer_range: float, standard deviation of the truncated normal.
    """

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        max_sequence_length: int = 8192,
        dropout: float = 0.0,
        layer_norm_epsilon: float = 1e-5,
        norm_bias: bool = False,
        initializer_range: float = 0.02,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._register_call_context_args(LAYOUT_ARGUMENT)
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim
        self.max_sequence_length = max_sequence_length
        self.dropout = dropout
        self.layer_norm_epsilon = layer_norm_epsilon
        self.norm_bias = norm_bias
        self.initializer_range = initializer_range

        self.token_embedding = keras.layers.ReversibleEmbedding(
            vocabulary_size,
            hidden_dim,
            embeddings_initializer=keras.initializers.TruncatedNormal(stddev=initializer_range),
            # Within another layer Keras would compute the product with the matrix in float32.
            reverse_dtype=self.compute_dtype,
            dtype=self.dtype_policy,
            name="token_embedding",
        )
        self.layer_norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon,
            center=norm_bias,
            dtype=self.dtype_policy,
            name="layer_norm",
        )
        self.embeddings_dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, token_ids_shape: Shape) -> None:
        self.token_embedding.build()
        self.layer_norm.build((*token_ids_shape, self.hidden_dim))

    def call(
        self,
        token_ids: Tensor,
        training: bool | None = None,
        sequence_layout: SequenceLayout | None = None,
    ) -> Tensor:
        """Embeds a batch of packed token ids.

        Args:
            token_ids: int32 (B, L), in [0, V).
            training: bool, whether dropout is active.
            sequence_layout: `SequenceLayout` of packed rows, or None.

        Returns:
            float (B, L, H) in the compute dtype; with a layout (R, W, H).

        Raises:
            ValueError: if a static L exceeds `max_sequence_length`.
        """
        static_length = token_ids.shape[1]
        if static_length is not None and static_length > self.max_sequence_length:
            raise ValueError(
                f"token_ids has length {static_length}, but this model is for rows of at most "
                f"{self.max_sequence_length} tokens. Shorten the input: set `sequence_length` of "
                f"the SegmentPacker to at most {self.max_sequence_length}."
            )
        if sequence_layout is not None:
            token_ids = sequence_layout.pack(token_ids)
        x = self.layer_norm(self.token_embedding(token_ids))
        return self.embeddings_dropout(x, training=training)

    def compute_output_shape(self, token_ids_shape: Shape) -> Shape:
        return (*token_ids_shape, self.hidden_dim)

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "hidden_dim": self.hidden_dim,
            "max_sequence_length": self.max_sequence_length,
            "dropout": self.dropout,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "norm_bias": self.norm_bias,
            "initializer_range": self.initializer_range,
        }
