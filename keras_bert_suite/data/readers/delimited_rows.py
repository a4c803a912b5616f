"""Splits the text of a table into rows of fields, with quotes around fields or without."""

import csv
import dataclasses
import io
import warnings
from pathlib import Path

from keras_bert_suite.data.readers.text_files import split_lines

#: Characters between fields that no text has, so that fields need no quotes. The last two are from
#: Hive and from some Chinese corpora.
PLAIN_MARKS = ("\t", "\x01", "\x02")

#: The end of a file's name -> the character between its fields.
_DELIMITERS = {".tsv": "\t", ".csv": ","}

#: Ends of names of files that are tables if the first line has one of `PLAIN_MARKS`.
_TEXT_FILES = (".txt", ".tab")

QUOTES_REMEDY = "quoting=csv.QUOTE_MINIMAL, --quoting minimal"


@dataclasses.dataclass(frozen=True)
class TableForm:
    """How a table is split into rows and fields.

    Attributes:
        delimiter: str, the character between fields.
        has_quotes: bool, whether fields with this character, a quote or a line end are in quotes,
            as in RFC 4180. Otherwise a quote is a character like others.
        guesses_quotes: bool, whether `has_quotes` follows from the delimiter, and nobody said it.
    """

    delimiter: str
    has_quotes: bool
    guesses_quotes: bool

    @classmethod
    def find(cls, path, text, delimiter, quoting):
        """The form of a file. The arguments are its text and some of `read_columns`.

        Raises:
            ValueError: if the name of the file does not say the delimiter, or an argument is wrong.
        """
        delimiter = _find_delimiter(path, text, delimiter)
        if quoting is None:
            return cls(delimiter, delimiter not in PLAIN_MARKS, True)
        if isinstance(quoting, bool) or quoting not in (csv.QUOTE_MINIMAL, csv.QUOTE_NONE):
            raise ValueError(
                f"quoting must be csv.QUOTE_MINIMAL, csv.QUOTE_NONE or None, got {quoting!r}."
            )
        return cls(delimiter, quoting == csv.QUOTE_MINIMAL, False)

    def split(self, text, path):
        """Yields (line number, list of str) for each row of a text."""
        if self.has_quotes:
            yield from self._split_quoted(text, path)
            return
        for line_number, line in enumerate(split_lines(text), 1):
            yield line_number, line.split(self.delimiter)

    def _split_quoted(self, text, path):
        if text.count("\r\r\n") == text.count("\n"):
            # Python's csv writes such lines on Windows into a file opened without newline="".
            text = text.replace("\r\r\n", "\n")
        former_limit = csv.field_size_limit(max(csv.field_size_limit(), len(text)))
        stream = io.StringIO(text, newline="")
        reader = csv.reader(stream, delimiter=self.delimiter, strict=True)
        line_number = 1
        try:
            for fields in reader:
                yield line_number, fields or [""]
                line_number = reader.line_num + 1
        except csv.Error as error:
            raise ValueError(
                f"{path}, line {line_number}: {error}. A field with a quote or a "
                f"{self.delimiter!r} is put in quotes, and its quotes are doubled. "
                f"{self._advise_of_delimiter(text)} If quotes have no meaning, pass "
                "quoting=csv.QUOTE_NONE, --quoting none."
            ) from None
        finally:
            csv.field_size_limit(former_limit)

    def _advise_of_delimiter(self, text):
        first = text.partition("\n")[0]
        if mark := find_other_mark(first, self.delimiter):
            return f"The fields seem to have {mark!r} between them: {name_delimiter(mark, first)}."
        return "If another character is between the fields, name it as the delimiter."

    def explain_width(self, fields):
        """The likely cause if a row has another number of fields than the first line."""
        if self.has_quotes or not any(field.count('"') % 2 for field in fields):
            return ""
        return (
            f" If quotes hold a {self.delimiter!r} or a line end within a field, pass "
            f"{QUOTES_REMEDY}."
        )

    def warn_of_quotes(self, path, columns, lines):
        """Warns if quotes around fields are read as a part of them.

        The fields have doubled quotes in them, or all fields of a column are in quotes.
        """
        if self.has_quotes or not self.guesses_quotes:
            return
        for column in columns:
            quoted = [row for row, field in enumerate(column) if field[:1] == '"']
            quoted = [row for row in quoted if _is_quoted(column[row])]
            doubled = [row for row in quoted if '"' in column[row][1:-1]]
            found = quoted if len(quoted) == len(column) else doubled
            if found:
                warnings.warn(
                    f"{path}, line {lines[found[0]]}: quotes are read as a part of the field "
                    f"{column[found[0]][:40]!r}, and of {len(found)} fields of {len(column)}. If "
                    f"they were put around the fields by a program, pass {QUOTES_REMEDY}. If they "
                    "belong to the texts, pass quoting=csv.QUOTE_NONE, --quoting none.",
                    stacklevel=6,
                )
                return


def find_other_mark(line, delimiter):
    """A character that seems to separate the fields of a line without delimiters, or None."""
    if delimiter in line:
        return None
    return next((mark for mark in (*PLAIN_MARKS, *";,|") if mark in line), None)


def name_delimiter(mark, line):
    """The arguments that read a line with a mark between its fields, as text for a message."""
    is_quoted = mark in PLAIN_MARKS and line.startswith('"')
    return f"pass delimiter={mark!r}{f', and {QUOTES_REMEDY}' if is_quoted else ''}"


def has_table_name(path):
    """Whether the end of a file's name says that it may be a table of delimited fields."""
    return Path(path).suffix.lower() in {*_DELIMITERS, *_TEXT_FILES}


def _find_delimiter(path, text, delimiter):
    if delimiter is not None:
        if len(delimiter) != 1 or delimiter in '"\r\n':
            raise ValueError(f"The delimiter must be one character, no quote, got {delimiter!r}.")
        return delimiter
    suffix = Path(path).suffix.lower()
    if suffix in _DELIMITERS:
        return _DELIMITERS[suffix]
    if suffix in _TEXT_FILES:
        first = text.partition("\n")[0]
        if mark := next((mark for mark in PLAIN_MARKS if mark in first), None):
            return mark
    remedy = r"Name its delimiter, such as delimiter='\t', --delimiter '\t'."
    if suffix in (".xlsx", ".xls"):
        remedy = "Save it as CSV, or pass the rows of pandas.read_excel to read_rows."
    raise ValueError(
        f"{path} is neither a .tsv nor a .csv file, nor a .txt file with a tab in its first "
        f"line. {remedy}"
    )


def _is_quoted(field):
    """Whether a field is in quotes, and each quote in it is doubled."""
    return (
        len(field) > 1 and field[0] == field[-1] == '"' and '"' not in field[1:-1].replace('""', "")
    )
