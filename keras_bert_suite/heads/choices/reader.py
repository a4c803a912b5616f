"""Reads files of SWAG: the beginning of a scene, and four endings. One ending is right.

Source: Zellers et al., 2018 (https://arxiv.org/abs/1808.05326).
"""

import dataclasses
import os

from keras_bert_suite.data.readers.columns import read_columns
from keras_bert_suite.data.readers.examples import Examples
from keras_bert_suite.data.readers.row_faults import RowFaults

_ENDINGS = [f"ending{i}" for i in range(4)]


def read_swag(
    path: str | os.PathLike[str],
    labelled: bool = True,
    encoding: str = "utf-8",
    delimiter: str | None = None,
    quoting: int | None = None,
    errors: str = "raise",
) -> Examples:
    """Reads a CSV file of SWAG: columns `sent1`, `sent2`, `ending0` to `ending3`, and `label`.

    Args:
        path: str or path. Without a `delimiter` it must end in `.csv` or `.tsv`.
        labelled: bool, whether to read the labels. The test file has none.
        encoding, delimiter, quoting, errors: as for `read_table`.

    Returns:
        `Examples` of at least one row, for `MultipleChoice`. `x`: (first sentences, endings). The
        endings of a row are a list of 4 str. Each is the beginning of the second sentence and one
        of its endings. `y`: the index of the right ending, an int.

    Raises:
        OSError: if the file cannot be read.
        ValueError: as `read_table`. A label is 0, 1, 2 or 3.
    """
    columns = ["sent1", "sent2", *_ENDINGS, *(["label"] if labelled else [])]
    faults = RowFaults(str(path), errors)
    table = read_columns(path, columns, encoding, delimiter, quoting=quoting, faults=faults)
    prompts, starts, *rest = table.columns
    labels = None
    if labelled:
        labels = [_read_label(table, row, label, faults) for row, label in enumerate(rest.pop())]
    endings = [
        [f"{start} {ending}".strip() for ending in row]
        for start, *row in zip(starts, *rest, strict=True)
    ]
    return faults.leave_out(dataclasses.replace(table, x=(prompts, endings), y=labels))


def _read_label(table, row, label, faults):
    if label in ("0", "1", "2", "3"):
        return int(label)
    got = f"the label is {label[:20]!r}, wanted 0, 1, 2 or 3"
    faults.add(table, row, "another label", got, "Correct it.")
    return None
