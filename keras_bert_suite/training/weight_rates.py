"""The learning rates of single weights: of a head, and of the layers of an encoder.

Both become factors of the learning rate, as `rate_multipliers` are. `BertOptimizer.
find_rate_factor` joins all three.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import keras

from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.training.bert_optimizer import BertOptimizer
from keras_bert_suite.training.layer_decay import list_layer_factors
from keras_bert_suite.training.schedules import LinearWarmupDecay
from keras_bert_suite.training.weight_patterns import is_found

#: What each warning of `warn_of_slow_layer` says.
RATE_ADVICE = "learn at the same rate as the encoder"


def set_head_rate(optimizer: Any, variables: Sequence[keras.Variable], rate: float) -> None:
    """Gives variables another peak of the learning rate, by a row of `rate_multipliers`.

    The new row is the last of `rate_multipliers`. The optimizer takes the first row whose pattern
    fits a variable. So if a row names the transitions of a CRF, they keep its rate.

    Args:
        optimizer: `AdamW` or `Lamb`, not built, whose rate is a number or a `LinearWarmupDecay`.
        variables: list of `keras.Variable`.
        rate: float, the peak.

    Raises:
        ValueError: if the rate is not above 0, if the optimizer is another one or was built, or if
            its peak is not known.
    """
    if isinstance(rate, str) or not 0 < rate < float("inf"):
        raise ValueError(f"head_learning_rate must be a number above 0, got {rate!r}.")
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    if not isinstance(optimizer, BertOptimizer) or optimizer.built:
        raise ValueError(
            f"head_learning_rate={rate} needs a new AdamW or Lamb of this package, got "
            f"{'a trained ' * getattr(optimizer, 'built', False)}{type(optimizer).__name__}. Leave "
            "out `optimizer`, or pass a new AdamW(...)."
        )
    peak = find_peak(optimizer)
    if not peak:
        raise ValueError(
            f"head_learning_rate={rate} is a peak beside that of the encoder, and "
            f"{with_article(optimizer._learning_rate)} does not name its peak, or it is 0. Use a "
            f"{LinearWarmupDecay.__name__} or a number, or pass rate_multipliers to the optimizer."
        )
    pattern = "|".join(f"^{re.escape(variable.path)}$" for variable in variables)
    kept = [row for row in optimizer.rate_multipliers if row[0] != pattern]
    optimizer.rate_multipliers = (*kept, *([(pattern, rate / peak)] if pattern else []))


def set_layer_rates(
    optimizer: Any,
    paths: Iterable[str],
    number_layers: Callable[[], tuple[Mapping[str, int], int]],
) -> None:
    """Tells an optimizer with a `layer_decay` the factor of each weight.

    Args:
        optimizer: the optimizer of a task, or None. It may have no `layer_decay`.
        paths: the paths of all weights. Those outside of the encoder have the factor 1.
        number_layers: function() -> (dict of path -> number, number of layers), see
            `list_layer_factors`. It is called if the optimizer has a `layer_decay`.
    """
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    if not isinstance(optimizer, BertOptimizer) or optimizer.layer_decay is None:
        return
    assert optimizer.layer_numbering is not None
    decay = optimizer.layer_decay, optimizer.layer_numbering
    factors = list_layer_factors(*number_layers(), *decay)
    # `setattr` of Keras would look for variables in the dict.
    optimizer.__dict__["layer_factors"] = {**dict.fromkeys(paths, 1.0), **factors}


def find_peak(optimizer: keras.optimizers.Optimizer) -> float | None:
    """The peak of the schedule of an optimizer, or its learning rate; None if it is not known."""
    schedule = optimizer._learning_rate
    if isinstance(schedule, keras.optimizers.schedules.LearningRateSchedule):
        return getattr(schedule, "peak_learning_rate", None)
    return float(keras.ops.convert_to_numpy(schedule))


def warn_of_slow_layer(optimizer: Any, layer: keras.layers.Layer, name: str, remedy: str) -> None:
    """Warns the caller of `compile` if an optimizer has no rate for the weights of a layer.

    Args:
        optimizer: the optimizer of a task, or None.
        layer: a layer that learns nothing at the rate of an encoder.
        name: str, what the weights are for.
        remedy: str, the code that gives them a rate.
    """
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    patterns = [pattern for pattern, _ in getattr(optimizer, "rate_multipliers", ())]
    paths = [variable.path for variable in layer.trainable_variables]
    has_rate = any(is_found(pattern, path) for pattern in patterns for path in paths)
    if optimizer is not None and paths and not has_rate:
        warnings.warn(
            f"The weights of the {name} {RATE_ADVICE}, which is too slow for them. Pass {remedy}, "
            "as the default optimizer has, or a factor of 1.0 in its rate_multipliers if you mean "
            "it.",
            stacklevel=3,
        )
