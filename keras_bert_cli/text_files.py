"""The texts of a file: lines, or a column of a table."""

from .command_flags import UsageError
from .standalone import tables
from .table_flags import choose_text_columns, read_columns


def read_texts(values, path):
    """Reads the texts of a file.

    Args:
        values: the flags, with those of `define_table_flags`.
        path: str, a `.tsv` or `.csv` file, a file with a text in each line, or "-".

    Returns:
        list of at least one str.

    Raises:
        UsageError: if a flag of tables comes with a file of lines.
        ValueError: if the file is empty, or has no such column.
    """
    if values.text_pair_column:
        raise UsageError("--text_pair_column has no meaning here: each text has a vector")
    if values.delimiter is not None or path.lower().endswith((".tsv", ".csv")):
        (texts,) = read_columns(values, path, choose_text_columns(values)).columns.values()
        return texts
    if values.text_column:
        raise UsageError(f"--text_column is for tables, and {path} has a text in each line")
    return tables.read_lines(path, values.encoding)
