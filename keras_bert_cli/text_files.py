"""The texts of a file: lines, or columns of a table."""

from keras_bert_suite.data import tables

from .command_flags import UsageError
from .table_flags import choose_text_columns, read_columns


def is_table(values, flag):
    """Whether the file of a flag has columns."""
    return values.delimiter is not None or values[flag].value.lower().endswith((".tsv", ".csv"))


def check_table_flags(values, flag):
    """Raises a `UsageError` if a flag of tables is given with a file that is not a table."""
    if is_table(values, flag):
        return
    if values.text_column or values.text_pair_column or not values.header:
        raise UsageError(
            f"--text_column, --text_pair_column and --noheader need an --{flag} ending in .tsv or "
            f".csv, or --delimiter, got {values[flag].value!r}"
        )


def read_text_columns(values, flag, input_names=None):
    """Reads the texts of a file.

    Args:
        values: the flags, with those of `define_table_flags`.
        flag: str, the name of the flag with the path: a `.tsv` or `.csv` file, a file with a text
            in each line, or "-".
        input_names: names of the model's texts, which are the columns if no flag names them.

    Returns:
        dict, column name -> list of at least one str.

    Raises:
        UsageError: if a flag of tables comes with a file of lines.
        ValueError: if the file is empty, or has no such column.
    """
    check_table_flags(values, flag)
    if is_table(values, flag):
        columns = choose_text_columns(values, input_names)
        return read_columns(values, values[flag].value, columns).columns
    return {"text": tables.read_lines(values[flag].value, values.encoding)}


def read_texts(values, flag):
    """Reads single texts. Arguments: as for `read_text_columns`. Returns a list of str."""
    if values.text_pair_column:
        raise UsageError("--text_pair_column has no meaning here: each text has a vector")
    (texts,) = read_text_columns(values, flag).values()
    return texts


def to_field(text):
    """A text as a field of a .tsv file, with spaces in place of its tabs and line ends."""
    return text.translate(dict.fromkeys(map(ord, "\t\r\n"), " "))
