"""Label texts with a fine-tuned classifier, or find the entities in them.

Reads one text from each line, or a column of a .tsv or .csv file. Writes the label of each text and
its probability, in the same order. With --format jsonl each line also has the text and the
probability of every label.

Example:
  echo "a gripping, funny film" | keras-bert predict --model sentiment.keras
  keras-bert predict --model sentiment.keras --input test.tsv --text_column sentence \\
      --format jsonl --output test.jsonl

  # A model that labels words: the entities of each text, with their places, as jsonl.
  keras-bert predict --model tagger.keras --input texts.txt
"""

import os
import sys

from absl import flags

from .ask_saved_model import SavedModel
from .command_flags import UsageError, define_path
from .kinds import define_task_flag, find_kind, find_served_kind
from .model_paths import check_model, find_input_names, is_saved_model
from .outputs import check_output, write_output
from .standalone import tables
from .table_flags import choose_text_columns, define_table_flags, read_columns

REQUIRED = ("model",)


def define_flags(values):
    """Defines the flags of this command."""

    def path(name, default, explanation):
        define_path(values, name, default, explanation)

    path("model", None, "A .keras file, the folder of a preset or checkpoint, or a SavedModel.")
    define_task_flag(values)
    explanation = (
        "File with a text in each line, or table (.tsv, .csv or --delimiter), or - for standard "
        "input."
    )
    path("input", "-", explanation)
    define_table_flags(values, text_column=None, label_column=None)
    path("output", "-", "File to write, or - for standard output.")
    formats = ("tsv", "jsonl")
    explanation = "Format of a line. Default: tsv, and jsonl for entities."
    flags.DEFINE_enum("format", None, formats, explanation, flag_values=values)
    flags.DEFINE_boolean("overwrite", False, "Replace the file.", flag_values=values)
    flags.DEFINE_integer("batch_size", 32, "Texts in a step.", 1, flag_values=values)


def run(values):
    """Reads, predicts, writes."""
    check_table_flags(values)
    if values.output != "-":
        if values.input != "-" and _are_same(values.input, values.output):
            raise UsageError(f"--output is the --input, {values.input}, which would be lost")
        check_output(values.output, values.overwrite)
    check_model(values.model)
    columns = read_texts(values)
    lines = list(answer(values, columns))
    if values.output == "-":
        sys.stdout.writelines(lines)
        return

    def write(path):
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(lines)

    write_output(values.output, write, values.overwrite)


def answer(values, columns):
    """The lines of the output.

    Args:
        values: the flags.
        columns: dict, column name -> texts.
    """
    if not is_saved_model(values.model):
        return find_kind(values).predict(columns)
    saved_model = SavedModel(values.model)
    return find_served_kind(values, saved_model).predict(columns, saved_model)


def _are_same(first, second):
    """Whether two paths are the same file."""
    return all(map(os.path.exists, (first, second))) and os.path.samefile(first, second)


def check_table_flags(values):
    """Raises a `UsageError` if a flag of tables is given with an input that is not a table."""
    if is_table(values):
        return
    if values.text_column or values.text_pair_column or not values.header:
        raise UsageError(
            "--text_column, --text_pair_column and --noheader need an --input ending in .tsv or "
            f".csv, or --delimiter, got {values.input!r}"
        )


def read_texts(values):
    """dict, column name -> texts."""
    if not is_table(values):
        return {"text": tables.read_lines(values.input, values.encoding)}
    columns = choose_text_columns(values, find_input_names(values.model))
    return read_columns(values, values.input, columns).columns


def is_table(values):
    """Whether the input has columns."""
    return values.delimiter is not None or values.input.lower().endswith((".tsv", ".csv"))
