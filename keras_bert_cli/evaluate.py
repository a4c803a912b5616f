"""Evaluate a model on labelled texts, sentences with tagged words, or questions.

Prints the scores of the model's task: for classes the accuracy, a table of precision, recall and F1
of every class, and the confusion matrix. --json writes the scores to a file. --png draws those of
classes, labels, entities and numbers: a confusion matrix, the F1 of each label or type of entity,
or predicted over true numbers.

Example:
  keras-bert evaluate --model sentiment.keras --input test.tsv --text_column sentence \\
      --json scores.json --png confusion_matrix.png

  # Precision, recall and F1 of the entities, of every type and of all.
  keras-bert evaluate --model tagger.keras --input test.txt

  # Exact match and F1 of the answers to questions.
  keras-bert evaluate --model answerer.keras --input dev-v2.0.json

  # ROUGE and exact match of titles that a model writes.
  keras-bert evaluate --model titles.keras --input test.tsv --target_column title
"""

from .command_flags import REQUIRED, UsageError
from .kinds import define_kind_flags, define_task_flag, find_kind
from .model_paths import check_model
from .outputs import check_output
from .table_flags import define_table_flags


def define_flags(flags):
    """Defines the flags of this command."""
    explanation = "A .keras file, the folder of a preset or checkpoint, or a SavedModel."
    flags.path("model", REQUIRED, explanation)
    explanation = (
        "Labelled texts (.tsv, .csv or --delimiter), tagged sentences, or questions (.json)."
    )
    flags.path("input", REQUIRED, explanation)
    define_task_flag(flags)
    define_table_flags(flags, text_column=None)
    define_kind_flags(flags)
    flags.path("json", None, "File for the scores and the confusion matrix, as JSON.")
    flags.path("png", None, "File for a picture of the scores; needs matplotlib.")
    flags.switch("overwrite", False, "Replace these files.")
    flags.integer("batch_size", 32, "Batch size, in texts.", 1)


def run(values):
    """Checks the flags, and lets the kind of the task evaluate."""
    if values.png and (values.png == values.json or not values.png.lower().endswith(".png")):
        raise UsageError(f"--png needs a name of its own that ends in .png, got {values.png}")
    for path in filter(None, (values.json, values.png)):
        check_output(path, values.overwrite)
    check_model(values.model)
    find_kind(values).evaluate()
