"""Embeddings of encoders whose attention layers know the positions."""

from typing import Any

import keras

from keras_bert_suite.layers.embeddings.bert_embeddings import BertEmbeddings


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class UnplacedEmbeddings(BertEmbeddings):
    """`BertEmbeddings` without a table of positions, with a norm of `NORM_TYPES`.

    Rows may still have no more than `max_sequence_length` tokens, unless it is None.
    """

    has_positions = False

    def __init__(
        self,
        vocabulary_size: int | None,
        hidden_dim: int,
        norm_type: str = "layer_norm",
        **kwargs: Any,
    ) -> None:
        self.norm_type = norm_type
        super().__init__(vocabulary_size, hidden_dim, **kwargs)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class TokenEmbeddings(BertEmbeddings):
    """`BertEmbeddings` of tokens alone, without tables of positions and segments.

    `norm_bias` says whether the norm has a bias.
    """

    has_positions = False

    def __init__(
        self,
        vocabulary_size: int | None,
        hidden_dim: int,
        max_sequence_length: int | None = 8192,
        dropout: float = 0.0,
        layer_norm_epsilon: float = 1e-5,
        norm_bias: bool = False,
        num_segments: int = 0,
        **kwargs: Any,
    ) -> None:
        self.norm_bias = norm_bias
        super().__init__(
            vocabulary_size,
            hidden_dim,
            max_sequence_length=max_sequence_length,
            num_segments=num_segments,
            dropout=dropout,
            layer_norm_epsilon=layer_norm_epsilon,
            **kwargs,
        )
