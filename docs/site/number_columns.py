"""Columns of numbers are aligned at the right."""

import re

from docutils import nodes

NUMBER = re.compile(r"[-+−±~<>]?\d[\d,.]*(e-?\d+)?\s?(x|%|s|ms|min|h|[kKMG]i?B|points?)?")


def align_numbers(app, doctree):
    for table in doctree.findall(nodes.table):
        rows = [list(row.findall(nodes.entry)) for row in table.findall(nodes.row)]
        for column in zip(*rows, strict=False):
            if is_number_column([entry.astext().strip() for entry in column[1:]]):
                for entry in column:
                    entry["classes"].append("number")


def is_number_column(cells):
    """Whether the filled cells of a column are numbers, and there are some."""
    filled = [cell for cell in cells if cell]
    return bool(filled) and all(NUMBER.fullmatch(cell) for cell in filled)


def setup(app):
    app.connect("doctree-read", align_numbers)
    return {"parallel_read_safe": True}
