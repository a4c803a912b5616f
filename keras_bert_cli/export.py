"""Export a classifier as a SavedModel that takes strings, for TensorFlow Serving.

The tokenizer is inside the graph. TensorFlow is needed, whatever backend the model
was trained with.

Example:
  keras-bert export --model sentiment.keras --output saved_models/sentiment/1
  keras-bert export --model pairs.keras --output saved_models/pairs/1 \\
      --inputs premise,hypothesis
"""

from absl import flags

from .outputs import check_export, check_output, write_output
from .saved_tasks import open_classifier

REQUIRED = ("model", "output", "inputs")


def define_flags(values):
    """Defines the flags of this command."""
    explanation = "A .keras file, or the folder of a preset or of a checkpoint with a classifier."
    flags.DEFINE_string("model", None, explanation, flag_values=values)
    explanation = "Folder to write, named like a version: saved_models/sentiment/1."
    flags.DEFINE_string("output", None, explanation, flag_values=values)
    explanation = "Names of the inputs, in the order the model takes the texts in."
    flags.DEFINE_list("inputs", ["text"], explanation, flag_values=values)
    flags.DEFINE_boolean("overwrite", False, "Replace the folder.", flag_values=values)


def run(values):
    """Loads and exports."""
    check_output(values.output, values.overwrite)
    check_export(values.inputs)
    classifier = open_classifier(values.model)

    import keras_bert_suite as kbs

    path = write_output(
        values.output,
        lambda path: kbs.export_saved_model(classifier, path, inputs=tuple(values.inputs)),
        values.overwrite,
    )
    print(f"wrote {path}, with the inputs {', '.join(values.inputs)}")
