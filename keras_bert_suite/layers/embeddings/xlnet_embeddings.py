"""The embeddings of XLNet: tokens, and the vector of a token that is to be predicted."""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Shape, Tensor
from keras_bert_suite.layers.attention.sequence_layout import Layout
from keras_bert_suite.layers.embeddings.bert_embeddings import BertEmbeddings
from keras_bert_suite.layers.inner_call import call_inner


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class XLNetEmbeddings(BertEmbeddings):
    """`BertEmbeddings` of tokens alone, without a norm, and the start of the query stream.

    The query stream starts with one vector, `mask_embedding`, whatever the token. A model of the
    content stream alone keeps the vector, and does not train it.

    Args:
        vocabulary_size, hidden_dim: as for `BertEmbeddings`.
        trains_queries: bool, whether `mask_embedding` is trained.
        num_segments: int, as for `BertEmbeddings`. XLNet has 0: its attention knows the segments.
        **kwargs: other arguments of `BertEmbeddings`.

    Source: Yang et al., 2019 (https://arxiv.org/abs/1906.08237), section 2.3.
    """

    has_positions = False
    has_norm = False

    def __init__(
        self,
        vocabulary_size: int | None,
        hidden_dim: int,
        trains_queries: bool = False,
        num_segments: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(vocabulary_size, hidden_dim, num_segments=num_segments, **kwargs)
        self.trains_queries = trains_queries

    def build(self, token_ids_shape: Shape, *_: Shape | None) -> None:
        super().build(token_ids_shape)
        self.mask_embedding = self.add_weight(
            (self.hidden_dim,),
            keras.initializers.TruncatedNormal(stddev=self.initializer_range),
            trainable=self.trains_queries,
            name="mask_embedding",
        )

    def call(
        self,
        token_ids: Tensor,
        segment_ids: Tensor | None = None,
        positions: Tensor | None = None,
        training: bool | None = None,
        sequence_layout: Layout | None = None,
        embedding_shift: Tensor | None = None,
        condition: Tensor | None = None,
        is_query: bool = False,
    ) -> Tensor:
        """Embeds tokens, or starts the query stream.

        Args:
            token_ids: int32 (B, L), in [0, V); or int32 (B, P), of which the shape is read.
            segment_ids, positions, training, sequence_layout, embedding_shift: as for
                `BertEmbeddings.call`.
            condition: None. There is no norm that would depend on it.
            is_query: bool, whether each token has the vector `mask_embedding`.

        Returns:
            float (B, L, H) or (B, P, H).
        """
        if not is_query:
            return super().call(
                token_ids, segment_ids, positions, training, sequence_layout, embedding_shift
            )
        vector = ops.cast(ops.convert_to_tensor(self.mask_embedding), self.compute_dtype)
        queries = ops.broadcast_to(vector, (*ops.shape(token_ids), self.hidden_dim))
        return call_inner(self.embeddings_dropout, queries, training=training)
