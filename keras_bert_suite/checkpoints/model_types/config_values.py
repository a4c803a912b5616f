"""Reads the JSON files of a checkpoint, and checks every value."""

from keras_bert_suite.files.atomic_file import parse_json
from keras_bert_suite.files.messages import shorten


def read_json(path, kind=dict):
    """The object or the array in a JSON file.

    Args:
        path: `pathlib.Path`.
        kind: dict or list.

    Raises:
        ValueError: if the file is not JSON, or holds another kind of value.
    """
    try:
        return parse_json(path.read_bytes(), kind)
    except ValueError as error:
        raise ValueError(f"{path} {error}. Download the checkpoint again.") from error


class ConfigValues:
    """Checked values of the JSON object in a file, or of an object within it.

    Args:
        path: `pathlib.Path` of the file.
        field: str, the field of the inner object, or None for the outer object.

    Raises:
        ValueError: from every method, if the value is missing and there is no default,
            or if it is of another type or out of its range.
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

    def size(self, name, default=None):
        """An int in [1, 2**31), as token ids are int32."""
        value = self._required(name, default)
        if type(value) is not int or not 0 < value < 2**31:  # A bool is an int to isinstance.
            raise self._wrong(name, value, "a positive integer of 32 bits")
        return value

    def rate(self, name, default=None):
        """A float in [0, 1)."""
        value = self._required(name, default)
        if type(value) not in (int, float) or not 0 <= value < 1:
            raise self._wrong(name, value, "a number in [0, 1)")
        return float(value)

    def positive(self, name, default=None):
        """A float greater than zero."""
        value = self._required(name, default)
        if type(value) not in (int, float) or not 0 < value < float("inf"):
            raise self._wrong(name, value, "a number greater than 0")
        return float(value)

    def flag(self, name, default):
        """A bool."""
        value = self._required(name, default)
        if not isinstance(value, bool):
            raise self._wrong(name, value, "true or false")
        return value

    def choice(self, name, choices, default=None):
        """The entry of a dict of choices that the value names."""
        value = self._required(name, default)
        if not isinstance(value, str) or value not in choices:
            raise self._wrong(name, value, f"one of {', '.join(choices)}")
        return choices[value]

    def check_dials(self, dials):
        """Checks that our backbones can compute what a configuration describes.

        Args:
            dials: iterable of (name, tuple of values). The field `name` must have one of these
                values, or be absent or null.
        """
        for name, understood in dials:
            got = self._values.get(name)
            if got is not None and got not in understood:
                wanted = " or ".join(repr(value) for value in understood)
                advice = f"only {wanted} can be read" if wanted else "no such model can be read"
                kind, correction = self._describe_type()
                raise ValueError(
                    f"{name!r} in {self.path} is {shorten(repr(got))}; {advice}{kind}. Use another "
                    f"checkpoint{correction}."
                )

    def _required(self, name, default):
        value = self._values.get(name)
        value = default if value is None else value
        if value is None:
            kind, correction = self._describe_type()
            raise ValueError(
                f"{self.path} has no {name!r}{kind}. Use the configuration file that came with the "
                f"weights{correction}."
            )
        return value

    def _describe_type(self):
        """Two parts of messages, about the model_type and its correction, if the file has one."""
        kind = self._values.get("model_type")
        if not kind:
            return "", ""
        return f" for the model_type {shorten(repr(kind))}", ", or correct a wrong model_type"

    def _wrong(self, name, value, wanted):
        return ValueError(f"{name!r} in {self.path} must be {wanted}, got {shorten(repr(value))}.")
