"""Attention whose scores know how far a key is from its query: Transformer-XL's and XLNet's."""

from functools import partial
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Shape, Tensor
from keras_bert_suite.layers.attention.attention_kernels import attention_probabilities
from keras_bert_suite.layers.attention.self_attention import SelfAttention, expand_attention_mask
from keras_bert_suite.layers.configured_layer import ConfiguredLayer
from keras_bert_suite.layers.dense import make_dense
from keras_bert_suite.layers.dropout import Dropout
from keras_bert_suite.layers.inner_call import call_inner
from keras_bert_suite.layers.transformer_block import TransformerBlock


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class RelativeBiases(ConfiguredLayer):
    """The vectors that are added to queries, one for each kind of score.

    They are `content_bias` (`r_w_bias` of the original code, u of the paper), `position_bias`
    (`r_r_bias`, v) and, with segments, `segment_bias` (`r_s_bias`), each (heads, D). Attention
    layers may share them. `AdamW` decays them, as the original code does.

    Args:
        num_heads: int.
        head_dim: int D.
        has_segments: bool, whether there is a `segment_bias`.
        initializer_range: float, standard deviation of the truncated normal.
    """

    def __init__(
        self,
        num_heads: int,
        head_dim: int,
        has_segments: bool = True,
        initializer_range: float = 0.02,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.head_dim = head_dim
        self.has_segments = has_segments
        self.initializer_range = initializer_range

    def build(self, input_shape: Shape | None = None) -> None:
        add = partial(
            self.add_weight,
            (self.num_heads, self.head_dim),
            keras.initializers.TruncatedNormal(stddev=self.initializer_range),
        )
        self.content_bias = add(name="content_bias")
        self.position_bias = add(name="position_bias")
        self.segment_bias = add(name="segment_bias") if self.has_segments else None


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class XLNetAttention(SelfAttention):
    """Attention whose scores are sums of three terms: content, distance and segments.

    With queries q, keys k and relative keys r, the score of a query and a key is
    `((q + u) k + (q + v) r + (q + s) e) / sqrt(D)`. The relative key r is made of the sinusoid of
    the distance. The vector e is that of two tokens of one segment, or of two segments. A term
    that is the same for all keys of a query does not change the softmax, so only the difference of
    the two vectors is computed.

    No projection has a bias. The last two terms are the `score_bias` of the kernels of
    `SelfAttention`.

    Args:
        num_heads: int.
        head_dim: int D, width of a head. None divides the width H of the input among the heads.
        has_segments: bool, whether the scores have a term for segments.
        **kwargs: other arguments of `SelfAttention`.

    Attributes:
        biases: `RelativeBiases`. The layer makes them unless they are set before it is built.

    Source: Dai et al., 2019, Transformer-XL (https://arxiv.org/abs/1901.02860), section 3.3; the
    segments are from Yang et al., 2019, XLNet (https://arxiv.org/abs/1906.08237), section 2.5.
    """

    takes_buckets = False
    #: Keys may come from a source. But the distances are those of the places of a whole row.
    takes_source = False
    use_bias = False

    def __init__(
        self,
        num_heads: int,
        head_dim: int | None = None,
        has_segments: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_heads, head_dim=head_dim, **kwargs)
        self.has_segments = has_segments
        self.biases: Any = None

    def build(self, hidden_shape: Shape) -> None:
        hidden_dim = hidden_shape[-1]
        if self.head_dim is None:
            self.check_heads(hidden_dim)
        head_dim = self._choose_width(hidden_dim)
        width = self.num_heads * head_dim
        dense = partial(make_dense, self, stddev=self.initializer_range, use_bias=self.use_bias)
        self.query = dense(width, "query", hidden_shape)
        self.key = dense(width, "key", hidden_shape)
        self.value = dense(width, "value", hidden_shape)
        self.relative_key = dense(width, "relative_key", hidden_shape)
        self.output_projection = dense(hidden_dim, "output_projection", (*hidden_shape[:-1], width))
        self.segment_embedding = None
        if self.has_segments:
            self.segment_embedding = self.add_weight(
                (2, self.num_heads, head_dim),
                keras.initializers.TruncatedNormal(stddev=self.initializer_range),
                name="segment_embedding",
            )
        if self.biases is None:
            self.biases = self.make_biases(hidden_dim)
        if not self.biases.built:
            self.biases.build()

    def _choose_width(self, hidden_dim: int) -> int:
        return self.head_dim or hidden_dim // self.num_heads

    def make_biases(self, hidden_dim: int) -> RelativeBiases:
        """Makes biases for this layer, or for several layers that share them.

        `hidden_dim` is the width H of the input.
        """
        return RelativeBiases(
            self.num_heads,
            self._choose_width(hidden_dim),
            self.has_segments,
            self.initializer_range,
            dtype=self.dtype_policy,
            name="relative_biases",
        )

    def call(  # type: ignore[override]  # Distances and segments are those of pairs of tokens.
        self,
        hidden: Tensor,
        attention_mask: Tensor | None = None,
        training: bool | None = None,
        *,
        sinusoids: Tensor,
        differs: Tensor | None = None,
        memory: Tensor | None = None,
        source: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Lets each query attend to the memory and to the tokens of its row.

        Args:
            hidden: float (B, L, H), from which the queries come.
            attention_mask: as for `SelfAttention.call`; its keys are S = M + L.
            training: bool, whether dropout is active.
            sinusoids: float (1, L + S, H) or (B, L + S, H), from `RelativeSinusoids`.
            differs: bool (B, L, S), whether a query and a key are in different segments; None for
                one segment.
            memory: float (B, M, H), states before the row, to which no gradient flows; or None.
            source: float (B, L, H), from which the keys after the memory come; None for `hidden`.
                So the query stream attends to the content stream.
            positions: int32 (B, P), the places in the row of queries (B, P, H); None for
                all places. `differs` and a mask of pairs are then (B, P, S).

        Returns:
            float (B, L, H), or (B, P, H).
        """
        keys = hidden if source is None else source
        if memory is not None:
            keys = ops.concatenate([ops.stop_gradient(memory), keys], axis=1)
        query = self.project_queries(hidden)
        key, value = self.project_source(keys)
        score_bias = self._score_pairs(query, ops.shape(key)[2], sinusoids, differs, positions)
        query = _add_vectors(query, self.biases.content_bias)
        context = self.attend(query, key, value, attention_mask, training, score_bias)
        return self.merge(context)

    def compute_probabilities(  # type: ignore[override]
        self,
        hidden: Tensor,
        attention_mask: Tensor | None = None,
        *,
        sinusoids: Tensor,
        differs: Tensor | None = None,
    ) -> Tensor:
        """As `SelfAttention.compute_probabilities`; the other arguments are as for `call`."""
        query, (key, _) = self.project_queries(hidden), self.project_source(hidden)
        score_bias = self._score_pairs(query, ops.shape(key)[2], sinusoids, differs, None)
        query = _add_vectors(query, self.biases.content_bias)
        mask = expand_attention_mask(attention_mask)
        return attention_probabilities(query, key, mask, score_bias)

    def _score_pairs(
        self,
        query: Tensor,
        num_keys: int,
        sinusoids: Tensor,
        differs: Tensor | None,
        positions: Tensor | None,
    ) -> Tensor:
        """The terms of distances and segments, (B, heads, L, S), of queries (B, heads, L, D)."""
        relative_key = self._split_heads(call_inner(self.relative_key, sinusoids))
        scores = ops.matmul(
            _add_vectors(query, self.biases.position_bias), ops.swapaxes(relative_key, -1, -2)
        )
        if positions is None:
            scores = shift_distances(scores, num_keys)
        else:
            scores = take_distances(scores, num_keys, positions)
        if differs is not None:
            vectors = ops.cast(ops.convert_to_tensor(self.segment_embedding), query.dtype)
            to_segments = _add_vectors(query, self.biases.segment_bias)
            term = ops.matmul(to_segments, (vectors[1] - vectors[0])[:, :, None])
            scores = scores + ops.where(differs[:, None], term, 0)
        return scores * query.shape[-1] ** -0.5


def shift_distances(scores: Tensor, num_keys: int) -> Tensor:
    """Scores of distances -> scores of keys: (B, heads, L, L + S) -> (B, heads, L, S).

    Column c of the scores belongs to the distance S - 1 - c. The distance of query i and key j is
    i + S - L - j, so the result at (i, j) is the score at (i, L - 1 - i + j). In the row-major
    order of all scores, these are neighbours in rows of L + S - 1.

    >>> shift_distances(np.array([[[[11, 12, 13, 14], [21, 22, 23, 24]]]]), 2)
    [[[[12, 13], [21, 22]]]]
    """
    rows, heads, length, width = ops.shape(scores)
    flat = ops.reshape(scores, (rows, heads, length * width))
    flat = flat[:, :, length - 1 : length * width - 1]
    return ops.reshape(flat, (rows, heads, length, width - 1))[..., :num_keys]


def take_distances(scores: Tensor, num_keys: int, positions: Tensor) -> Tensor:
    """As `shift_distances`, of queries (B, heads, P, L + S) at int (B, P) of their rows."""
    length = ops.shape(scores)[-1] - num_keys
    keys = ops.arange(num_keys, dtype="int32")
    columns = length - 1 - ops.cast(positions, "int32")[:, :, None] + keys
    return ops.take_along_axis(scores, columns[:, None], axis=-1)


def _add_vectors(query: Tensor, vectors: Any) -> Tensor:
    """Adds a vector (heads, D) to the queries (B, heads, L, D) of each head."""
    return query + ops.cast(ops.convert_to_tensor(vectors), query.dtype)[:, None]


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class XLNetBlock(TransformerBlock):
    """`TransformerBlock` with `XLNetAttention`, and with dropout within its feed-forward network.

    Args:
        num_heads, intermediate_dim: as for `TransformerBlock`.
        head_dim, has_segments: as for `XLNetAttention`.
        **kwargs: other arguments of `TransformerBlock`.
    """

    def __init__(
        self,
        num_heads: int,
        intermediate_dim: int,
        head_dim: int | None = None,
        has_segments: bool = True,
        **kwargs: Any,
    ) -> None:
        self.has_segments = has_segments
        super().__init__(num_heads, intermediate_dim, head_dim=head_dim, **kwargs)
        self.inner_dropout = Dropout(self.dropout, dtype=self.dtype_policy, name="inner_dropout")

    def make_attention(self, **arguments: Any) -> XLNetAttention:
        """Makes the attention layer from the arguments of `SelfAttention`."""
        return XLNetAttention(has_segments=self.has_segments, **arguments)

    def call(  # type: ignore[override]
        self,
        hidden: Tensor,
        attention_mask: Tensor | None = None,
        training: bool | None = None,
        *,
        source: Tensor | None = None,
        encoder_sequence: Tensor | None = None,
        **others: Tensor | None,
    ) -> Tensor:
        """Encodes each query from the memory and the tokens of its row.

        Args:
            hidden, attention_mask, training, source: as for `XLNetAttention.call`.
            encoder_sequence: as for `TransformerBlock.call`, with `encoder_padding_mask`.
            **others: the other arguments of `XLNetAttention.call`.

        Returns:
            as `XLNetAttention.call`.
        """
        tensors = {"source": source, "encoder_sequence": encoder_sequence}
        tensors = {name: x for name, x in tensors.items() if x is not None}
        others = {name: x for name, x in others.items() if x is not None}
        if attention_mask is not None:
            others["attention_mask"] = attention_mask
        return self.run(hidden, tensors, others, training)
