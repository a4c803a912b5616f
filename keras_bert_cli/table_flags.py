"""The flags that say which columns of a table are read, and how; and the texts of a file."""

from absl import flags

from keras_bert_suite.data.readers import read_table
from keras_bert_suite.data.readers.columns import read_columns
from keras_bert_suite.data.readers.records import JSON_LINES, PARQUET
from keras_bert_suite.data.readers.text_files import read_lines

from .command_flags import UsageError

#: The flags that say what is where in a table, without its encoding.
TABLE_FLAGS = ("text_column", "text_pair_column", "label_column", "header", "delimiter")

#: The ends of the names of tables.
TABLES = (".tsv", ".csv", *JSON_LINES, *PARQUET)

#: Names of delimiters that are hard to type in a shell.
DELIMITERS = {"tab": "\t", "\\t": "\t"}


def define_table_flags(values, text_column="text", label_column="label"):
    """Defines the flags of a command that reads tables.

    Args:
        values: `absl.flags.FlagValues`.
        text_column, label_column: str, the defaults, or None if there is none.
    """

    def text(name, default, explanation):
        flags.DEFINE_string(name, default, explanation, flag_values=values)

    ask_model = "" if text_column else " Default: the name of the texts in the model, or text."
    text("text_column", text_column, f"Column of the texts.{ask_model}")
    text("text_pair_column", None, "Column of second texts, for pairs.")
    if label_column is not None:
        text("label_column", label_column, "Column of the labels.")
    explanation = (
        "Whether the first line names the columns. With --noheader a column is named by its "
        "number: --text_column 1 is the first."
    )
    flags.DEFINE_boolean("header", True, explanation, flag_values=values)
    explanation = (
        "The separator of fields: one character, or the word tab. Default: a tab in a .tsv file, "
        "a comma in a .csv file."
    )
    text("delimiter", None, explanation)
    text("encoding", "utf-8", "Encoding of the files.")


def choose_text_columns(values, input_names=None):
    """The columns of the texts, from the flags, or else from the names of the model's inputs.

    Args:
        values: the flags.
        input_names: names of the model's texts, or None if they are unknown.

    Returns:
        dict, name of a flag -> the column.

    Raises:
        UsageError: if there is a second column without a first.
    """
    names = [values.text_column, values.text_pair_column]
    if not any(names):
        names = list(input_names or ["text"])
    elif not values.text_column:
        raise UsageError("--text_pair_column needs --text_column, the column of the first texts")
    flags_of_texts = ("text_column", "text_pair_column")
    return {flag: name for flag, name in zip(flags_of_texts, names, strict=False) if name}


def read_examples(values, path, text_columns, label_flag=None, **arguments):
    """Reads a labelled table, as the flags say.

    Args:
        values: the flags.
        path: str.
        text_columns: dict, name of a flag -> the column of texts, a name or a number.
        label_flag: str, the flag with the column of labels, or None for a table without labels.
        **arguments: of `read_table`, about the labels.

    Returns:
        `Examples`.

    Raises:
        UsageError: as `table_arguments`.
        ValueError: as `read_table`.
    """
    label_column = values[label_flag].value if label_flag else None
    columns = {**text_columns, **({label_flag: label_column} if label_flag else {})}
    arguments = {**arguments, **table_arguments(values, columns)}
    return read_table(path, list(text_columns.values()), label_column, **arguments)


def table_arguments(values, columns):
    """dict of the arguments of `read_table` and `read_columns` that flags set.

    Args:
        values: the flags.
        columns: dict, name of a flag -> the column that will be read, a name or a number.

    Raises:
        UsageError: if two flags name the same column, or with --noheader a flag does not name a
            number.
    """
    for flag, column in columns.items():
        if not values.header and not column.isdecimal():
            raise UsageError(
                f"with --noheader a column is named by its number, 1 for the first, got "
                f"--{flag}={column}"
            )
    if len(set(columns.values())) != len(columns):
        flags_given = " and ".join(f"--{flag}={column}" for flag, column in columns.items())
        raise UsageError(f"wanted different columns, got {flags_given}")
    return {
        "encoding": values.encoding,
        "delimiter": find_delimiter(values),
        "header": values.header,
    }


def find_delimiter(values):
    """The character that --delimiter names, or None."""
    return DELIMITERS.get(values.delimiter, values.delimiter)


def is_table(values, flag):
    """Whether the file of a flag has columns."""
    return values.delimiter is not None or values[flag].value.lower().endswith(TABLES)


def check_table_flags(values, flag):
    """Raises a `UsageError` if a flag of tables is given with a file that is not a table."""
    if is_table(values, flag):
        return
    if values.text_column or values.text_pair_column or not values.header:
        raise UsageError(
            f"--text_column, --text_pair_column and --noheader need an --{flag} ending in "
            f"{', '.join(TABLES)}, or --delimiter, got {values[flag].value!r}"
        )


def read_text_columns(values, flag, input_names=None):
    """Reads the texts of a file.

    Args:
        values: the flags, with those of `define_table_flags`.
        flag: str, the name of the flag with the path: a table, see `TABLES`, a file with a text in
            each line, or "-".
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
        names, arguments = list(columns.values()), table_arguments(values, columns)
        read = read_columns(values[flag].value, names, **arguments)
        return dict(zip(names, read.columns, strict=True))
    return {"text": read_lines(values[flag].value, values.encoding)}


def read_texts(values, flag):
    """Reads single texts. Arguments: as for `read_text_columns`. Returns a list of str."""
    if values.text_pair_column:
        raise UsageError("--text_pair_column has no meaning here: each text has a vector")
    (texts,) = read_text_columns(values, flag).values()
    return texts


def to_field(text):
    """A text as a field of a .tsv file, with spaces in place of its tabs and line ends."""
    return text.translate(dict.fromkeys(map(ord, "\t\r\n"), " "))
