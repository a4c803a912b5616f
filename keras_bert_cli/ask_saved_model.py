"""Runs a SavedModel on texts, with TensorFlow and without Keras, as a server does.

Run as a script it prints a table:

    python -P ask_saved_model.py saved_models/sentiment/1 "a gripping, funny film"
"""

import sys

from keras_bert_cli.log_noise import hide_start_lines  # first, so that Keras is not imported
from keras_bert_suite.serving.saved_model_runtime import (  # noqa: F401
    SavedModelRuntime,
    load_text_ops,
    read_description,
)


class SavedModel(SavedModelRuntime):
    """A `SavedModelRuntime` that is opened without the lines by which TensorFlow starts."""

    def __init__(self, path, adapter=None):
        with hide_start_lines():
            super().__init__(path, adapter)


def print_answers(texts, labels, probabilities):
    """Prints a table: text, label, a bar and the probability of the label, a float."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False)
    block = "#" if console.options.ascii_only else "█"
    table = Table("text", "label", "probability", padding=(0, 1))
    for text, label, probability in zip(texts, labels, probabilities, strict=True):
        table.add_row(text, label, f"{block * round(20 * probability):<20} {probability:6.1%}")
    console.print(table)


def main(path, *texts):
    """Answers in a process that has no Keras: importing it would fail."""
    sys.modules["keras"] = None
    model = SavedModel(path)
    (outputs,) = model.answer({"text": list(texts)}, batch_size=len(texts))
    assert not any(name.startswith("keras.") for name in sys.modules)
    labels = [label.decode() for label in outputs["labels"]]
    rows = zip(outputs["probabilities"].tolist(), outputs["label_ids"], strict=True)
    print_answers(texts, labels, [row[i] for row, i in rows])


if __name__ == "__main__":
    main(*sys.argv[1:])
