"""Checks of arguments. Their errors name the argument, its value and the values it may have."""

import operator
from collections.abc import Sequence
from typing import Any


def is_auto(value: object) -> bool:
    """Whether an argument of `compile` is "auto", and not a loss, a list or an optimizer."""
    return isinstance(value, str) and value == "auto"


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raises ValueError if a value is not one of some strings."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}.")


def check_share(name: str, value: float, positive: bool = False) -> None:
    """Raises ValueError if a float is not from 0 to 1, or with `positive` if it is 0."""
    if not 0 <= value <= 1 or (positive and value == 0):
        low = "over 0 and at most 1" if positive else "from 0 to 1"
        raise ValueError(f"{name} must be {low}, got {value}.")


def check_integer(name: str, value: Any, at_least: int = 0) -> None:
    """Raises ValueError if a value is not an integer of at least `at_least`."""
    try:
        valid = operator.index(value) >= at_least
    except TypeError:
        valid = False
    if not valid:
        raise ValueError(f"{name} must be an integer of at least {at_least}, got {value!r}.")
