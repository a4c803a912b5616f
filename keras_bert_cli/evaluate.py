"""Evaluate a classifier on labelled texts, or on sentences with tagged words.

Prints the accuracy, a table of precision, recall and F1 of every class, and the confusion
matrix. Writes them as JSON and as a picture, too.

Example:
  keras-bert evaluate --model sentiment.keras --input test.tsv --text_column sentence \\
      --json scores.json --png confusion_matrix.png

  # Precision, recall and F1 of the entities, of every type and of all.
  keras-bert evaluate --model tagger.keras --input test.txt
"""

import json

from absl import flags

from .command_flags import UsageError, define_path
from .entity_reports import evaluate_entities
from .labelled_tables import check_labels, columns_of, read_examples, shorten_label
from .model_paths import check_model, find_input_names
from .outputs import check_output, write_output
from .predictor import open_predictor
from .table_flags import choose_text_columns, define_table_flags
from .tagged_sentences import define_sentence_flags, define_task_flag, find_data_kind

REQUIRED = ("model", "input")

#: A matrix of more classes is not printed.
MOST_PRINTED_CLASSES = 20


def define_flags(values):
    """Defines the flags of this command."""

    def path(name, explanation):
        define_path(values, name, None, explanation)

    path("model", "A .keras file, the folder of a preset or checkpoint, or a SavedModel.")
    path("input", "Labelled texts: a .tsv or .csv file, or any with --delimiter; or sentences.")
    define_task_flag(values)
    define_table_flags(values, text_column=None)
    define_sentence_flags(values)
    path("json", "File for the scores and the confusion matrix, as JSON.")
    path("png", "File for a picture of the confusion matrix; needs matplotlib.")
    flags.DEFINE_boolean("overwrite", False, "Replace these files.", flag_values=values)
    flags.DEFINE_integer("batch_size", 32, "Texts in a step.", 1, flag_values=values)


def run(values):
    """Reads, predicts, compares, prints, writes."""
    if values.png and (values.png == values.json or not values.png.lower().endswith(".png")):
        raise UsageError(f"--png needs a name of its own that ends in .png, got {values.png}")
    for path in filter(None, (values.json, values.png)):
        check_output(path, values.overwrite)
    if values.png:
        from .plots import plot_confusion_matrix
    check_model(values.model)
    if find_data_kind(values) == "ner":
        evaluate_entities(values)
        return
    text_columns = choose_text_columns(values, find_input_names(values.model))
    table = read_examples(values, values.input, text_columns)

    predictor = open_predictor(values.model)
    labels = columns_of(table)[1]
    if predictor.label_names:
        check_labels(values, table, predictor.label_names, source=values.model)
    texts = {name: table.columns[name] for name in text_columns.values()}
    predicted, _ = predictor.answer(texts, values.batch_size)
    # A SavedModel may not name its labels. A label may then occur in the answers only.
    label_names = predictor.label_names or sorted({*labels, *predicted})

    from .scores import count_confusions, score

    id_of = {name: i for i, name in enumerate(label_names)}
    label_ids, predicted_ids = ([id_of[name] for name in names] for names in (labels, predicted))
    confusions = count_confusions(label_ids, predicted_ids, len(label_names))
    scores = score(confusions, label_names)
    print_scores(scores)
    if values.json:
        content = json.dumps(scores, indent=2, ensure_ascii=False) + "\n"
        path = write_output(
            values.json, lambda path: path.write_text(content, "utf-8"), values.overwrite
        )
        print(f"wrote {path}")
    if values.png:
        path = write_output(
            values.png,
            lambda path: plot_confusion_matrix(label_ids, predicted_ids, label_names, path),
            values.overwrite,
        )
        print(f"wrote {path}")


def print_scores(scores):
    """Prints the scores of `score`."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False)
    console.print(
        f"accuracy {scores['accuracy']:.4f}, macro F1 {scores['macro_f1']:.4f}, "
        f"{scores['rows']} texts"
    )
    table = Table("class", "precision", "recall", "F1", "texts")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, row in scores["classes"].items():
        figures = (f"{row[kind]:.4f}" for kind in ("precision", "recall", "f1"))
        table.add_row(shorten_label(name), *figures, str(row["rows"]))
    console.print(table)

    names = [shorten_label(name) for name in scores["label_names"]]
    if len(names) > MOST_PRINTED_CLASSES:
        console.print(f"The confusion matrix of {len(names)} classes is for --json and --png.")
        return
    matrix = Table("true \\ predicted", *names)
    for column in matrix.columns[1:]:
        column.justify = "right"
    for name, counts in zip(names, scores["confusion_matrix"], strict=True):
        matrix.add_row(name, *map(str, counts))
    console.print(matrix)
