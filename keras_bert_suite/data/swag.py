"""Reads files of SWAG: the beginning of a scene, and four endings. One ending is right.

This module needs only the standard library.

Source: Zellers et al., 2018 (https://arxiv.org/abs/1808.05326).
"""

import dataclasses

_ENDINGS = [f"ending{i}" for i in range(4)]


@dataclasses.dataclass(frozen=True)
class SwagRows:
    """The N rows of a file.

    Attributes:
        path: str, the file.
        prompts: list of N str, the first sentences.
        endings: list of N lists of 4 str. Each is the beginning of the second sentence and one of
            its endings.
        labels: list of N int, the index of the right ending; None if the file was read without
            labels.
    """

    path: str
    prompts: list
    endings: list
    labels: list | None

    def __len__(self):
        return len(self.prompts)


def read_swag(path, labelled=True):
    """Reads a CSV file of SWAG: columns `sent1`, `sent2`, `ending0` to `ending3`, and `label`.

    Args:
        path: str or path.
        labelled: bool, whether to read the labels. The test file has none.

    Returns:
        `SwagRows`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: as `read_table`, or if a label is not 0, 1, 2 or 3, naming the line.
    """
    from keras_bert_suite.data.tables import read_table

    return make_rows(read_table(path, list_columns(labelled)), labelled)


def list_columns(labelled):
    """The names of the columns that `make_rows` needs."""
    return ["sent1", "sent2", *_ENDINGS, *(["label"] if labelled else [])]


def make_rows(table, labelled):
    """Makes `SwagRows` of the columns of a `Table`.

    Args, Raises: as for `read_swag`.
    """
    columns = table.columns
    labels = None
    if labelled:
        labels = [_read_label(table, row, label) for row, label in enumerate(columns["label"])]
    return SwagRows(
        table.path,
        columns["sent1"],
        [
            [f"{start} {ending}".strip() for ending in row]
            for start, *row in zip(
                columns["sent2"], *(columns[name] for name in _ENDINGS), strict=True
            )
        ],
        labels,
    )


def _read_label(table, row, label):
    if label not in ("0", "1", "2", "3"):
        raise ValueError(f"{table.locate(row)}: the label is {label[:20]!r}, wanted 0, 1, 2 or 3.")
    return int(label)
