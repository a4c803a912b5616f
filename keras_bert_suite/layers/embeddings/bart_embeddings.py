"""Embeddings of tokens and positions, of which an encoder and a decoder share the tokens'."""

import math
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Shape, Tensor
from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.layers.configured_layer import ConfiguredLayer
from keras_bert_suite.layers.dropout import Dropout
from keras_bert_suite.layers.embeddings.bert_embeddings import make_frame_projection
from keras_bert_suite.layers.inner_call import call_inner
from keras_bert_suite.layers.norms import make_norm


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class BartEmbeddings(ConfiguredLayer):
    """Sum of token and position embeddings, normalised, with dropout.

    The table of tokens is given, because both sides of an encoder-decoder read it. Each side has
    its own positions and its own norm.

    Args:
        token_embedding: `keras.layers.ReversibleEmbedding` (V, H). The first layer that is built
            builds it.
        max_sequence_length: int, the maximum sequence length.
        dropout: float, rate of the dropout after the norm.
        layer_norm_epsilon: float, added to the variance.
        initializer_range: float, standard deviation of the truncated normal.
        scale_tokens: bool, whether the token embeddings are multiplied by the square root of H.
        position_offset: int, how many rows the position embedding has before the row of the first
            token. Unlike RoBERTa's, the position of a token does not depend on padding.
        frame_dim: int D, the width of vectors that come in the place of token ids, as for
            `BertEmbeddings`. They are not scaled. None for token ids.

    Source: Lewis et al., 2019 (https://arxiv.org/abs/1910.13461), and `modeling_bart.py` of
    transformers.
    """

    def __init__(
        self,
        token_embedding: keras.layers.ReversibleEmbedding,
        max_sequence_length: int,
        dropout: float = 0.1,
        layer_norm_epsilon: float = 1e-5,
        initializer_range: float = 0.02,
        scale_tokens: bool = False,
        position_offset: int = 2,
        frame_dim: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.token_embedding = token_embedding
        self.hidden_dim = token_embedding.output_dim
        self.max_sequence_length = max_sequence_length
        self.dropout = dropout
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_range = initializer_range
        self.scale_tokens = scale_tokens
        self.position_offset = position_offset
        self.frame_dim = frame_dim
        initializer = keras.initializers.TruncatedNormal(stddev=initializer_range)
        self.frame_projection = None
        if frame_dim is not None:
            check_integer("frame_dim", frame_dim, at_least=1)
            self.frame_projection = make_frame_projection(
                frame_dim, self.hidden_dim, initializer, self.dtype_policy
            )
        self.position_embedding = keras.layers.Embedding(
            position_offset + max_sequence_length,
            self.hidden_dim,
            embeddings_initializer=initializer,
            dtype=self.dtype_policy,
            name="position_embedding",
        )
        self.layer_norm = make_norm(self, "layer_norm", layer_norm_epsilon)
        self.embeddings_dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, token_ids_shape: Shape, *_: Shape | None) -> None:
        if not self.token_embedding.built:
            self.token_embedding.build()
        self.position_embedding.build()
        if self.frame_projection is not None:
            self.frame_projection.build((*token_ids_shape[:2], self.frame_dim))
        self.layer_norm.build((*token_ids_shape[:2], self.hidden_dim))

    def call(
        self, token_ids: Tensor, positions: Tensor | None = None, training: bool | None = None
    ) -> Tensor:
        """Embeds a batch of token ids.

        Args:
            token_ids: int32 (B, L), in [0, V); or frames, float (B, L, D).
            positions: int32 (1, L) or (B, L), the places of the tokens; None for 0 to L - 1.
            training: bool, whether dropout is active.

        Returns:
            float (B, L, H) in the compute dtype.

        Raises:
            ValueError: if a static L exceeds `max_sequence_length`.
        """
        length = token_ids.shape[1]
        if length is not None and length > self.max_sequence_length:
            raise ValueError(
                f"token_ids has length {length}, but this model has positions for "
                f"{self.max_sequence_length} tokens, on each side. Shorten the input: set "
                f"`sequence_length` of the SegmentPacker to at most {self.max_sequence_length}."
            )
        if positions is None:
            positions = ops.arange(ops.shape(token_ids)[1], dtype="int32")
        x = self._embed(token_ids)
        x = x + call_inner(self.position_embedding, positions + self.position_offset)
        return call_inner(
            self.embeddings_dropout, call_inner(self.layer_norm, x), training=training
        )

    def _embed(self, token_ids: Tensor) -> Tensor:
        """float (B, L, H), the vectors of tokens or frames alone."""
        if self.frame_dim is not None:
            projection = self.frame_projection
            return token_ids if projection is None else call_inner(projection, token_ids)
        x = ops.cast(call_inner(self.token_embedding, token_ids), self.compute_dtype)
        return x * math.sqrt(self.hidden_dim) if self.scale_tokens else x

    def compute_output_shape(self, token_ids_shape: Shape, *_: Shape | None) -> Shape:
        return (*token_ids_shape[:2], self.hidden_dim)
