"""Writes targets by one choice for each token, such as the most probable one."""

from collections.abc import Callable
from typing import Any

import keras_hub
from keras import ops

from keras_bert_suite.annotations import Tensor


class ChoiceSearch(keras_hub.samplers.Sampler):
    """Chooses each token of a target from its scores alone, and pads a target that has ended.

    KerasHub's samplers choose from the probabilities of all tokens of the vocabulary. The largest
    score needs no probabilities, and a target that has ended needs no scores.

    Args:
        choose: function from (scores float32 (B, V), index) to int (B,), the tokens at `index`.
        pad_token_id: int, which follows the end of a target.
    """

    def __init__(self, choose: Callable[[Tensor, Tensor], Tensor], pad_token_id: int) -> None:
        super().__init__()
        self.choose = choose
        self.pad_token_id = pad_token_id

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
        """Writes targets: int32 (B, 1 + T), `prompt` filled in. Args: as for `BeamSearch`."""
        length = prompt.shape[1]
        places = ops.arange(length)
        (stop_token_id,) = stop_token_ids

        def cond(targets: Tensor, cache: Any, index: Tensor, has_ended: Tensor) -> Tensor:
            return ~ops.all(has_ended)

        def body(targets: Tensor, cache: Any, index: Tensor, has_ended: Tensor) -> Any:
            scores, _, cache = next(targets, cache, index)
            tokens = ops.cast(self.choose(scores, index), targets.dtype)
            tokens = ops.where(has_ended, self.pad_token_id, tokens)
            targets = ops.where(places == index, tokens[:, None], targets)
            return targets, cache, index + 1, has_ended | (tokens == stop_token_id)

        targets, *_ = self.run_loop(
            cond,
            body,
            model=model,
            loop_vars=(prompt, cache, ops.cast(index, "int32"), prompt[:, 0] != prompt[:, 0]),
            maximum_iterations=length - index,
        )
        return targets


def choose_most_probable(scores: Tensor, index: Tensor) -> Tensor:
    """int (B,), the first token with the largest score of float32 (B, V)."""
    return ops.argmax(scores, axis=-1)
