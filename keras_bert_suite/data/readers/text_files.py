"""Reads text files and their lines."""

import codecs
import sys
from pathlib import Path

#: The file name that stands for standard input.
STANDARD_INPUT = "-"


def read_lines(path, encoding="utf-8"):
    """Reads a file with a text in each line, or standard input if `path` is "-".

    Returns:
        list of at least one str, see `split_lines`.

    Raises:
        ValueError: if the file is empty or cannot be decoded.
        OSError: if the file cannot be read.
    """
    text = read_text(path, encoding)
    if not text:
        raise ValueError(f"{_name(path)} is empty. Wanted a text in each line.")
    return split_lines(text)


def split_lines(text):
    r"""The lines of a text, without their ends. All readers of lines call this function.

    A line feed ends a line, and carriage returns before it belong to the end. In a text without a
    line feed, or with one at its end alone, a carriage return ends a line, as old programs and
    Excel on a Mac write it. No other character ends a line, so that a text may hold it.

    >>> split_lines("one\r\ntwo\x85\n"), split_lines("one\rtwo\r")
    (['one', 'two\x85'], ['one', 'two'])
    """
    text = text.removesuffix("\n")
    if "\n" not in text:
        text = text.removesuffix("\r").replace("\r", "\n")
    return [line.rstrip("\r") for line in text.split("\n")]


def read_text(path, encoding):
    """Reads a whole file, or standard input, without its byte order mark.

    Raises:
        ValueError: if the file is in another encoding, naming the line.
    """
    if path == STANDARD_INPUT:
        data = sys.stdin.buffer.read()
    else:
        data = Path(path).expanduser().read_bytes()
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line_number = len(split_lines(data[: error.start].decode(encoding, "replace") + "-"))
        is_utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        raise ValueError(
            f"{_name(path)}, line {line_number}: {error}. Convert the file to UTF-8, or name the "
            f"encoding it is in, {'utf-16' if is_utf16 else 'such as gb18030 or cp1252'}."
        ) from None
    except LookupError as error:
        raise ValueError(f"{error}. Wanted an encoding of Python, e.g. 'utf-8'.") from None


def _name(path):
    return "standard input" if path == STANDARD_INPUT else path
