"""Reads frozen tables of characters. For their content see `unicode_rules`."""

import re
from pathlib import Path


def read_tables(name):
    """The tables of a file of this folder, list of str in the order of the file.

    A table begins with a line such as "[LETTERS] a comment".
    """
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    return re.split(r"^\[\w+\].*\n", text, flags=re.MULTILINE)[1:]
