"""Draws the next tokens at random: from logits to tokens."""

import dataclasses
import math
import numbers

import keras_hub
import numpy as np
from keras import ops

from keras_bert_suite.argument_checks import check_integer, check_share
from keras_bert_suite.heads.targets.beam_search import BeamSearch
from keras_bert_suite.masking.token_replacement import draw_uniforms

#: Uniform numbers are multiples of its reciprocal, so that in float32 u * x < x.
_GRID = 2**23
_MOST = np.iinfo("int32").max
#: The temperatures that are neither 0 nor infinite in float32.
_LEAST, _LARGEST = float(np.finfo("float32").tiny), float(np.finfo("float32").max)


@dataclasses.dataclass(frozen=True)
class Sampling:
    """How the tokens of a call are drawn; see `choose_sampling`."""

    top_k: int | None
    top_p: float
    temperature: float
    seed: int

    def make_inputs(self, row_ids, length):
        """dict of arrays by which `length` tokens of each row are drawn, see `draw_next`.

        The draws of a row depend on the seed and its number, `row_ids` int (B,), and not on the
        rows beside it.
        """
        uniforms = draw_uniforms(self.seed, 0, row_ids, length)[:, :, 0]
        return {
            "uniforms": (np.floor(uniforms * _GRID) / _GRID).astype("float32"),
            # No vocabulary is larger.
            "top_k": np.array(min(self.top_k or _MOST, _MOST), "int32"),
            "top_p": np.array(self.top_p, "float32"),
            "temperature": np.array(min(max(self.temperature, _LEAST), _LARGEST), "float32"),
        }


def choose_sampling(sampler, top_k, top_p, temperature, seed):
    """The `Sampling` that arguments of `predict` ask for; None if all of them are None.

    Args:
        sampler: the sampler of the task. A limit that is None is its own, if it has one: the `k`
            of a `TopKSampler`, the `p` and `k` of a `TopPSampler`, and the `temperature`.
        top_k: int, only so many of the most probable tokens are drawn; None for all.
        top_p: float in (0, 1], only the most probable tokens are drawn, as few as have this
            probability together; None for all.
        temperature: float above 0, by which logits are divided; None for 1.
        seed: int, the same texts for the same seed; None for a seed from NumPy, which
            `keras.utils.set_random_seed` seeds.

    Raises:
        ValueError: if a value is out of its range, or the sampler is a beam search.
    """
    if top_k is top_p is temperature is seed is None:
        return None
    if isinstance(sampler, (keras_hub.samplers.BeamSampler, BeamSearch)):
        raise ValueError(
            "A beam search finds the most probable text, and top_k, top_p, temperature and seed "
            "draw one at random. Leave them out, or call compile(sampler='greedy')."
        )
    top_k = getattr(sampler, "k", None) if top_k is None else top_k
    top_p = getattr(sampler, "p", 1.0) if top_p is None else top_p
    temperature = sampler.temperature if temperature is None else temperature
    if top_k is not None:
        check_integer("top_k", top_k, at_least=1)
    check_share("top_p", top_p, positive=True)
    if not isinstance(temperature, numbers.Real) or not 0 < temperature < math.inf:
        raise ValueError(
            f"temperature must be a number above 0, got {temperature!r}. For the most probable "
            "tokens, leave out top_k, top_p, temperature and seed."
        )
    if seed is None:
        seed = int(np.random.randint(2**31))  # noqa: NPY002, Keras seeds this generator.
    check_integer("seed", seed)
    return Sampling(top_k, top_p, temperature, seed)


def check_no_draws(sampling):
    """Raises a ValueError if packed arrays are to be scored and a `Sampling` asks for draws."""
    if sampling is not None:
        raise ValueError(
            "The answers for packed arrays are logits, of which nothing is drawn. Leave out top_k, "
            "top_p, temperature and seed, or pass texts."
        )


def draw_next(logits, inputs, place):
    """Draws the token at a place of the rows.

    Args:
        logits: float (B, V).
        inputs: dict of tensors, from `Sampling.make_inputs`.
        place: int32 scalar, how many tokens were drawn before.

    Returns:
        int32 (B,).
    """
    limits = (inputs[name] for name in ("top_k", "top_p", "temperature"))
    uniforms = ops.take(inputs["uniforms"], place, axis=1)
    return draw_tokens(filter_logits(logits, *limits), uniforms)


def filter_logits(logits, top_k, top_p, temperature):
    """Leaves the tokens that may be drawn: float (B, V) -> float32 (B, V), -inf for the others.

    First the temperature, then `top_k`, then `top_p` of the tokens that are left, as transformers
    has them. Tokens with the logit of the last token that is left stay, too.

    Args:
        logits: float (B, V).
        top_k, top_p, temperature: scalars.

    Source: Fan et al., 2018 (https://arxiv.org/abs/1805.04833), section 4.3, for `top_k`; Holtzman
    et al., 2020 (https://arxiv.org/abs/1904.09751), section 3.1, for `top_p`.
    """
    logits = ops.cast(logits, "float32")
    # The best token has the logit 0, so a low temperature makes no infinite one.
    logits = (logits - ops.max(logits, axis=-1, keepdims=True)) / temperature
    ranked = ops.sort(logits, axis=-1)
    size = logits.shape[-1]
    least = ops.take(ranked, [size - ops.minimum(top_k, size)], axis=-1)
    ranked = ops.where(ranked < least, -math.inf, ranked)
    rest = ops.cumsum(ops.softmax(ranked, axis=-1), axis=-1)
    num_rest = ops.sum(ops.cast(rest <= 1 - top_p, "int32"), axis=-1, keepdims=True)
    least = ops.take_along_axis(ranked, ops.minimum(num_rest, size - 1), axis=-1)
    return ops.where(logits < least, -math.inf, logits)


def draw_tokens(logits, uniforms):
    """Draws a token of each row with its probability: int32 (B,).

    Args:
        logits: float32 (B, V).
        uniforms: float32 (B,), multiples of 2**-23 in [0, 1).
    """
    probabilities = ops.softmax(logits, axis=-1)
    # A token without probability is never drawn, also where a backend sums in another order.
    sums = ops.where(probabilities > 0, ops.cumsum(probabilities, axis=-1), 0.0)
    is_beyond = sums > uniforms[:, None] * ops.max(sums, axis=-1, keepdims=True)
    return ops.argmax(ops.cast(is_beyond, "int32"), axis=-1)  # The first one.
