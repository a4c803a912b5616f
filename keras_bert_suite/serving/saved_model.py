"""A task as a SavedModel that takes text."""

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import keras

from keras_bert_suite.checkpoints import atomic_directory
from keras_bert_suite.preprocessing import SegmentPacker


def export_saved_model(task, path, inputs=("text",)):
    """Writes a SavedModel with the tokenizer inside its graph.

    Its signature `serving_default` takes string tensors (B,), named as in `inputs`, and
    returns `probabilities` float32 (B, C), `label_ids` int32 (B,) and `labels` string
    (B,). Each batch is padded to its own longest row. `assets.extra/label_names.txt` names
    the classes, a line each, in the order of the probabilities.

    A task of the JAX or PyTorch backend is rebuilt under TensorFlow in a process of its
    own, from a temporary `.keras` file; its layers must be ones that process can import.

    Args:
        task: `TextClassifier` with a preprocessor.
        path: directory to write, whose name is an integer where TensorFlow Serving is
            to find it, as in "saved_models/sentiment/1". It appears when it is complete.
        inputs: names of the text inputs: one, or two for a classifier of pairs.

    Raises:
        FileExistsError: if `path` exists; it is left as it is.
        ImportError: if TensorFlow or tensorflow-text is not installed.
        ValueError: if the task has no preprocessor, or `inputs` are not names.
        RuntimeError: if the process that rebuilds the task fails, with what it said.

    Example:
    ```python
    export_saved_model(classifier, "saved_models/sentiment/1")
    model = tf.saved_model.load("saved_models/sentiment/1")  # needs `import tensorflow_text`
    model.signatures["serving_default"](text=tf.constant(["a gripping, funny film"]))
    ```
    """
    inputs = _check_inputs(inputs)
    if task.preprocessor is None:
        raise ValueError(
            f"{task.name} has no preprocessor, so there is nothing to turn texts into token ids "
            "with. Set `task.preprocessor` to a SegmentPacker before the export."
        )
    for module in ("tensorflow", "tensorflow_text"):
        if importlib.util.find_spec(module) is None:
            raise ImportError(
                f"A SavedModel is written by TensorFlow, and {module} is not installed: "
                "pip install tensorflow tensorflow-text"
            )
    with atomic_directory(path) as directory:
        if keras.config.backend() == "tensorflow":
            write_saved_model(task, directory, inputs)
        else:
            _write_in_tensorflow_process(task, directory, inputs)


def write_saved_model(task, directory, inputs):
    """Writes the files, under the TensorFlow backend."""
    import tensorflow as tf

    module = tf.Module()
    # What the graph reads must hang on what is saved.
    module.weights = [weight.value for weight in task.weights]
    serve = tf.function(
        _classify_texts(task),
        input_signature=[tf.TensorSpec([None], tf.string, name=name) for name in inputs],
        autograph=False,
    )
    tf.saved_model.save(module, str(directory), signatures={"serving_default": serve})
    extra = Path(directory) / "assets.extra"
    extra.mkdir()
    (extra / "label_names.txt").write_text("\n".join(task.label_names), encoding="utf-8")


def _classify_texts(task):
    import tensorflow as tf

    preprocess = task.preprocess_samples
    if isinstance(task.preprocessor, SegmentPacker):
        config = {**task.preprocessor.get_config(), "padding_lengths": None}
        preprocess = SegmentPacker.from_config({**config, "tokenizer": task.preprocessor.tokenizer})
    returns_probabilities = task.activation is keras.activations.softmax

    def classify(*texts):
        outputs = task(preprocess(*texts), training=False)
        probabilities = outputs if returns_probabilities else tf.nn.softmax(outputs)
        label_ids = tf.argmax(probabilities, axis=-1, output_type=tf.int32)
        return {
            "probabilities": probabilities,
            "label_ids": label_ids,
            "labels": tf.gather(tf.constant(task.label_names), label_ids),
        }

    return classify


def _write_in_tensorflow_process(task, directory, inputs):
    with tempfile.TemporaryDirectory() as scratch:
        file = os.path.join(scratch, "task.keras")
        task.save(file)
        process = subprocess.run(
            [
                sys.executable,
                "-m",
                "keras_bert_suite.serving.export_process",
                file,
                str(directory),
                *inputs,
            ],
            env={
                **os.environ,
                "KERAS_BACKEND": "tensorflow",
                # The memory of an accelerator belongs to the process that trains.
                "CUDA_VISIBLE_DEVICES": "-1",
                "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
            },
            capture_output=True,
            text=True,
        )
    if process.returncode:
        raise RuntimeError(
            f"The export under TensorFlow failed. The process said:\n{process.stderr[-2000:]}"
        )


def _check_inputs(inputs):
    inputs = (inputs,) if isinstance(inputs, str) else tuple(inputs)
    if not inputs or len(set(inputs)) != len(inputs) or not all(map(str.isidentifier, inputs)):
        raise ValueError(
            "inputs must be different names, such as ('text',) or ('premise', 'hypothesis'), "
            f"got {inputs}."
        )
    return inputs
