"""Label texts with a fine-tuned classifier.

Reads a text a line, or a column of a .tsv or .csv file, and writes the label of each
and its probability in the same order. As jsonl each line also has the text and the
probability of every label.

Example:
  echo "a gripping, funny film" | keras-bert predict --model sentiment.keras
  keras-bert predict --model sentiment.keras --input test.tsv --text_column sentence \\
      --format jsonl --output test.jsonl
"""

import json
import sys
from pathlib import Path

from absl import flags

from .ask_saved_model import load_saved_model
from .command_flags import UsageError
from .outputs import check_output, write_output
from .saved_tasks import is_saved_model, open_classifier, predict_probabilities

REQUIRED = ("model",)


def define_flags(values):
    """Defines the flags of this command."""

    def text(name, default, explanation):
        flags.DEFINE_string(name, default, explanation, flag_values=values)

    text("model", None, "A .keras file, the folder of a preset or checkpoint, or a SavedModel.")
    text("input", "-", "File of one text a line, .tsv or .csv file with named columns, or -.")
    text("text_column", None, "Column of the texts of a .tsv or .csv file. Default: text.")
    text("text_pair_column", None, "Column of second texts, for pairs.")
    text("encoding", "utf-8", "Encoding of the input.")
    text("output", "-", "File to write, or -.")
    formats = ("tsv", "jsonl")
    flags.DEFINE_enum("format", "tsv", formats, "What a line looks like.", flag_values=values)
    flags.DEFINE_boolean("overwrite", False, "Replace the file.", flag_values=values)
    flags.DEFINE_integer("batch_size", 32, "Texts in a step.", 1, flag_values=values)


def run(values):
    """Reads, predicts, writes."""
    if values.output != "-":
        check_output(values.output, values.overwrite)
    columns = read_texts(values)
    lines = list(format_lines(values.format, columns, *predict(values, columns)))
    if values.output == "-":
        sys.stdout.writelines(lines)
        return

    def write(path):
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(lines)

    write_output(values.output, write, values.overwrite)


def read_texts(values):
    """dict, column name -> texts."""
    from keras_bert_suite.data.tables import read_lines, read_table

    if values.input.lower().endswith((".tsv", ".csv")):
        columns = [values.text_column or "text", values.text_pair_column]
        return read_table(values.input, list(filter(None, columns)), values.encoding).columns
    if values.text_column or values.text_pair_column:
        raise UsageError(
            f"--text_column and --text_pair_column need an --input ending in .tsv or .csv, got "
            f"{values.input!r}"
        )
    return {"text": read_lines(values.input, values.encoding)}


def predict(values, columns):
    """(N labels, probabilities (N, C), C label names or None if only the labels are known)."""
    if is_saved_model(values.model):
        answers = load_saved_model(values.model)(columns, values.batch_size)
        return *answers, read_label_names(values.model)
    classifier = open_classifier(values.model)
    texts = tuple(columns.values())
    texts = texts if len(texts) > 1 else texts[0]
    probabilities = predict_probabilities(classifier, texts, values.batch_size)
    labels = [classifier.label_names[i] for i in probabilities.argmax(axis=-1)]
    return labels, probabilities, classifier.label_names


def read_label_names(saved_model):
    """The class names that `export_saved_model` leaves beside the graph, or None."""
    file = Path(saved_model) / "assets.extra" / "label_names.txt"
    return file.read_text(encoding="utf-8").splitlines() if file.is_file() else None


def format_lines(style, columns, labels, probabilities, label_names):
    """Yields the lines of the output."""
    if style == "tsv":
        yield "label\tprobability\n"
    for row, label in enumerate(labels):
        rounded = [round(float(p), 6) for p in probabilities[row]]
        if style == "tsv":
            yield f"{label}\t{max(rounded):.6f}\n"
            continue
        answer = {name: texts[row] for name, texts in columns.items()}
        answer.update(label=label, probability=max(rounded))
        answer["probabilities"] = (
            dict(zip(label_names, rounded, strict=True)) if label_names else rounded
        )
        yield json.dumps(answer, ensure_ascii=False) + "\n"
