"""Show what a model is: its task, labels, encoder, data, scores and versions.

A preset or an export has a model card, which is shown as it is. Of a .keras file, or of a
checkpoint with a head, the same table is made.

Example:
  keras-bert show saved_models/sentiment/1
  keras-bert show --model sentiment.keras
"""

from keras_bert_suite.files.model_card import format_table, read_card

from .model_paths import check_model, is_runtime_folder, is_saved_model
from .saved_tasks import open_task


def define_flags(flags):
    """Defines the flags of this command."""
    explanation = "A .keras file, or the folder of a preset, of an export, or of a checkpoint."
    flags.path_or_flag("model", explanation)


def run(values):
    """Prints the card."""
    check_model(values.model)
    card = read_card(values.model)
    if card is None:
        card = describe_model(values.model)
    print(card.strip())


def describe_model(path):
    """The table of a card, of a model without a card."""
    if is_saved_model(path) or is_runtime_folder(path):
        raise FileNotFoundError(f"{path} has no model card, README.md. Export the model again.")
    from keras_bert_suite.heads.base.card_facts import list_facts

    return format_table(list_facts(open_task(path)))
