"""Beam search with a penalty for lengths."""

import copy
from typing import Any, Literal, Self

import keras
import keras_hub
from keras import ops

from keras_bert_suite.annotations import Config, Tensor
from keras_bert_suite.argument_checks import check_finite, check_integer

#: Added to the score of a beam that must not be chosen.
_OUT = -1e9


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class BeamSearch(keras_hub.samplers.Sampler):
    """Beam search that sets ended targets aside, token for token transformers' `generate`.

    In KerasHub's `BeamSampler` an ended target stays one of the beams. Here all beams go on, and
    the `num_beams` best ended targets are kept beside them, each with the sum of its logarithmic
    probabilities divided by length ** `length_penalty`. The length counts the end token, and not
    the token that the decoder reads first.

    ```python
    writer.compile(sampler=BeamSearch(num_beams=4, length_penalty=2.0, early_stopping=True))
    ```

    Args:
        num_beams: int, how many beams each source has.
        length_penalty: float. Above 0 it favours long targets, below 0 short ones.
        early_stopping: when a source is done. True: as soon as `num_beams` targets have ended.
            False: when the best beam, at its present length, is worse than all of them. "never": as
            False, at the maximum length if `length_penalty` is above 0.

    Raises:
        ValueError: if `num_beams` is no positive integer, `length_penalty` is no finite number, or
            `early_stopping` is another value.

    Source: `_beam_search` of transformers 5, `generation/utils.py`.
    """

    def __init__(
        self,
        num_beams: int = 4,
        length_penalty: float = 1.0,
        early_stopping: bool | Literal["never"] = False,
    ) -> None:
        super().__init__()
        check_integer("num_beams", num_beams, at_least=1)
        if not isinstance(early_stopping, bool) and early_stopping != "never":
            raise ValueError(
                f"early_stopping must be True, False or 'never', got {early_stopping!r}."
            )
        check_finite("length_penalty", length_penalty)
        self.num_beams = num_beams
        self.length_penalty = float(length_penalty)
        self.early_stopping = early_stopping

    def with_length_penalty(self, length_penalty: float) -> Self:
        """The same search with another penalty."""
        search = copy.copy(self)
        search.length_penalty = float(length_penalty)
        return search

    def __call__(
        self,
        next: Any,
        prompt: Tensor,
        cache: Any = None,
        index: int = 0,
        mask: Tensor | None = None,
        stop_token_ids: Any = None,
        hidden_states: Any = None,
        model: Any = None,
    ) -> Tensor:
        """Writes targets.

        Args:
            next: function from (targets int32 (B N, 1 + T), cache, index) to a tuple (logarithmic
                probabilities float32 (B N, V), anything, cache).
            prompt: int32 (B, 1 + T), of which the first `index` columns are read.
            cache: structure of tensors (B, ...).
            index: int, the first column that is written.
            mask, hidden_states: not used.
            stop_token_ids: tuple of the int that ends a target.
            model: the model whose variables `next` reads.

        Returns:
            int32 (B, 1 + T), the best target of each source, as `prompt` behind its end.
        """
        num_beams, length = self.num_beams, prompt.shape[1]
        (stop_token_id,) = stop_token_ids
        begin = index

        def repeat(x: Tensor) -> Tensor:
            return ops.repeat(x, num_beams, axis=0)

        def cond(state: Any, cache: Any, index: Tensor, goes_on: Tensor) -> Tensor:
            return goes_on

        def body(state: Any, cache: Any, index: Tensor, goes_on: Tensor) -> Any:
            scores, _, cache = next(ops.reshape(state["beams"], (-1, length)), cache, index)
            scores, parents, tokens, found = self._continue(state, scores, index)
            ends = (tokens == stop_token_id) | (index == length - 1)

            running, kept = take_best(scores + ops.cast(ends, "float32") * _OUT, num_beams)
            new = self._update_ended(state, found, scores, ends, index + 1 - begin)
            new.update(beams=choose(found, kept), scores=running)
            of_source = ops.arange(ops.shape(parents)[0], dtype="int32")[:, None] * num_beams
            rows = ops.reshape(of_source + choose(parents, kept), (-1,))
            cache = keras.tree.map_structure(lambda x: ops.take(x, rows, axis=0), cache)

            improves = self._find_improvable(new, index + 1 - begin, length - begin)
            new["can_improve"] = state["can_improve"] & improves
            goes_on = ops.any(new["can_improve"]) & ~ops.all(ends)
            if self.early_stopping is True:
                goes_on = goes_on & ~ops.all(new["has_ended"])
            return new, cache, index + 1, goes_on

        state, *_ = self.run_loop(
            cond,
            body,
            model=model,
            loop_vars=(
                self._begin(ops.reshape(repeat(prompt), (-1, num_beams, length))),
                keras.tree.map_structure(repeat, () if cache is None else cache),
                ops.cast(index, "int32"),
                ops.convert_to_tensor(True),
            ),
            maximum_iterations=length - index,
        )
        return state["ended"][:, 0]

    def _begin(self, beams: Tensor) -> dict[str, Tensor]:
        """The state before the first step, for beams int32 (B, N, 1 + T) that are equal."""
        # The first step chooses among the continuations of one beam.
        is_first = ops.cast(ops.arange(self.num_beams) == 0, "float32")
        zeros = ops.zeros_like(beams[:, :, 0], dtype="float32")
        return {
            "beams": beams,
            "scores": zeros + (1.0 - is_first) * _OUT,
            "ended": beams,
            "ended_scores": zeros + _OUT,
            "has_ended": zeros > 0,
            "can_improve": zeros[:, :1] == 0,
        }

    def _continue(
        self, state: dict[str, Tensor], scores: Tensor, index: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The best continuations of the beams: twice N, so that N of them go on.

        Args:
            scores: float32 (B N, V), the logarithmic probabilities of the next token.

        Returns:
            tuple (scores float32, beams int32, tokens int32, each (B, 2 N); targets int32
            (B, 2 N, 1 + T)).
        """
        vocabulary_size = scores.shape[-1]
        scores = ops.reshape(scores, (-1, self.num_beams, vocabulary_size))
        scores = scores + state["scores"][:, :, None]
        scores = ops.reshape(scores, (-1, self.num_beams * vocabulary_size))
        scores, chosen = take_best(scores, 2 * self.num_beams)
        parents, tokens = chosen // vocabulary_size, chosen % vocabulary_size
        found = choose(state["beams"], parents)
        is_written = ops.arange(found.shape[2]) == index
        found = ops.where(is_written, ops.cast(tokens, found.dtype)[:, :, None], found)
        return scores, parents, tokens, found

    def _find_improvable(self, state: dict[str, Tensor], length: Tensor, longest: int) -> Tensor:
        """bool (B, 1), whether a beam of `length` tokens may end better than those that ended."""
        length_of_best = ops.cast(length, "float32")
        if self.early_stopping == "never" and self.length_penalty > 0:
            length_of_best = float(longest)
        best = state["scores"][:, :1] / length_of_best**self.length_penalty
        worst = ops.min(state["ended_scores"], axis=1, keepdims=True)
        return ops.any(best > ops.where(state["has_ended"], worst, _OUT), axis=1, keepdims=True)

    def _update_ended(
        self, state: dict[str, Tensor], found: Tensor, scores: Tensor, ends: Tensor, length: Tensor
    ) -> dict[str, Tensor]:
        """The best ended targets of those before and those that end now, each `length` tokens.

        Of the 2 N continuations `found`, int32 (B, 2 N, 1 + T), the first N may end.
        """
        num_beams = self.num_beams
        ends = ends & (ops.arange(2 * num_beams) < num_beams)
        scores = scores / ops.cast(length, "float32") ** self.length_penalty
        stays_out = ~ends | ~state["can_improve"]
        if self.early_stopping is True:
            stays_out = stays_out | ops.all(state["has_ended"], axis=1, keepdims=True)
        scores = ops.where(stays_out, _OUT, scores)
        best, chosen = take_best(
            ops.concatenate([state["ended_scores"], scores], axis=1), num_beams
        )
        all_targets = ops.concatenate([state["ended"], found], axis=1)
        has_ended = ops.concatenate([state["has_ended"], ends], axis=1)
        return {
            "ended": choose(all_targets, chosen),
            "ended_scores": best,
            "has_ended": choose(has_ended, chosen),
        }

    def get_config(self) -> Config:
        return {
            "num_beams": self.num_beams,
            "length_penalty": self.length_penalty,
            "early_stopping": self.early_stopping,
        }


def take_best(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The highest of float (B, M), in descending order: float (B, count), int32 (B, count)."""
    best, places = ops.top_k(scores, count)
    # TensorFlow forgets the shape.
    return ops.reshape(best, (-1, count)), ops.reshape(ops.cast(places, "int32"), (-1, count))


def choose(x: Tensor, places: Tensor) -> Tensor:
    """(B, M, ...) -> (B, N, ...), the entries at int32 (B, N)."""
    shape = (-1, places.shape[1], *x.shape[2:])
    for axis in range(2, len(x.shape)):
        places = ops.expand_dims(places, axis)
    return ops.reshape(ops.take_along_axis(x, places, axis=1), shape)
