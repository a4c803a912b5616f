"""Checks of arguments. Their errors name the argument, its value and the values it may have."""

import inspect
import math
import numbers
import operator
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from keras_bert_suite.foreign_arguments import FOREIGN_ARGUMENTS, find_meant


def with_article(thing: Any, article: str = "a") -> str:
    """The name of the class of an object, or of a class, after its article, as `add_article`."""
    return add_article((thing if isinstance(thing, type) else type(thing)).__name__, article)


def add_article(name: str, article: str = "a") -> str:
    """A name after "a" or "an", or with `article` "A" after "A" or "An".

    >>> add_article("ElmoBackbone"), add_article("XLNetBackbone", "A")
    ('an ElmoBackbone', 'An XLNetBackbone')
    """
    has_vowel = name[0] in "AEIOaeio" or name.startswith(("XLNet", "XLM"))
    return f"{article}{'n' if has_vowel else ''} {name}"


def is_auto(value: object) -> bool:
    """Whether an argument of `compile` is "auto", and not a loss, a list or an optimizer."""
    return isinstance(value, str) and value == "auto"


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Raises ValueError if a value is not one of some strings."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}.")


def check_flag(name: str, value: Any) -> None:
    """Raises ValueError if a value is not True or False, as a string such as "no" is true."""
    if value not in (True, False):
        raise ValueError(f"{name} must be True or False, got {value!r}.")


def read_choices(name: str, value: Any, choices: Collection[str]) -> tuple[str, ...]:
    """tuple of str, of one string or a list of them. Each must be one of `choices`."""
    known = [*choices]
    if not isinstance(value, str):
        check_list(name, value, f"some of {', '.join(known)}")
    found = (value,) if isinstance(value, str) else tuple(value)
    if not found:
        raise ValueError(f"{name} must be one or more of {', '.join(known)}, got none.")
    for choice in found:
        check_choice(name, choice, known)
    return found


def check_share(name: str, value: float, positive: bool = False) -> None:
    """Raises ValueError if a value is no number from 0 to 1, or with `positive` if it is 0."""
    is_number = isinstance(value, numbers.Real)
    if not is_number or not 0 <= value <= 1 or (positive and value == 0):
        low = "over 0 and at most 1" if positive else "from 0 to 1"
        raise ValueError(f"{name} must be {low}, got {value!r}.")


def check_positive(name: str, value: Any) -> None:
    """Raises ValueError if a value is no finite number above 0."""
    is_number = isinstance(value, numbers.Real)
    if not is_number or not 0 < value < float("inf"):
        raise ValueError(f"{name} must be a number above 0, got {value!r}.")


def check_not_negative(name: str, value: Any) -> None:
    """Raises ValueError if a value is no finite number of at least 0."""
    is_number = isinstance(value, numbers.Real)
    if not is_number or not 0 <= value < float("inf"):
        raise ValueError(f"{name} must be a number of at least 0, got {value!r}.")


def check_finite(name: str, value: Any) -> None:
    """Raises ValueError if a value is no finite number."""
    if not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}.")


def check_integer(name: str, value: Any, at_least: int = 0, below: float = math.inf) -> None:
    """Raises ValueError if a value is not an integer of at least `at_least`, and below `below`."""
    try:
        valid = at_least <= operator.index(value) < below and not isinstance(value, bool)
    except TypeError:
        valid = False
    if not valid:
        end = "" if below == math.inf else f" and below {below}"
        raise ValueError(f"{name} must be an integer of at least {at_least}{end}, got {value!r}.")


def check_path(meant: str, value: Any) -> None:
    """Raises ValueError if a value is no str and no path. `meant` is what it should be."""
    if not isinstance(value, (str, os.PathLike)):
        raise ValueError(f"{meant} is given as a str or path, got {value!r:.80}.")


def check_list(name: str, value: Any, of: str) -> None:
    """Raises ValueError if a value is no list, or another sequence, of `of`, plural nouns."""
    is_list = isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))
    if not is_list:
        raise ValueError(
            f"{name} must be a list of {of}, got {value!r:.80}. Put a single one into a list."
        )


