"""Rules that a target obeys, whatever its decoder scores: its length, its edges, no repetition."""

from typing import Any, NamedTuple

from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.argument_checks import check_finite, check_integer, with_article
from keras_bert_suite.heads.targets.beam_search import BeamSearch

#: The score of a token that a rule forbids.
NEVER = float("-inf")

#: The arguments of a `Seq2Seq` that are rules.
RULES = ("min_target_length", "no_repeat_ngram_size", "first_token", "last_token")


class WritingRules(NamedTuple):
    """The rules of one call of `Seq2Seq.predict`. A compiled function has them as constants.

    Attributes:
        min_target_length: int, the fewest tokens of a target, the last [SEP] included.
        no_repeat_ngram_size: int n, so that no n tokens follow each other twice; 0 for no such
            rule.
        first_token_id: int, the token that begins each target; None for any token.
        last_token_id: int, the token at the last place of a target that is as long as it may be;
            None for any token.
        length_penalty: float, replaces that of a `BeamSearch`; None for its own.

    Source: transformers' `NoRepeatNGramLogitsProcessor`, `MinLengthLogitsProcessor`,
    `ForcedBOSTokenLogitsProcessor` and `ForcedEOSTokenLogitsProcessor`, in this order.
    """

    min_target_length: int = 0
    no_repeat_ngram_size: int = 0
    first_token_id: int | None = None
    last_token_id: int | None = None
    length_penalty: float | None = None

    def apply(self, scores: Tensor, targets: Tensor, index: Tensor, stop_token_id: int) -> Tensor:
        """Scores of the next token by which no rule is broken.

        Args:
            scores: float32 (B, V), of the token at `index`.
            targets: int32 (B, 1 + T), with the first token that the decoder reads.
            index: int32 scalar, from 1 on.
            stop_token_id: int, the token that ends a target.

        Returns:
            float32 (B, V).
        """
        if self.no_repeat_ngram_size:
            scores = forbid_repetition(scores, targets, index, self.no_repeat_ngram_size)
        if self.min_target_length > 1:
            scores = forbid_token(scores, stop_token_id, index < self.min_target_length)
        if self.first_token_id is not None:
            scores = force_token(scores, self.first_token_id, index == 1)
        if self.last_token_id is not None:
            scores = force_token(scores, self.last_token_id, index == targets.shape[1] - 1)
        return scores


NO_RULES = WritingRules()


def forbid_token(scores: Tensor, token_id: int, holds: Tensor) -> Tensor:
    """float32 (B, V), scores by which a token cannot follow where `holds`, a bool scalar."""
    is_forbidden = (ops.arange(scores.shape[-1]) == token_id) & holds
    return ops.where(is_forbidden[None, :], NEVER, scores)


def force_token(scores: Tensor, token_id: int, holds: Tensor) -> Tensor:
    """float32 (B, V), scores by which only one token can follow where `holds`, a bool scalar.

    A beam pays nothing for it.
    """
    return ops.where(holds, score_only(token_id, scores.shape[-1], NEVER)[None, :], scores)


def score_only(token_id: int, vocabulary_size: int, others: float) -> Tensor:
    """float32 (V,): 0 for one token, and `others` for all others."""
    return ops.where(ops.arange(vocabulary_size) == token_id, 0.0, others)


def forbid_repetition(scores: Tensor, targets: Tensor, index: Tensor, size: int) -> Tensor:
    """float32 (B, V), scores by which the last tokens do not become `size` tokens of before.

    >>> forbid_repetition([[0.1, 0.2, 0.3]], [[0, 1, 2, 0, 1, 0]], 5, size=3)
    [[0.1, 0.2, -inf]]

    Of `targets`, int32 (B, 1 + T), the first `index` tokens are read.
    """
    length = targets.shape[1]
    num_places = length - size + 1
    if num_places < 1:
        return scores
    follows = ops.arange(num_places) + size - 1 < index
    is_same = ops.broadcast_to(follows[None, :], ops.shape(targets[:, :num_places]))
    for offset in range(size - 1):
        last = ops.take(targets, ops.maximum(index - size + 1 + offset, 0), axis=1)
        is_same = is_same & (targets[:, offset : offset + num_places] == last[:, None])
    # Tokens that may follow are written beside the vocabulary.
    vocabulary_size = scores.shape[-1]
    forbidden = ops.where(is_same, targets[:, size - 1 :], vocabulary_size)
    rows = ops.zeros_like(forbidden) + ops.arange(ops.shape(targets)[0], dtype="int32")[:, None]
    places = ops.stack([ops.reshape(x, (-1,)) for x in (rows, forbidden)], axis=-1)
    padded = ops.concatenate([scores, scores[:, :1]], axis=1)
    values = ops.zeros_like(places[:, 0], dtype=scores.dtype) + NEVER
    return ops.scatter_update(padded, places, values)[:, :vocabulary_size]


def find_rules(
    task: Any, length_penalty: float | None = None, **asked: Any
) -> tuple[int, WritingRules]:
    """The maximum length and the rules of a call of `predict`.

    Args:
        task: `Seq2Seq`, which has the values that nobody asks for.
        length_penalty, **asked: arguments of `predict`, of which any may be None.

    Raises:
        ValueError: as `Seq2Seq.predict`.
    """
    if task.preprocessor is None and {length_penalty, *asked.values()} == {None}:
        return task.max_target_length, NO_RULES  # Packed arrays are scored, and nothing is written.
    task.data.check_can_pack()
    own = {name: getattr(task, name) for name in ("max_target_length", *RULES)}
    said = {**own, **{name: value for name, value in asked.items() if value is not None}}
    length, least = said["max_target_length"], said["min_target_length"]
    check_integer("max_target_length", length, at_least=1)
    for name in ("min_target_length", "no_repeat_ngram_size"):
        check_integer(name, said[name])
    if least > length:
        raise ValueError(
            f"min_target_length={least} is above max_target_length={length}. Lower the first, or "
            "raise the second."
        )
    if length_penalty is not None:
        check_finite("length_penalty", length_penalty)
        length_penalty = float(length_penalty)
        if not isinstance(task.sampler, BeamSearch):
            raise ValueError(
                f"length_penalty={length_penalty} is for a BeamSearch, got "
                f"{with_article(task.sampler)}. Compile with sampler=BeamSearch(...)."
            )
    tokenizer = task.preprocessor.tokenizer
    first, last = (
        find_token(tokenizer, name, said[name]) for name in ("first_token", "last_token")
    )
    if first is None:
        first = task.target_rows.forced_token_id
    return length, WritingRules(least, said["no_repeat_ngram_size"], first, last, length_penalty)


def find_token(tokenizer: Any, argument: str, token: str | None) -> int | None:
    """The id of the token that an argument names; None for None.

    Raises:
        ValueError: if the vocabulary lacks it.
    """
    if token is None:
        return None
    if token not in tokenizer.get_vocabulary():
        raise ValueError(
            f"{argument}={token!r} is not in the vocabulary. Pass one of its tokens, such as "
            f"{tokenizer.start_token!r} or {tokenizer.end_token!r}."
        )
    return tokenizer.token_to_id(token)
