"""Reads the JSON files of a checkpoint, and checks every value."""

from keras_bert_suite.files.atomic_file import parse_json
from keras_bert_suite.files.messages import shorten


def read_json(path, kind=dict):
    """The object, or with `kind` list the array, in a JSON file. Other content is a ValueError."""
    try:
        return parse_json(path.read_bytes(), kind)
    except ValueError as error:
        raise ValueError(f"{path} {error}. Download the checkpoint again.") from error


#: Kind of a value -> (whether a value is one, the kind in words). A bool is an int to isinstance.
_KINDS = {
    "size": (lambda v: type(v) is int and 0 < v < 2**31, "a positive integer of 32 bits"),
    "rate": (lambda v: type(v) in (int, float) and 0 <= v < 1, "a number in [0, 1)"),
    "positive": (lambda v: type(v) in (int, float) and 0 < v < float("inf"), "greater than 0"),
    "flag": (lambda v: isinstance(v, bool), "true or false"),
}


class ConfigValues:
    """Checked values of the JSON object in a file, or of the object within it called `field`.

    A value that is missing and has no default, is of another type, or out of its range is a
    ValueError.
    """

    def __init__(self, path, field=None):
        self.path = path
        self._values = read_json(path)
        if field is not None:
            self._values = self._values.get(field)
            if not isinstance(self._values, dict):
                raise ValueError(
                    f"{field!r} in {path} must be a JSON object, got "
                    f"{type(self._values).__name__}. Download the checkpoint again."
                )

    def get(self, name, default=None):
        """The value, unchecked."""
        return self._values.get(name, default)

    def read(self, kind, name, default=None):
        """The value, which is of a kind in `_KINDS`. Rates and positive numbers become floats."""
        value = self.get(name)
        value = default if value is None else value
        is_valid, wanted = _KINDS[kind]
        if not is_valid(value):
            raise self._wrong(name, value, wanted)
        return float(value) if kind in ("rate", "positive") else value

    def choice(self, name, choices, default=None):
        """The entry of a dict of choices that the value names."""
        value = self.get(name, default)
        if not isinstance(value, str) or value not in choices:
            raise self._wrong(name, value, f"one of {', '.join(choices)}")
        return choices[value]

    def check_dials(self, dials):
        """Checks that our backbones can compute the model of a configuration.

        Each field, by name, must have one of the values of its tuple, or be absent or null.
        """
        for name, understood in dials:
            got = self._values.get(name)
            if got is not None and got not in understood:
                wanted = " or ".join(repr(value) for value in understood)
                advice = f"only {wanted} can be read" if wanted else "no such model can be read"
                raise ValueError(f"{name!r} in {self.path} is {shorten(repr(got))}; {advice}.")

    def _wrong(self, name, value, wanted):
        return ValueError(f"{name!r} in {self.path} must be {wanted}, got {shorten(repr(value))}.")
