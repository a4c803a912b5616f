"""The flags that say which columns of a table are read, and how; and the texts of a file."""

import csv

from keras_bert_suite.data.readers import read_table
from keras_bert_suite.data.readers.columns import read_columns
from keras_bert_suite.data.readers.records import JSON, JSON_LINES, PARQUET
from keras_bert_suite.data.readers.row_faults import ROW_ERRORS
from keras_bert_suite.data.readers.text_files import read_lines

from .command_flags import UsageError

#: The flags for the columns of a table, without its encoding.
TABLE_FLAGS = (
    *("text_column", "text_pair_column", "label_column", "header", "delimiter", "quoting"),
    "row_errors",
)

#: The ends of the names of tables.
TABLES = (".tsv", ".csv", *JSON_LINES, *JSON, *PARQUET)

#: The ends of the names of files that have no text in each line. Their readers name a remedy.
NO_TEXTS = (".xlsx", ".xls")

#: Names of delimiters that are hard to type in a shell.
DELIMITERS = {"tab": "\t", "\\t": "\t", "\\x01": "\x01", "\\x02": "\x02"}

#: Values of --quoting.
QUOTING = {"minimal": csv.QUOTE_MINIMAL, "none": csv.QUOTE_NONE, None: None}


def define_table_flags(flags, text_column=None, label_column=None, pairs=True):
    """Defines the flags of a command that reads tables, with defaults of two columns.

    `pairs` says whether a row may have two texts.
    """
    ask_model = "" if text_column else " Default: the name of the texts in the model, or text."
    flags.text("text_column", text_column, f"Column of the texts.{ask_model}")
    if pairs:
        flags.text("text_pair_column", None, "Column of second texts, for pairs.")
    if label_column is not None:
        flags.text("label_column", label_column, "Column of the labels.")
        explanation = (
            "Labels of rows without a label, such as - in SNLI, joined by commas. These rows are "
            "left out."
        )
        flags.list("left_out_labels", None, explanation)
        explanation = (
            "What becomes of rows of a table that cannot be read, such as those without a text or "
            "a label, and of sentences with such words: raise, one error names them; skip leaves "
            "them out, and counts them."
        )
        flags.choice("row_errors", "raise", ROW_ERRORS, explanation)
    explanation = (
        "Whether the first line names the columns. With --noheader a column is named by its "
        "number: --text_column 1 is the first."
    )
    flags.switch("header", True, explanation)
    explanation = (
        "The separator of fields: one character, the word tab, \\x01 or \\x02. Default: a tab in a "
        ".tsv file, a comma in a .csv file."
    )
    flags.text("delimiter", None, explanation)
    explanation = (
        "minimal: fields with a delimiter, a quote or a line end are in quotes, as programs write "
        "them. none: quotes have no meaning. Default: none in a .tsv file, minimal in a .csv file."
    )
    flags.choice("quoting", None, ("minimal", "none"), explanation)
    flags.text("encoding", "utf-8", "Encoding of the files.")


def choose_text_columns(values, input_names=None):
    """list of the columns of the texts, from the flags or else from the model's texts."""
    second = getattr(values, "text_pair_column", None)
    if second and not values.text_column:
        raise UsageError("--text_pair_column needs --text_column, the column of the first texts")
    return list(filter(None, (values.text_column, second))) or list(input_names or ["text"])


def read_examples(values, path, text_columns, label_column=None, **arguments):
    """Reads the `Examples` of a table as the flags say. Arguments: see `read_table`."""
    arguments.update(table_arguments(values), errors=values.row_errors)
    examples = read_table(path, text_columns, label_column, **arguments)
    report_left_out(examples)
    return examples


def report_left_out(examples):
    """Says how many rows a reader has left out, and why."""
    for reason, lines in examples.left_out.items():
        print(
            f"{examples.path}: {len(lines)} rows with {reason} are left out, first line {lines[0]}"
        )


def table_arguments(values):
    """dict of the arguments of `read_table` and `read_columns` that flags set."""
    return {
        "encoding": values.encoding,
        "delimiter": find_delimiter(values),
        "header": values.header,
        "quoting": QUOTING[values.quoting],
    }


def find_delimiter(values):
    """The character that --delimiter names, or None."""
    return DELIMITERS.get(values.delimiter, values.delimiter)


def is_table(values, flag):
    """Whether the file of a flag has columns."""
    return values.delimiter is not None or getattr(values, flag).lower().endswith(TABLES)


def check_table_flags(values, flag):
    """Raises a `UsageError` if a flag of tables is given with a file that is not a table."""
    if is_table(values, flag):
        return
    for name in ("text_column", "text_pair_column", "header", "quoting"):
        if name in values.given:
            raise UsageError(
                f"--{name} needs an --{flag} ending in {', '.join(TABLES)}, or --delimiter, got "
                f"{getattr(values, flag)!r}"
            )


def read_text_columns(values, flag, input_names=None):
    """Reads the texts of the file of a flag: dict of column name -> list of at least one str.

    The file is a table, see `TABLES`, a file with a text in each line, or "-". The names of the
    model's texts are the columns if no flag names them.
    """
    check_table_flags(values, flag)
    path = getattr(values, flag)
    if not is_table(values, flag) and not path.lower().endswith(NO_TEXTS):
        return {"text": read_lines(path, values.encoding)}
    names = choose_text_columns(values, input_names)
    read = read_columns(path, names, **table_arguments(values))
    return dict(zip(names, read.columns, strict=False))


def to_field(text):
    """A text as a field of a .tsv file, with spaces in place of its tabs and line ends."""
    return text.translate(dict.fromkeys(map(ord, "\t\r\n"), " "))
