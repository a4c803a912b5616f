"""Reads lists that a program has written as text, such as "['joy', 'love']" in a table."""

import ast
import json
import re
import warnings

from keras_bert_suite.data.readers.records import make_field

_CLOSING = {"[": "]", "(": ")", "{": "}"}

#: The beginnings of a print of a list.
BRACKETS = tuple(_CLOSING)

#: An item in a print of NumPy: a string, a bool or a number.
_ITEM = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|True|False|[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?"""
_ITEMS = re.compile(_ITEM)
#: Two items or more. JSON or Python reads one.
_NUMPY = re.compile(rf"\[\s*(?:{_ITEM})(?:\s+(?:{_ITEM}))+\s*\]")


def read_list_print(text):
    """The fields of a list that a text is a print of, list of str; None for another text.

    It is JSON, or the print of a list, tuple or set of Python, or of an array of NumPy.

    >>> read_list_print("['joy', 'love']"), read_list_print("[1 0 1]"), read_list_print("joy")
    (['joy', 'love'], ['1', '0', '1'], None)
    """
    text = text.strip()
    if len(text) < 2 or _CLOSING.get(text[0]) != text[-1]:
        return None
    # Python joins two strings that have only a space between them, so NumPy's form comes first.
    for read in (_read_numpy, json.loads, _read_python):
        try:
            items = read(text)
            if isinstance(items, (list, tuple, set)) and all(map(_is_scalar, items)):
                fields = [make_field(item) for item in items]
                return sorted(fields) if isinstance(items, set) else fields
        except (ValueError, SyntaxError, RecursionError, MemoryError, OverflowError):
            continue
    return None


def parse_list(field):
    """A field as it is, or the list that it is a print of."""
    # Most fields have no bracket, and need not be parsed.
    if isinstance(field, str) and field.lstrip().startswith(BRACKETS):
        fields = read_list_print(field)
        return field if fields is None else fields
    return field


def seems_list_print(text):
    """Whether a text is all in one pair of brackets, as a list that cannot be read is.

    >>> seems_list_print("[np.int64(1)]"), seems_list_print("(sad) or (bad)")
    (True, False)
    """
    text = text.strip()
    end = _CLOSING.get(text[:1])
    return len(text) > 1 and text[-1] == end and (end == "]" or end not in text[:-1])


def _is_scalar(item):
    return item is None or isinstance(item, (str, int, float))


def _read_python(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Of a backslash that escapes nothing.
        return ast.literal_eval(text)


def _read_numpy(text):
    if not _NUMPY.fullmatch(text):
        raise ValueError(text)
    return [_read_python(item) for item in _ITEMS.findall(text)]
