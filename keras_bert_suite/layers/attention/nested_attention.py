"""Attention within the sequences of packed rows, by PyTorch's nested tensors.

A nested tensor with the layout "jagged" is the tokens of all sequences, one after the other, and
the places where sequences begin. Packed rows are stored like that, so nothing is copied. On a GPU,
`scaled_dot_product_attention` takes FlashAttention's kernel for sequences of any length. The kernel
needs no mask, and drops probabilities itself. `torch.nn.attention.varlen` and `flex_attention` do
not drop, and the latter must be compiled, with a block mask for each batch.
"""

from keras_bert_suite.annotations import Tensor


def locate_sequences(rows: Tensor) -> Tensor:
    """Finds where the sequences of packed rows begin. The GPU is waited for.

    The places without a token count as one more sequence, so that each place is in a sequence.

    Args:
        rows: int (R, W), the row of the batch at each place, and -1 where there is no token.

    Returns:
        int64 (S + 1,), the first places of all S sequences, counted through all packed rows, and
        R W at the end.

    Example: rows [[4, 4, 1], [2, 2, -1]] give [0, 2, 3, 5, 6].
    """
    import torch

    begins = torch.ones_like(rows, dtype=torch.bool)
    begins[:, 1:] = rows[:, 1:] != rows[:, :-1]
    places = begins.flatten().nonzero()[:, 0]
    return torch.nn.functional.pad(places, (0, 1), value=rows.numel())


def attend_within_sequences(
    query: Tensor, key: Tensor, value: Tensor, offsets: Tensor, dropout: float = 0.0
) -> Tensor:
    """Attention of every query to the keys of its own sequence.

    Args:
        query, key, value: float (R, heads, W, D), in packed rows.
        offsets: int64 (S + 1,), see `locate_sequences`.
        dropout: float, dropout rate of the probabilities.

    Returns:
        float (R, heads, W, D).
    """
    import torch

    num_rows, heads, width, head_dim = query.shape

    def to_nested(x: Tensor) -> Tensor:
        """(R, heads, W, D) -> (S, heads, length of the sequence, D)."""
        tokens = x.transpose(1, 2).reshape(-1, heads, head_dim).contiguous()
        # With the bounds PyTorch does not compute lengths, for which it would wait for the GPU.
        nested = torch.nested.nested_tensor_from_jagged(
            tokens, offsets, min_seqlen=1, max_seqlen=width
        )
        return nested.transpose(1, 2)

    context = torch.nn.functional.scaled_dot_product_attention(
        to_nested(query), to_nested(key), to_nested(value), dropout_p=dropout
    )
    tokens = context.transpose(1, 2).values()
    return tokens.reshape(num_rows, width, heads, head_dim).transpose(1, 2)
