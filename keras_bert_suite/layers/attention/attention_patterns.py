"""Which tokens a token may attend to: by their order, their segments, or ranks that are given.

A pattern ranks the tokens of a row. A token attends to the tokens of its rank and of lower ranks.
"""

from collections.abc import Callable

from keras import ops

from keras_bert_suite.annotations import Tensor


def rank_by_place(segment_ids: Tensor) -> Tensor:
    """Left to right: int (B, L) -> the ranks 0, 1, 2, ... of the tokens, int32 (1, L)."""
    return ops.arange(ops.shape(segment_ids)[1], dtype="int32")[None, :]


def rank_by_place_from_the_end(segment_ids: Tensor) -> Tensor:
    """Right to left: int (B, L) -> the ranks 0, -1, -2, ... of the tokens, int32 (1, L)."""
    return -rank_by_place(segment_ids)


def rank_targets(segment_ids: Tensor) -> Tensor:
    """A source in segment 0 and a target in segment 1: int (B, L) -> ranks, int32 (B, L).

    All tokens of the source have one rank, and each token of the target has the next rank. So the
    source attends to itself, and the target to the source and to its beginning.

    >>> rank_targets([[0, 0, 0, 1, 1]])
    [[0, 0, 0, 1, 2]]
    """
    return ops.cumsum(ops.cast(segment_ids, "int32"), axis=1)


def rank_mixture(segment_ids: Tensor) -> Tensor:
    """Rows of all kinds, which their segments tell apart: int (B, L) -> ranks, int32 (B, L).

    Segments 0 and 1 are a pair whose tokens attend to all tokens, segment 2 is a text from left to
    right, segment 3 a text from right to left, and segments 4 and 5 are a source and its target.

    >>> rank_mixture([[0, 0, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3], [4, 4, 5, 5]])
    [[0, 0, 0, 0], [1, 2, 3, 4], [-1, -2, -3, -4], [0, 0, 1, 2]]
    """
    steps = ops.convert_to_tensor([0, 0, 1, -1, 0, 1], dtype="int32")
    return ops.cumsum(ops.take(steps, segment_ids, axis=0), axis=1)


def rank_as_given(ranks: Tensor) -> Tensor:
    """Ranks that come with a batch, such as a permutation of its tokens: int (B, L)."""
    return ranks


#: The ranks of each pattern, as a function of the segments, or of `ranks` that come with the batch;
#: None where every token attends to every token. Source: Dong et al., 2019, UniLM
#: (https://arxiv.org/abs/1905.03197), figure 1. "unilm" has the segments of microsoft/unilm,
#: unilm-v1.
ATTENTION_PATTERNS: dict[str, Callable[[Tensor], Tensor] | None] = {
    "bidirectional": None,
    "left_to_right": rank_by_place,
    "right_to_left": rank_by_place_from_the_end,
    "seq2seq": rank_targets,
    "unilm": rank_mixture,
    "ranked": rank_as_given,
}

#: How many segments a pattern tells apart. The other patterns read no segments.
SEGMENTS_READ = {"seq2seq": 2, "unilm": 6}

#: The name of the array (B, L) that a pattern reads. The other patterns read none.
ARRAYS_READ = {**dict.fromkeys(SEGMENTS_READ, "segment_ids"), "ranked": "ranks"}


def check_segments(pattern: str, num_segments: int) -> None:
    """Raises ValueError if a pattern tells more segments apart than a backbone has, 0 for none."""
    read = SEGMENTS_READ.get(pattern, 0)
    if read and not num_segments:
        raise ValueError(
            f"attention_pattern={pattern!r} reads the segments of tokens, and this kind of "
            "backbone has no segment_ids. Use a BertBackbone."
        )
    if num_segments < read:
        raise ValueError(
            f"attention_pattern={pattern!r} tells {read} segments apart, got "
            f"num_segments={num_segments}. Pass num_segments={read}, or make a copy of a backbone "
            "with `keras_bert_suite.models.change_pattern`."
        )


def mask_by_ranks(
    ranks: Tensor, source_ranks: Tensor | None = None, strict: bool = False
) -> Tensor:
    """Whether a query (second axis) may attend to a key (third axis): bool (B, L, S).

    Queries have ranks int (B, L); keys that are other tokens have ranks int (B, S). If `strict`,
    a query sees the keys of lower rank alone. Then a token does not see itself, as in the
    query stream of XLNet.
    """
    keys = (ranks if source_ranks is None else source_ranks)[:, None, :]
    return keys < ranks[:, :, None] if strict else keys <= ranks[:, :, None]
