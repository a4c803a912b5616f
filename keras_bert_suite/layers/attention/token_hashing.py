"""Buckets of similar tokens, by locality-sensitive hashing."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Self

import keras
import numpy as np
from keras import ops

from keras_bert_suite.annotations import Config, Tensor
from keras_bert_suite.argument_checks import check_integer


@keras.saving.register_keras_serializable(package="keras_bert_suite")
@dataclasses.dataclass(frozen=True)
class TokenHashing:
    """How an `LshAttention` finds the tokens that a token attends to.

    Attributes:
        chunk_length: int C, the tokens of a chunk.
        num_rounds: int R, how often the tokens are hashed, each time with other rotations.
        num_buckets: int, the number of buckets of a round, which is even; or several such numbers,
            whose product is the number of buckets. Each is hashed by itself, so that many buckets
            need few rotations. None for the number that `fit_length` chooses.
        seed: int, of the rotations.

    Raises:
        ValueError: if a number is no integer, or too small, or a number of buckets is odd.
    """

    chunk_length: int = 64
    num_rounds: int = 2
    num_buckets: int | Sequence[int] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_integer("chunk_length", self.chunk_length, at_least=1)
        check_integer("num_rounds", self.num_rounds, at_least=1)
        check_integer("seed", self.seed)
        if isinstance(self.num_buckets, (list, tuple)):
            # JSON has lists, and equal settings are equal.
            object.__setattr__(self, "num_buckets", tuple(self.num_buckets))
        for factor in self.factors:
            check_integer("num_buckets", factor, at_least=2)
            if factor % 2:
                raise ValueError(
                    "num_buckets must be even, because a rotation and its opposite are two buckets;"
                    f" got num_buckets={self.num_buckets!r}. Use {factor + 1} instead of {factor}."
                )

    @property
    def factors(self) -> tuple[int, ...]:
        """The numbers whose product is the number of buckets; () for None."""
        if self.num_buckets is None:
            return ()
        return self.num_buckets if isinstance(self.num_buckets, tuple) else (self.num_buckets,)

    def fit_length(self, length: int) -> Self:
        """The same settings with the number of buckets for rows of `length` tokens.

        It is the power of 2 that is not above twice the number of chunks. More than 2 C buckets
        are two factors.

        Raises:
            ValueError: if one chunk has room for the rows, or there are more buckets than tokens.

        Source: `_set_num_buckets` of transformers' Reformer, for up to C ** 3 tokens. The lengths
        of the paper are powers of 2.
        """
        if self.chunk_length >= length:
            raise ValueError(
                f"A chunk of chunk_length={self.chunk_length} tokens has room for a whole row of "
                f"{length} tokens, so hashing saves nothing. Use longer rows, a smaller "
                "chunk_length, or no hashing."
            )
        if math.prod(self.factors) > length:
            raise ValueError(
                f"num_buckets={self.num_buckets!r} are {math.prod(self.factors)} buckets, more than"
                f" the {length} tokens of a row. Use longer rows, fewer buckets, or None for as "
                "many as fit."
            )
        if self.num_buckets is not None:
            return self
        power = (2 * (length // self.chunk_length)).bit_length() - 1
        one, two = 2**power, (2 ** (power // 2), 2 ** (power - power // 2))
        return dataclasses.replace(self, num_buckets=one if one <= 2 * self.chunk_length else two)

    def draw_rotations(self, num_heads: int, head_dim: int) -> np.ndarray:
        """Draws the rotations: float32 (heads, D, R, half the sum of the factors)."""
        shape = (num_heads, head_dim, self.num_rounds, sum(self.factors) // 2)
        return np.random.default_rng(self.seed).standard_normal(shape).astype("float32")

    def find_buckets(self, vectors: Tensor, rotations: Tensor) -> Tensor:
        """The bucket of each token in each round: int32 (B, heads, R, L). It has no gradient.

        Args:
            vectors: float (B, heads, L, D).
            rotations: float (heads, D, R, half the sum of the factors).

        Source: Andoni et al., 2015 (https://arxiv.org/abs/1509.02897).
        """
        vectors = ops.stop_gradient(ops.cast(vectors, "float32"))
        rotated = ops.einsum("bhld,hdrk->bhrlk", vectors, ops.cast(rotations, "float32"))
        buckets, start, product = 0, 0, 1
        for factor in self.factors:
            part = rotated[..., start : start + factor // 2]
            nearest = ops.argmax(ops.concatenate([part, -part], axis=-1), axis=-1)
            buckets = buckets + product * ops.cast(nearest, "int32")
            start, product = start + factor // 2, product * factor
        return buckets

    def get_config(self) -> Config:
        """dict of the arguments, as JSON has them."""
        many = isinstance(self.num_buckets, tuple)
        buckets = list(self.factors) if many else self.num_buckets
        return {**dataclasses.asdict(self), "num_buckets": buckets}

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """The settings of a `get_config`."""
        return cls(**config)
