"""Reads flags and numbers of JSON that other programs have written, as they are meant."""

_FLAGS = {"true": True, "false": False, "1": True, "0": False}


def read_flag(name, value):
    """A flag: bool, or None for null.

    >>> read_flag("is_impossible", "False"), read_flag("is_impossible", 1.0)
    (False, True)

    Raises:
        TypeError: if the value is none of true, false, 1, 0, the texts of them, and null.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in _FLAGS:
        return _FLAGS[value.strip().lower()]
    if isinstance(value, (int, float)) and value in (0, 1):
        return bool(value)
    raise TypeError(f"{name} must be true or false, got {value!r:.40}")


def read_integer(name, value):
    """An int, also from a float without a fraction or from the text of a number.

    >>> read_integer("answer_start", "16"), read_integer("answer_start", 16.0)
    (16, 16)

    Raises:
        TypeError: for another value.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, (float, str)):
        try:
            number = float(value)
            if number == int(number):
                return int(number)
        except (ValueError, OverflowError):
            pass
    raise TypeError(f"{name} must be a whole number, got {value!r:.40}")


def as_list(value):
    """A list of values, also if it is null or a single value.

    >>> as_list("good"), as_list(["good"]), as_list(None)
    (['good'], ['good'], [])
    """
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