def check_patterns(name: str, patterns: Any) -> None:
    """Raises ValueError if a value is not a list of strings that are regular expressions."""
    valid = isinstance(patterns, Iterable) and not isinstance(patterns, str)
    for pattern in patterns if valid else [patterns]:
        if not valid or not isinstance(pattern, str):
            raise ValueError(f"{name} must be regular expressions, strings, got {pattern!r}.")
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(
                f"{name} must be regular expressions, got {pattern!r}: {error}. To find a "
                "character such as '(' itself, write a backslash before it."
            ) from error


def check_below_one(**rates: float) -> None:
    """Raises ValueError if a value is no number of at least 0 and below 1, such as a dropout."""
    for name, rate in rates.items():
        if not isinstance(rate, numbers.Real) or not 0 <= rate < 1:
            raise ValueError(f"{name} must be a number of at least 0 and below 1, got {rate!r}.")


def check_sizes(
    num_heads: int, hidden_dim: int, max_sequence_length: int | None, **sizes: int
) -> None:
    """Raises ValueError if the sizes of a backbone are not positive, or its heads do not divide.

    `max_sequence_length` may be None, for any length.
    """
    if max_sequence_length is not None:
        check_integer("max_sequence_length", max_sequence_length, at_least=1)
    for name, size in {"num_heads": num_heads, "hidden_dim": hidden_dim, **sizes}.items():
        check_integer(name, size, at_least=1)
    if hidden_dim % num_heads:
        raise ValueError(
            f"num_heads must divide hidden_dim, got num_heads={num_heads} and "
            f"hidden_dim={hidden_dim}."
        )


def list_arguments(cls: type) -> list[str]:
    """The names of the arguments of a constructor of ours, or of a subclass of a user.

    A constructor with `**kwargs` hands them to the constructor of its base class. The classes of
    Keras and KerasHub are left out, because their constructors take any argument.
    """
    known: dict[str, None] = {}
    for base in cls.__mro__:
        if base.__module__.partition(".")[0] in ("keras", "keras_hub"):
            break
        if "__init__" not in vars(base):
            continue
        parameters = inspect.signature(vars(base)["__init__"]).parameters.values()
        named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        known.update({p.name: None for p in parameters if p.kind in named and p.name != "self"})
        if all(p.kind is not inspect.Parameter.VAR_KEYWORD for p in parameters):
            break
    return list(known)


def check_arguments(
    caller: str, arguments: Iterable[str], known: Iterable[str], similar: Iterable[str] = ()
) -> None:
    """Raises TypeError if an argument is not known, naming the argument that was meant.

    `similar` has more names, which these arguments may have been meant for.
    """
    known = list(known)
    for name in arguments:
        if name not in known:
            advice = advise_argument(name, [*known, *similar])
            raise TypeError(f"{caller} has no argument {name!r}. {advice}")


def advise_argument(name: str, known: Sequence[str]) -> str:
    """What a caller that knows some arguments says of another: a sentence."""
    meant, place = find_meant(name, known)
    return f"Did you mean {meant!r}?" if meant else place or f"Wanted one of {list(known)}."


def check_further_arguments(cls: type, arguments: Iterable[str], known: Iterable[str]) -> None:
    """Raises TypeError if a constructor got an argument in `**kwargs` that nothing reads.

    Keras' functional models leave such arguments out without a word. `known` has the names that the
    constructor of Keras reads.
    """
    check_arguments(cls.__name__, arguments, known, similar=list_arguments(cls))


def check_foreign_arguments(cls: type, arguments: Iterable[str]) -> None:
    """Raises TypeError if a constructor got an argument by its name in another library.

    It is for layers, whose base in Keras refuses all other arguments that nothing reads.
    """
    foreign = [name for name in arguments if name in FOREIGN_ARGUMENTS]
    check_arguments(cls.__name__, foreign, list_arguments(cls))
