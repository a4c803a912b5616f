"""Multi-head attention of tokens to each other, or to the tokens of a source."""

from collections.abc import Callable
from typing import Any, ClassVar

import keras
from keras import ops

from keras_bert_suite.annotations import Shape, Tensor
from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.layers.adapters.adaptable import Adaptable
from keras_bert_suite.layers.attention.attention_kernels import (
    attention_probabilities,
    fused_attention,
    plain_attention,
)
from keras_bert_suite.layers.attention.bucketed_layout import BucketedLayout
from keras_bert_suite.layers.configured_layer import ShapeKeepingLayer
from keras_bert_suite.layers.dense import Dense, make_dense
from keras_bert_suite.layers.dropout import Dropout
from keras_bert_suite.layers.eager_pass import once, pack, read_weight
from keras_bert_suite.layers.gates import apply_gate
from keras_bert_suite.layers.inner_call import call_inner, needs_whole_call
from keras_bert_suite.layers.torch_products import linear

#: The kind of adapter that this attention takes.
PREFIX = "prefix"


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class SelfAttention(Adaptable, ShapeKeepingLayer):
    """Multi-head self-attention with a fused kernel wherever the backend has one.

    The kernel is chosen at each call from the dropout *in force*, not from the configured
    dropout. Outside training no dropout is in force, so evaluation, prediction and serving always
    take the fused kernel. `attention_kernels.fused_attention` lists the cases. The plain formula
    remains for TensorFlow, which has no kernel, and for training with attention dropout under JAX
    and on a CPU.

    With a `source`, keys and values come from other tokens than the queries. So a decoder attends
    to an encoder, a second stream to the first one, a row to a memory before it, and the few tokens
    that a head reads to all tokens of their row.

    A subclass with positions overrides `place_queries` and `place_keys`.

    Args:
        num_heads: int, must divide the width H of the input.
        dropout: float, dropout rate of the attention probabilities.
        initializer_range: float, standard deviation of the truncated normal.
        head_dim: int D, the width of a head, for a layer that has lost heads. None: H / num_heads.

    Source: Vaswani et al., 2017 (https://arxiv.org/abs/1706.03762), section 3.2.
    """

    #: Whether `call` takes a `BucketedLayout` instead of a mask.
    takes_buckets: ClassVar[bool] = True
    #: Whether keys and values may come from other tokens than the queries.
    takes_source: ClassVar[bool] = True
    #: Whether the width of a head must be even, because pairs of its dimensions are turned.
    has_even_heads: ClassVar[bool] = False
    #: Whether the heads may be narrower together than the hidden states.
    takes_head_dim: ClassVar[bool] = True
    #: Whether the projections have biases.
    use_bias: bool = True

    def __init__(
        self,
        num_heads: int,
        dropout: float = 0.1,
        initializer_range: float = 0.02,
        head_dim: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if head_dim is not None and not self.takes_head_dim:
            raise ValueError(
                f"The heads of {with_article(self)} have the width H / num_heads, got "
                f"head_dim={head_dim}. Leave it out."
            )
        self.num_heads = num_heads
        self.dropout = dropout
        self.initializer_range = initializer_range
        self.head_dim = head_dim
        self.probability_dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, hidden_shape: Shape) -> None:
        hidden_dim = hidden_shape[-1]
        self.check_heads(hidden_dim)
        width = hidden_dim if self.head_dim is None else self.num_heads * self.head_dim
        self.query = self._build_projection("query", hidden_shape, width)
        self.key = self._build_projection("key", hidden_shape, width)
        self.value = self._build_projection("value", hidden_shape, width)
        joined_shape = (*hidden_shape[:-1], width)
        self.output_projection = self._build_projection(
            "output_projection", joined_shape, hidden_dim
        )

    def check_heads(self, hidden_dim: int) -> None:
        """Raises ValueError if the heads do not divide the hidden size, or into odd widths."""
        if self.head_dim is not None:
            hidden_dim = self.num_heads * self.head_dim
        if hidden_dim % (self.num_heads * (1 + self.has_even_heads)):
            widths = " into heads of even width" if self.has_even_heads else ""
            raise ValueError(
                f"num_heads must divide the hidden size{widths}, got num_heads={self.num_heads} "
                f"and hidden size {hidden_dim}."
            )

    def _build_projection(self, name: str, input_shape: Shape, units: int | None = None) -> Dense:
        return make_dense(
            self,
            input_shape[-1] if units is None else units,
            name,
            input_shape,
            self.initializer_range,
            use_bias=self.use_bias,
        )

    def call(
        self,
        hidden: Tensor,
        attention_mask: Tensor | BucketedLayout | None = None,
        training: bool | None = None,
        positions: Tensor | None = None,
        source: Tensor | None = None,
        source_positions: Tensor | None = None,
        score_bias: Tensor | None = None,
    ) -> Tensor:
        """Lets each position attend to the positions that its mask allows.

        Args:
            hidden: float (B, L, H), from which the queries come.
            attention_mask: bool or int, true or 1 where a key may be attended to:
                (B, S) with the same keys for every query (a padding mask),
                (B, L, S) with keys for each query, or (B, heads, L, S), where any
                of the first three sizes may be 1. S is L without a `source`. With None every query
                attends to every key. With a `BucketedLayout`, `hidden` is (1, N, H), and a query
                attends to its row of the batch.
            training: bool, whether dropout is active.
            positions: int32 (1, L) or (B, L), which `place_queries` reads; None for 0 to L - 1. A
                `BucketedLayout` brings its positions.
            source: float (B, S, H), from which keys and values come; None for `hidden`. With a
                `BucketedLayout` it has the places of `hidden`.
            source_positions: int32 (1, S) or (B, S), the positions of the source; None for 0 to
                S - 1.
            score_bias: float, broadcastable to (B, heads, L, S), added to the scores
                Q K^T / sqrt(D); or None.

        Returns:
            float (B, L, H). A query that may attend to no key gets a finite value.

        Raises:
            ValueError: if the mask has another rank, or if buckets come with a bias.
        """
        if isinstance(attention_mask, BucketedLayout):
            if score_bias is not None:
                raise ValueError("Buckets of packed rows take no `score_bias`.")
            return self._call_on_buckets(hidden, source, attention_mask, training)
        query, key, value = self.project(hidden, source)
        query = self.place_queries(query, positions)
        key, value = self.place_keys(key, value, positions if source is None else source_positions)
        context = self.attend(query, key, value, attention_mask, training, score_bias)
        return self.merge(context)

    def _call_on_buckets(
        self, hidden: Tensor, source: Tensor | None, layout: BucketedLayout, training: bool | None
    ) -> Tensor:
        """`call` for the places (1, N, H) of buckets, each of which attends by itself.

        A source has the same places.
        """
        source = hidden if source is None else source
        projected = (
            call_inner(self.query, hidden),
            call_inner(self.key, source),
            call_inner(self.value, source),
        )
        contexts = []
        for *tensors, positions, visible in zip(
            *map(layout.split_buckets, projected),
            layout.bucket_positions,
            layout.visible,
            strict=True,
        ):
            query, key, value = map(self._split_heads, tensors)
            query = self.place_queries(query, positions)
            key, value = self.place_keys(key, value, positions)
            context = self.attend(query, key, value, visible, training)
            contexts.append(self._join_heads(context))
        return call_inner(self.output_projection, layout.join_buckets(contexts))

    def project(
        self, hidden: Tensor, source: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The queries of `hidden`, and the keys and values of `source`.

        Args:
            hidden: float (B, L, H).
            source: float (B, S, H); None for `hidden`.

        Returns:
            float (B, heads, L, D), and two of float (B, heads, S, D).
        """
        joined = pack(_join_projections, self) if source is None else None
        if joined is not None:
            queries, keys, values = linear(hidden, *joined).chunk(3, dim=-1)
            return self._split_heads(queries), self._split_heads(keys), self._split_heads(values)
        keys, values = self.project_source(hidden if source is None else source)
        return self.project_queries(hidden), keys, values

    def project_queries(self, hidden: Tensor) -> Tensor:
        """Queries: float (B, L, H) -> (B, heads, L, D)."""
        return self._split_heads(call_inner(self.query, hidden))

    def project_source(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values: float (B, S, H) -> two of float (B, heads, S, D)."""
        keys, values = (call_inner(layer, source) for layer in (self.key, self.value))
        return self._split_heads(keys), self._split_heads(values)

    def place_queries(self, query: Tensor, positions: Tensor | None) -> Tensor:
        """Gives queries their positions. This layer has none.

        Args:
            query: float (B, heads, L, D), from `project`.
            positions: int32 (1, L) or (B, L); None for 0 to L - 1.

        Returns:
            float (B, heads, L, D).
        """
        return query

    def place_keys(
        self, key: Tensor, value: Tensor, positions: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Gives keys and values their positions. This layer has none.

        Args:
            key, value: float (B, heads, S, D), from `project`.
            positions: int32 (1, S) or (B, S); None for 0 to S - 1.

        Returns:
            two of float (B, heads, S, D).
        """
        return key, value

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None = None,
        training: bool | None = None,
        score_bias: Tensor | None = None,
    ) -> Tensor:
        """The attention output of each head at each position.

        Args:
            query: float (B, heads, L, D), from `place_queries`.
            key, value: float (B, heads, S, D), from `place_keys`.
            attention_mask, training, score_bias: as for `call`.

        Returns:
            float (B, heads, L, D).
        """
        mask = None if attention_mask is None else once(expand_attention_mask, attention_mask)
        prefix = self.find_adapter(PREFIX)
        if prefix is not None:
            key, value, mask = prefix.prepend(key, value, mask)
        return self.choose_kernel(query, training)(query, key, value, mask, score_bias)

    def choose_kernel(self, query: Tensor, training: bool | None) -> Callable[..., Tensor]:
        """The fastest kernel, or the formula itself, with the dropout that is in force.

        Args:
            query: float (B, heads, L, D). Its device, dtype and shape are read.
            training: as for `call`.

        Returns:
            function of queries (B, heads, L, D), of keys and values (B, heads, S, D), and of a bool
            mask and a float bias, each broadcastable to (B, heads, L, S), or None. It returns float
            (B, heads, L, D).
        """
        dropout = self.dropout if training else 0.0
        kernel = fused_attention(query, dropout)
        if kernel is not None:
            return lambda q, k, v, mask, bias=None: kernel(q, k, v, mask, dropout, bias)
        drop = (
            (lambda p: call_inner(self.probability_dropout, p, training=True)) if dropout else None
        )
        return lambda q, k, v, mask, bias=None: plain_attention(q, k, v, mask, drop, bias)

    def merge(self, context: Tensor) -> Tensor:
        """Projects the outputs of the heads: float (B, heads, L, D) -> (B, L, H)."""
        context = apply_gate(self, context, axis=1)
        return call_inner(self.output_projection, self._join_heads(context))

    def _join_heads(self, context: Tensor) -> Tensor:
        """(B, heads, L, D) -> (B, L, H)."""
        if keras.config.backend() == "torch":
            return context.transpose(1, 2).flatten(2)
        hidden_dim = self.num_heads * context.shape[-1]
        context = ops.swapaxes(context, 1, 2)
        return ops.reshape(context, (-1, ops.shape(context)[1], hidden_dim))

    def compute_probabilities(self, hidden: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """The attention probabilities of each pair of positions, without dropout.

        Args:
            hidden, attention_mask: as for `call`. The positions are 0 to L - 1.

        Returns:
            float32 (B, heads, L, L). It sums to 1 over the last axis, or with a prefix to the rest
            of what the prefix gets.
        """
        query, key, value = self.project(hidden)
        query, (key, value) = self.place_queries(query, None), self.place_keys(key, value, None)
        mask, length = expand_attention_mask(attention_mask), ops.shape(key)[2]
        prefix = self.find_adapter(PREFIX)
        if prefix is not None:
            key, value, mask = prefix.prepend(key, value, mask)
        return attention_probabilities(query, key, mask)[..., -length:]

    def _split_heads(self, x: Tensor) -> Tensor:
        """(B, L, H) -> (B, heads, L, D)."""
        if keras.config.backend() == "torch":
            return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        head_dim = x.shape[-1] // self.num_heads
        x = ops.reshape(x, (-1, ops.shape(x)[1], self.num_heads, head_dim))
        return ops.swapaxes(x, 1, 2)


def _join_projections(attention: SelfAttention) -> tuple[Tensor, Tensor | None] | None:
    """The kernels (H, 3 heads D) and biases of queries, keys and values, for one product.

    None where a projection is more than its product, or rounds its weights.
    """
    layers = (attention.query, attention.key, attention.value)
    if any(
        needs_whole_call(layer)
        or layer.quantization_mode is not None
        or not layer.variable_dtype == layer.compute_dtype == attention.compute_dtype
        or layer.bind() is None
        for layer in layers
    ):
        return None
    import torch

    kernel = torch.cat([read_weight(layer.kernel) for layer in layers], dim=1)
    biases = [read_weight(layer.bias) for layer in layers]
    return kernel, None if biases[0] is None else torch.cat(biases)


def expand_attention_mask(mask: Tensor | None) -> Tensor | None:
    """Brings a (B, L), (B, L, L) or (B, heads, L, L) mask to rank 4, bool."""
    if mask is None:
        return None
    mask = ops.cast(mask, "bool")
    rank = len(mask.shape)
    if rank == 2:
        return mask[:, None, None, :]
    if rank == 3:
        return mask[:, None, :, :]
    if rank == 4:
        return mask
    raise ValueError(
        f"attention_mask must have rank 2 (B, L), 3 (B, L, L) or 4 (B, heads, L, L), "
        f"got shape {tuple(mask.shape)}."
    )
