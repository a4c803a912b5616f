"""Answers texts by a SavedModel, with TensorFlow and without Keras.

The command line loads this file where Keras must not be imported.
"""

import importlib.util
import json
import math
import os
import re
import sys
from pathlib import Path

from keras_bert_suite.files import checksums
from keras_bert_suite.serving.served_adapters import find_served

#: The inputs of a model that was trained on pairs whose columns had no names.
UNNAMED = ["text_a", "text_b"]


class SavedModelRuntime:
    """The SavedModel that takes texts, in a folder of `export_saved_model` or `export_adapters`.

    Columns are a dict of input name -> N texts. If the model has one input, or was trained on pairs
    whose columns had no names, the names may be any. A file without its checksum is a ValueError.

    Args:
        path: str or path of the folder.
        adapter: str, which of several adapters answers; None in a SavedModel of one task.

    Attributes:
        description: dict, the description by `export_saved_model`.
        label_names: list of str, or None.
        problem_type: str, of a classifier, or None.
        input_names: list of str, the inputs of the signature in the order of the alphabet.
    """

    def __init__(self, path, adapter=None):
        self.description = said = read_description(path, adapter)
        self.label_names, self.problem_type = said.get("labels"), said.get("problem_type")
        checksums.check_checksums(path)
        self._path = path
        # A program may import Keras later. PyTorch 2.14 of PyPI crashes if it comes after
        # TensorFlow.
        if os.environ.get("KERAS_BACKEND") == "torch" and not _is_without_keras():
            import torch  # noqa: F401
        import tensorflow as tf

        load_text_ops(tf)
        # The signature does not keep the model's variables alive; this does.
        self._model = tf.saved_model.load(str(path))
        self._signature = self._model.signatures[adapter or "serving_default"]
        self.input_names = sorted(self._signature.structured_input_signature[1])

    def find_entities(self, columns, batch_size=32):
        """For each text a list of dicts of `label`, `text`, `start`, `end` and `score`."""
        texts = next(iter(columns.values()))
        outputs = ("labels", "starts", "ends", "scores", "num_entities")
        rows = []
        for batch in self.answer(columns, batch_size):
            rows += zip(*(batch[name].tolist() for name in outputs), strict=True)
        return [
            [
                {
                    "label": label.decode(),
                    "text": text[start:end],
                    "start": start,
                    "end": end,
                    "score": score,
                }
                for label, start, end, score in list(zip(*columns, strict=True))[:number]
            ]
            for text, (*columns, number) in zip(texts, rows, strict=True)
        ]

    def answer(self, columns, batch_size):
        """Yields the outputs for each batch, a dict of arrays. Other columns are an error."""
        has_no_names = self.input_names == UNNAMED and not columns.keys() & set(UNNAMED)
        if len(columns) == len(self.input_names) and (len(columns) == 1 or has_no_names):
            columns = dict(zip(self.input_names, columns.values(), strict=True))
        if sorted(columns) != self.input_names:
            raise ValueError(
                f"The inputs of {self._path} are {', '.join(self.input_names)}, got "
                f"{', '.join(columns)}. Name the columns like the inputs."
            )
        for start in range(0, len(columns[self.input_names[0]]), batch_size):
            batch = {
                name: self._to_tensor(name, column[start : start + batch_size])
                for name, column in columns.items()
            }
            yield {name: value.numpy() for name, value in self._signature(**batch).items()}

    def _to_tensor(self, name, column):
        """The values of a batch, in which None is a missing number or a missing category."""
        import tensorflow as tf

        spec = self._signature.structured_input_signature[1][name]
        missing = "" if spec.dtype == tf.string else math.nan
        values = [missing if value is None else value for value in column]
        return tf.constant(replace_half_characters(values) if missing == "" else values, spec.dtype)


def _is_without_keras():
    return "keras" in sys.modules and sys.modules["keras"] is None


def read_description(path, adapter=None):
    """dict, the description of the task, or of that of an adapter, in a SavedModel's `task.json`.

    Raises:
        ValueError: if the SavedModel is of another origin, or has other adapters.
    """
    file = find_served(path, adapter) / "task.json"
    said = json.loads(file.read_bytes()) if file.is_file() else {}
    if "head" not in said:
        raise ValueError(
            f"{file} does not say what {path} answers. Wanted the whole folder that keras-bert "
            "export or export_saved_model writes. Export the task again, or ask a SavedModel of "
            "another origin by its signatures, which saved_model_cli lists."
        )
    return said


def replace_half_characters(texts):
    """Replaces half characters, which JSON and command lines may hold, and UTF-8 may not.

    `texts` is a str, or lists and dicts of them of any depth. Other values stay as they are.
    """
    if isinstance(texts, list):
        return [replace_half_characters(text) for text in texts]
    if isinstance(texts, dict):
        return {name: replace_half_characters(text) for name, text in texts.items()}
    if not isinstance(texts, str):
        return texts
    return re.sub("[\ud800-\udfff]", "\ufffd", texts)


def load_text_ops(tf):
    """Loads the ops of TensorFlow Text without its Python package, which imports Keras."""
    package = importlib.util.find_spec("tensorflow_text")
    if package is None:
        raise ModuleNotFoundError(
            "The model's tokenizer needs the ops of TensorFlow Text: pip install tensorflow-text"
        )
    folder = Path(package.submodule_search_locations[0]) / "python" / "ops"
    for library in sorted(folder.glob("_*.so")):
        tf.load_op_library(str(library))
