"""The attention of Reformer: among tokens that locality-sensitive hashing finds similar."""

import math
from typing import Any, NamedTuple

import keras
from keras import ops

from keras_bert_suite.annotations import Shape, Tensor
from keras_bert_suite.layers.attention.self_attention import SelfAttention
from keras_bert_suite.layers.attention.token_hashing import TokenHashing
from keras_bert_suite.layers.inner_call import call_inner
from keras_bert_suite.layers.transformer_block import TransformerBlock

#: The scores of a hidden token, and of a token with itself. So a token attends to itself only if
#: it sees no other token.
_HIDDEN, _ITSELF = -1e9, -1e5


class _SortedTokens(NamedTuple):
    """The tokens of all rounds in chunks, sorted by bucket.

    Attributes:
        places: int32 (B, heads, N, C), l of each token, in N chunks.
        inverse: int32 (B, heads, R, L), where in its round each token stands.
    """

    places: Tensor
    inverse: Tensor


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class LshAttention(SelfAttention):
    """Self-attention of each token to tokens with similar vectors, in memory linear in the length.

    One projection makes queries and keys; a key is its query, brought to the length 1. The tokens
    are sorted by the bucket that `TokenHashing` finds for this vector, and cut into chunks. A token
    attends to its chunk and to the chunk before. There are several rounds with other buckets, which
    are combined by how much score each has found. Tokens in other chunks are not seen, so this is
    an approximation. With one chunk it is exact.

    A row whose length is no multiple of the chunk is padded here, and cut again.

    The rotations of the hash are a weight that is not trained, `rotations`, float32 (heads, D, R,
    half the sum of the factors), so they are saved with the layer, and `rotations.assign` sets
    others. The original draws others in each step. Here a layer computes the same each time, also
    if it is computed again for its gradient, and a training resumes exactly. No gradient passes the
    hash.

    Args:
        num_heads: int.
        hashing: `TokenHashing` with a number of buckets.
        is_causal: bool, whether a token sees no token after it. The later tokens still have a part
            in which tokens share its chunk, here and in the original.
        **kwargs: other arguments of `SelfAttention`.

    Raises:
        ValueError: if `hashing` has no number of buckets.

    Source: Kitaev et al., 2020 (https://arxiv.org/abs/2001.04451), section 2, and
    `LSHSelfAttention` of transformers.
    """

    takes_buckets = False
    takes_source = False
    takes_head_dim = False
    use_bias = False

    def __init__(
        self, num_heads: int, hashing: TokenHashing, is_causal: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(num_heads, **kwargs)
        if hashing.num_buckets is None:
            raise ValueError(
                "An LshAttention needs a number of buckets, got num_buckets=None. Pass "
                "hashing.fit_length(n) for rows of up to n tokens."
            )
        self.hashing = hashing
        self.is_causal = is_causal

    def build(self, hidden_shape: Shape) -> None:
        hidden_dim = hidden_shape[-1]
        self.check_heads(hidden_dim)
        self.query_key = self._build_projection("query_key", hidden_shape)
        self.value = self._build_projection("value", hidden_shape)
        self.output_projection = self._build_projection("output_projection", hidden_shape)
        drawn = self.hashing.draw_rotations(self.num_heads, hidden_dim // self.num_heads)
        self.rotations = self.add_weight(
            name="rotations",
            shape=drawn.shape,
            initializer=lambda shape, dtype: ops.convert_to_tensor(drawn, dtype=dtype),
            trainable=False,
            autocast=False,
        )

    def call(  # type: ignore[override]  # There is no source, and the scores have no place.
        self,
        hidden: Tensor,
        attention_mask: Tensor | None = None,
        training: bool | None = None,
    ) -> Tensor:
        """Lets each token attend to the tokens that its chunks have.

        Args:
            hidden: float (B, L, H).
            attention_mask: bool or int (B, L), true or 1 on tokens, the padding mask. None: no
                padding.
            training: bool, whether dropout is active.

        Returns:
            float (B, L, H).

        Raises:
            ValueError: if the mask hides tokens from some tokens only, as that of packed rows.
        """
        query, value = (
            self._split_heads(call_inner(layer, hidden)) for layer in (self.query_key, self.value)
        )
        return self.merge(self._attend_to_similar(query, value, attention_mask, training))

    def compute_probabilities(self, hidden: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """The probabilities of each pair of tokens, float32 (B, heads, L, L), over all rounds.

        They sum to 1 over the last axis. They are for inspection: no call computes them.
        """
        query = self._split_heads(call_inner(self.query_key, hidden))
        # The mean of one-hot vectors by probabilities is the probabilities.
        one_hot = ops.eye(ops.shape(hidden)[1], dtype="float32")
        shape = (*ops.shape(query)[:2], *ops.shape(one_hot))
        return self._attend_to_similar(query, ops.broadcast_to(one_hot, shape), attention_mask)

    def _attend_to_similar(
        self,
        query: Tensor,
        value: Tensor,
        padding_mask: Tensor | None,
        training: bool | None = None,
    ) -> Tensor:
        """Queries (B, heads, L, D) and values (B, heads, L, E) -> the contexts (B, heads, L, E)."""
        mask = _check_mask(padding_mask)
        length = ops.shape(query)[2]
        more = -length % self.hashing.chunk_length
        if not isinstance(more, int) or more:
            mask = ops.ones(ops.shape(query)[:1] + (length,), "bool") if mask is None else mask
            mask = ops.pad(mask, [[0, 0], [0, more]])
            query, value = (ops.pad(x, [[0, 0], [0, 0], [0, more], [0, 0]]) for x in (query, value))
        tokens = self._sort_tokens(query, mask)
        # (B, heads, N, C, ...), and with the chunk before (B, heads, N, 2 C, ...).
        chunks = _take_tokens(query, tokens.places)
        keys = _add_chunk_before(_normalize(chunks))
        values = _add_chunk_before(_take_tokens(value, tokens.places))
        scores = ops.cast(ops.matmul(chunks, ops.swapaxes(keys, -1, -2)), "float32")
        scores = self._hide_tokens(scores, tokens.places, mask)
        totals = ops.logsumexp(scores, axis=-1, keepdims=True)
        probabilities = ops.cast(ops.exp(scores - totals), value.dtype)
        if training and self.dropout:
            probabilities = call_inner(self.probability_dropout, probabilities, training=True)
        contexts = _put_back(ops.matmul(probabilities, values), tokens.inverse)
        # A round counts by the sum of the exponentials of its scores.
        totals = _put_back(totals, tokens.inverse)
        shares = ops.exp(totals - ops.logsumexp(totals, axis=2, keepdims=True))
        context = ops.sum(ops.cast(contexts, "float32") * shares, axis=2)
        return ops.cast(context[:, :, :length], value.dtype)

    def _sort_tokens(self, vectors: Tensor, mask: Tensor | None) -> _SortedTokens:
        """Sorts the tokens of each round by their buckets, and those of a bucket by their order."""
        buckets = self.hashing.find_buckets(vectors, self.rotations)
        if mask is not None:
            # Padding has a bucket for itself, behind the others.
            last = math.prod(self.hashing.factors)
            buckets = ops.where(mask[:, None, None, :], buckets, last)
        order = ops.argsort(buckets, axis=-1)  # Stable under each backend.
        num_rows, heads = ops.shape(order)[0], order.shape[1]
        places = ops.reshape(order, (num_rows, heads, -1, self.hashing.chunk_length))
        return _SortedTokens(places, ops.argsort(order, axis=-1))

    def _hide_tokens(self, scores: Tensor, places: Tensor, mask: Tensor | None) -> Tensor:
        """The scores (B, heads, N, C, 2 C) without padding, later tokens and the token itself."""
        key_places = _add_chunk_before(places)
        if mask is not None:
            of_heads = ops.broadcast_to(mask[:, None], (*ops.shape(places)[:2], ops.shape(mask)[1]))
            visible = _take_tokens(of_heads, key_places)
            scores = ops.where(visible[..., None, :], scores, _HIDDEN)
        places, key_places = places[..., None], key_places[..., None, :]
        if self.is_causal:
            scores = ops.where(key_places <= places, scores, _HIDDEN)
        return ops.where(key_places == places, _ITSELF, scores)


def _check_mask(mask: Tensor | None) -> Tensor | None:
    """A padding mask as bool (B, L)."""
    if mask is None:
        return None
    if not hasattr(mask, "shape") or len(mask.shape) != 2:
        raise ValueError(
            "LshAttention takes a padding mask (B, L), got a mask of pairs of tokens or buckets of "
            "packed rows. Packed rows and other masks cannot be hashed: drop sequence_packing, or "
            "use a backbone without hashing."
        )
    return ops.cast(mask, "bool")


def _normalize(x: Tensor) -> Tensor:
    """Vectors (..., D) of about the length 1, as Reformer's keys."""
    wide = ops.cast(x, "float32")
    mean = ops.mean(ops.square(wide), axis=-1, keepdims=True)
    return ops.cast(wide * ops.rsqrt(mean + 1e-6) * x.shape[-1] ** -0.5, x.dtype)


def _take_tokens(x: Tensor, places: Tensor) -> Tensor:
    """(B, heads, L, ...), int32 (B, heads, N, C) in [0, L) -> (B, heads, N, C, ...)."""
    num_rows, heads, length = ops.shape(x)[:3]
    rows = ops.reshape(ops.arange(num_rows * heads, dtype="int32"), (num_rows, heads, 1, 1))
    return ops.take(ops.reshape(x, (-1, *x.shape[3:])), rows * length + places, axis=0)


def _add_chunk_before(x: Tensor) -> Tensor:
    """(B, heads, N, C, ...) -> (B, heads, N, 2 C, ...). The last chunk is before the first."""
    return ops.concatenate([ops.roll(x, 1, axis=2), x], axis=3)


def _put_back(x: Tensor, inverse: Tensor) -> Tensor:
    """Sorted (B, heads, N, C, E), int32 (B, heads, R, L) -> (B, heads, R, L, E) in order."""
    num_rows, heads, rounds, length = ops.shape(inverse)
    begins = ops.arange(rounds, dtype="int32")[:, None] * length
    x = ops.reshape(x, (num_rows, heads, rounds * length, x.shape[-1]))
    return _take_tokens(x, inverse + begins)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class LshBlock(TransformerBlock):
    """`TransformerBlock` with `LshAttention`.

    Args:
        num_heads, intermediate_dim: as for `TransformerBlock`.
        hashing, is_causal: as for `LshAttention`.
        **kwargs: other arguments of `TransformerBlock`.
    """

    def __init__(
        self,
        num_heads: int,
        intermediate_dim: int,
        hashing: TokenHashing,
        is_causal: bool = False,
        **kwargs: Any,
    ) -> None:
        self.hashing = hashing
        self.is_causal = is_causal
        super().__init__(num_heads, intermediate_dim, **kwargs)

    def make_attention(self, **arguments: Any) -> LshAttention:
        """Makes the attention layer from the arguments of `SelfAttention`."""
        return LshAttention(hashing=self.hashing, is_causal=self.is_causal, **arguments)
