"""Label texts, find entities, answer questions, choose endings or write texts.

Reads one text from each line, or a column of a .tsv or .csv file. Writes the label of each text and
its probability, in the same order. With --format jsonl each line also has the text and the
probability of every label.

Example:
  echo "a gripping, funny film" | keras-bert predict --model sentiment.keras
  keras-bert predict --model sentiment.keras --input test.tsv --text_column sentence \\
      --format jsonl --output test.jsonl

  # A model that labels words: the entities of each text with their offsets, as jsonl.
  keras-bert predict --model tagger.keras --input texts.txt

  # A model that answers questions: one question, or all questions of a table or a SQuAD file.
  keras-bert predict --model answerer.keras --input article.txt --question "Who wrote it?"
  keras-bert predict --model answerer.keras --input dev-v2.0.json --output answers.jsonl

  # A model that writes texts: a title for each article.
  keras-bert predict --model titles.keras --input articles.tsv --text_column article
"""

import sys

from absl import flags

from keras_bert_suite.data.readers import read_squad
from keras_bert_suite.data.readers.text_files import read_lines

from .command_flags import UsageError, define_path
from .kinds import define_task_flag, find_kind
from .model_paths import check_model, find_input_names, is_saved_model
from .outputs import check_output, write_output
from .table_flags import check_table_flags, define_table_flags, is_table, read_text_columns

REQUIRED = ("model",)


def define_flags(values):
    """Defines the flags of this command."""
    define_path(
        values,
        "model",
        None,
        "A .keras file, the folder of a preset or checkpoint, or a SavedModel.",
    )
    define_task_flag(values)
    explanation = (
        "File with a text in each line, a table (.tsv, .csv, .jsonl, .parquet or --delimiter), "
        "questions in SQuAD's format (.json), or - for standard input."
    )
    define_path(values, "input", "-", explanation)
    explanation = (
        "A question about the whole text of the input, for a model that answers questions."
    )
    flags.DEFINE_string("question", None, explanation, flag_values=values)
    define_table_flags(values, text_column=None, label_column=None)
    define_path(values, "output", "-", "File to write, or - for standard output.")
    formats = ("tsv", "jsonl")
    explanation = "Format of a line. Default: tsv; jsonl for entities and answers."
    flags.DEFINE_enum("format", None, formats, explanation, flag_values=values)
    flags.DEFINE_boolean("overwrite", False, "Replace the file.", flag_values=values)
    flags.DEFINE_integer("batch_size", 32, "Batch size, in texts.", 1, flag_values=values)


def run(values):
    """Reads, predicts, writes."""
    check_table_flags(values, "input")
    if values.output != "-":
        check_output(values.output, values.overwrite)
    check_model(values.model)
    kind = find_kind(values)
    served = is_saved_model(values.model)
    names = kind.saved_model.input_names if served else find_input_names(values.model)
    columns = kind.read_texts() or read_texts(values, names)
    # Half characters of JSON or of the command line are written as JSON escapes them.
    lines = [line.encode("utf-8", "backslashreplace").decode() for line in kind.predict(columns)]
    if values.output == "-":
        sys.stdout.writelines(lines)
        return

    def write(path):
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(lines)

    write_output(values.output, write, values.overwrite)


def read_texts(values, input_names):
    """dict, column name -> texts. `input_names` are those of `read_text_columns`."""
    if values.question is not None:
        if is_table(values, "input"):
            raise UsageError("--question is about one text, and the --input is a table")
        text = "\n".join(read_lines(values.input, values.encoding))
        return {"question": [values.question], "context": [text]}
    if values.input.lower().endswith(".json"):
        read = read_squad(values.input, labelled=False)
        questions, contexts = read.x
        return {"id": read.ids, "question": questions, "context": contexts}
    return read_text_columns(values, "input", input_names)
