"""The regular expressions by which an optimizer finds weights."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import keras

from keras_bert_suite.argument_checks import check_list, check_not_negative, check_patterns

#: Regular expressions for `variable.path`. Keras' own optimizers search `variable.name`, where
#: "LayerNorm" finds no layer norm: the variables are called `gamma` and `beta`.
NO_DECAY = (r"(^|/)bias$", r"(^|/)(gamma|beta)$")

#: The vectors and scalars that are decayed all the same: the weights of `ScalarMix`, and of a
#: `ConditionalRandomField`. Google's and Hugging Face's rule leaves out biases and norms alone.
DECAYED = (r"(^|/)(layer_weights|scale)$", r"(^|/)(start|end)_scores$")


def is_found(pattern: str, text: str) -> bool:
    """Whether a regular expression is found in a path or name. Numbers are found whole.

    >>> is_found("layer_1", "transformer_layer_1/query"), is_found("layer_1", "layer_10/query")
    (True, False)
    """
    # The text after the expression must not continue its last number.
    return re.search(f"(?:{pattern})(?!(?<=[0-9])[0-9])", text) is not None


def read_multipliers(multipliers: Any) -> tuple[tuple[str, float], ...]:
    """Pairs of a pattern and a factor, of a dict or of a list of pairs; None is none."""
    pairs: Any = multipliers or ()
    if isinstance(multipliers, Mapping):
        pairs = multipliers.items()
    check_list("rate_multipliers", pairs, "pairs of a regular expression and a factor, or a dict")
    pairs = [*pairs]
    for pair in pairs:  # A configuration holds lists.
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ValueError(
                "rate_multipliers must be pairs of a regular expression and a factor, such as "
                f"[('^classifier/', 10.0)], got {pair!r} in them."
            )
    check_patterns("rate_multipliers", [text for text, _ in pairs])
    for text, factor in pairs:
        check_not_negative(f"The factor of rate_multipliers for {text!r}", factor)
    return tuple((text, float(factor)) for text, factor in pairs)


def is_plain_vector(variable: keras.Variable) -> bool:
    """Whether a variable is a vector or a scalar that is not `DECAYED`."""
    return len(variable.shape) < 2 and not any(is_found(p, variable.path) for p in DECAYED)


def find_all(argument: str, patterns: Sequence[str], texts: Sequence[str], kind: str) -> list[bool]:
    """Says of each text whether one of the regular expressions is found in it.

    An expression that is found in no text is a ValueError, unless it is from `NO_DECAY`.
    """
    for pattern in patterns:
        if pattern not in NO_DECAY and not any(is_found(pattern, text) for text in texts):
            raise ValueError(
                f"{argument}={pattern!r} finds none of the {len(texts)} variables. It is "
                f"searched in {kind} such as {texts[0]!r}."
            )
    return [any(is_found(pattern, text) for pattern in patterns) for text in texts]
