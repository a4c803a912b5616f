"""Asks a SavedModel about texts, with TensorFlow and without Keras, as a server does.

Run as a script it prints a table:

    python -P ask_saved_model.py saved_models/sentiment/1 "a gripping, funny film"
"""

import importlib.util
import sys
from pathlib import Path


def load_saved_model(path):
    """Loads a SavedModel that takes texts.

    Args:
        path: str or path of a folder that `export_saved_model` wrote.

    Returns:
        function(columns, batch_size=32): for a dict of input name -> N texts, with any
        name if there is but one input, the N labels and the probabilities (N, C).
    """
    import numpy as np
    import tensorflow as tf

    load_text_ops(tf)
    model = tf.saved_model.load(str(path))
    signature = model.signatures["serving_default"]
    if "probabilities" not in signature.structured_outputs:
        raise ValueError(
            f"{path} answers with entities. Ask the model that it was exported from, a .keras file "
            "or a preset."
        )
    input_names = sorted(signature.structured_input_signature[1])

    def ask(columns, batch_size=32):
        if len(columns) == len(input_names) == 1:
            columns = {input_names[0]: next(iter(columns.values()))}
        if sorted(columns) != input_names:
            raise ValueError(
                f"The inputs of {path} are {', '.join(input_names)}, got {', '.join(columns)}. "
                "Name the columns like the inputs."
            )
        labels, probabilities = [], []
        for start in range(0, len(columns[input_names[0]]), batch_size):
            batch = {
                name: tf.constant(texts[start : start + batch_size])
                for name, texts in columns.items()
            }
            outputs = signature(**batch)
            labels += [label.decode() for label in outputs["labels"].numpy()]
            probabilities.append(outputs["probabilities"].numpy())
        # The signature does not keep the model's variables alive; this does.
        assert model is not None
        return labels, np.concatenate(probabilities)

    return ask


def load_text_ops(tf):
    """Loads the ops of TensorFlow Text alone: the package itself imports Keras."""
    package = importlib.util.find_spec("tensorflow_text")
    if package is None:
        raise ModuleNotFoundError(
            "The model's tokenizer needs the ops of TensorFlow Text: pip install tensorflow-text"
        )
    folder = Path(package.submodule_search_locations[0]) / "python" / "ops"
    for library in sorted(folder.glob("_*.so")):
        tf.load_op_library(str(library))


def print_answers(texts, labels, probabilities):
    """Prints a table: text, label, a bar and the probability of the label."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False)
    block = "#" if console.options.ascii_only else "█"
    table = Table("text", "label", "probability", padding=(0, 1))
    for text, label, by_label in zip(texts, labels, probabilities, strict=True):
        probability = float(max(by_label))
        table.add_row(text, label, f"{block * round(20 * probability):<20} {probability:6.1%}")
    console.print(table)


def main(path, *texts):
    """Answers in a process that has no Keras: importing it would fail."""
    sys.modules["keras"] = None
    labels, probabilities = load_saved_model(path)({"text": list(texts)})
    assert not any(name.startswith("keras.") for name in sys.modules)
    print_answers(texts, labels, probabilities)


if __name__ == "__main__":
    main(*sys.argv[1:])
