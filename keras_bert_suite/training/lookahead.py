"""Lookahead: every few steps, the weights return a part of the way to where they began."""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.argument_checks import check_integer, check_share


def read_lookahead(steps: int | None, share: float | None) -> tuple[int | None, float | None]:
    """(steps, share) of the arguments of an optimizer. The share is 0.5 by default.

    Raises:
        ValueError: if the steps are no integer from 1 on, if the share is not over 0 and at most 1,
            or if there is a share without steps.
    """
    if share is not None:
        check_share("lookahead_share", share, positive=True)
    if steps is None:
        if share is not None:
            raise ValueError(
                f"lookahead_share={share} is the share of the way that Lookahead keeps, got "
                "lookahead_steps=None. Pass lookahead_steps=5, or leave out the share."
            )
        return None, None
    check_integer("lookahead_steps", steps, at_least=1)
    return int(steps), 0.5 if share is None else float(share)


def make_slow_weights(
    optimizer: keras.optimizers.Optimizer, variables: Any
) -> list[keras.Variable]:
    """Makes the variables of an optimizer that hold where each weight was when a cycle began."""
    slow = optimizer.add_optimizer_variables(variables, "slow")
    for variable, weight in zip(slow, variables, strict=True):
        variable.assign(ops.copy(ops.stop_gradient(ops.convert_to_tensor(weight))))
    return slow


def note_beginning(optimizer: Any, slow: keras.Variable, weight: Any) -> None:
    """Before the first update of a cycle: the slow weight is the weight."""
    is_first = ops.equal(optimizer.iterations % optimizer.lookahead_steps, 0)
    if _is_surely_false(is_first):
        return
    optimizer.assign(slow, ops.where(is_first, ops.convert_to_tensor(weight), _read(slow)))


def return_part(optimizer: Any, slow: keras.Variable, weight: Any) -> None:
    """After the last update of a cycle: weight = slow + share (weight - slow)."""
    is_last = ops.equal((optimizer.iterations + 1) % optimizer.lookahead_steps, 0)
    is_last = ops.logical_and(is_last, optimizer.finite)
    if _is_surely_false(is_last):
        return
    dtype = keras.backend.result_type(slow.dtype, "float32")
    fast, begin = ops.convert_to_tensor(weight), ops.cast(slow, dtype)
    mean = begin + optimizer.lookahead_share * (ops.cast(fast, dtype) - begin)
    optimizer.assign(weight, ops.where(is_last, ops.cast(mean, fast.dtype), fast))


def _is_surely_false(flag: Tensor) -> bool:
    """Whether a bool scalar is known to be false, so that a pass over the weight can be left out.

    A GPU would have to be waited for, and a graph is made before its values.
    """
    if keras.config.backend() != "torch" or flag.device.type != "cpu":
        return False
    import torch

    return not torch.compiler.is_compiling() and not bool(flag)


def _read(variable: keras.Variable) -> Tensor:
    return ops.convert_to_tensor(variable)
