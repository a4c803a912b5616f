"""A task as a SavedModel that takes text."""

import pathlib
from collections.abc import Sequence

import keras_hub

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.files.atomic_directory import atomic_directory
from keras_bert_suite.serving.input_names import check_signature_names, choose_input_names
from keras_bert_suite.serving.servable_tasks import check_task
from keras_bert_suite.serving.server_files import write_batching_parameters, write_warmup_requests
from keras_bert_suite.serving.signatures import make_signatures
from keras_bert_suite.serving.tensorflow_process import check_installed, write_under_tensorflow
from keras_bert_suite.serving.versions import version_path


def export_saved_model(
    task: keras_hub.models.Task,
    path: PathLike,
    inputs: Sequence[str] | None = None,
    max_batch_size: int = 32,
    model_name: str | None = None,
) -> pathlib.Path:
    """Writes a SavedModel with the tokenizer inside its graph, for TensorFlow Serving.

    Its signatures are those of `make_signatures`: `serving_default` from texts and
    `serve_ids` from token ids and `serve_examples` from `tf.train.Example`s to classes (of a
    `TokenClassifier` from texts to entities),
    `embed` from texts to vectors. Each batch is padded to its own longest row. Beside the
    graph lie

    - `assets.extra/label_names.txt`: the classes, a line each, in the order of the
      probabilities;
    - `assets.extra/tf_serving_warmup_requests`: what a server asks itself when it loads
      the version;
    - `batching_params.pbtxt`: how it joins requests, if it is started with batching.

    The version appears when it is complete: written aside, flushed to disk, renamed.

    A task of the JAX or PyTorch backend is rebuilt under TensorFlow in a process of its
    own, from a temporary `.keras` file; its layers must be ones that process can import.

    Args:
        task: `TextClassifier` or `TokenClassifier` with a preprocessor, ours or KerasHub's.
        path: the model's folder, as in "saved_models/sentiment", for the next version
            there; or a version's, whose name is a whole number, as in
            "saved_models/sentiment/1".
        inputs: names of the text inputs, one for each text of a row. Defaults to the names
            that the task has learned, its `input_names`, or to "text".
        max_batch_size: int, the most rows a server with batching puts in a batch.
        model_name: str, what the warm-up requests call the model. Defaults to the name of
            the model's folder.

    Returns:
        `pathlib.Path` of the version.

    Raises:
        FileExistsError: if the version exists; it is left as it is.
        ImportError: if TensorFlow, tensorflow-text or tensorflow-serving-api is not
            installed.
        ValueError: if the task has no preprocessor or no answers to serve, `inputs` are not
            names or not as many as the texts of a row, or `max_batch_size` is not positive.
        RuntimeError: if the process that rebuilds the task fails, with what it said.

    Example:
    ```python
    path = export_saved_model(classifier, "saved_models/sentiment")
    model = tf.saved_model.load(str(path))  # needs `import tensorflow_text`
    model.signatures["serving_default"](text=tf.constant(["a gripping, funny film"]))
    ```
    """
    check_task(task)
    inputs = choose_input_names(task, inputs)
    check_export(inputs)
    if max_batch_size < 1:
        raise ValueError(f"max_batch_size must be at least 1, got {max_batch_size}.")
    path = version_path(path)
    with atomic_directory(path) as directory:
        write_under_tensorflow(
            write_saved_model,
            task,
            directory,
            inputs=inputs,
            max_batch_size=max_batch_size,
            model_name=model_name or path.absolute().parent.name,
        )
    return path


def write_saved_model(
    task: keras_hub.models.Task,
    directory: pathlib.Path,
    inputs: Sequence[str],
    max_batch_size: int,
    model_name: str,
) -> None:
    """Writes the files, under the TensorFlow backend."""
    import tensorflow as tf

    module = tf.Module()
    # What the graph reads must hang on what is saved.
    module.weights = [weight.value for weight in task.weights]
    # A tokenizer of KerasHub reads tables.
    module.preprocessor = task.preprocessor
    signatures = make_signatures(task, inputs)
    tf.saved_model.save(module, str(directory), signatures=signatures)
    extra = directory / "assets.extra"
    extra.mkdir()
    (extra / "label_names.txt").write_text("\n".join(task.label_names), encoding="utf-8")
    write_warmup_requests(task, extra, inputs, signatures, model_name)
    write_batching_parameters(directory, max_batch_size)


def check_export(inputs: Sequence[str] = ("text",)) -> tuple[str, ...]:
    """Finds out before hours of training that `export_saved_model` would refuse.

    Args:
        inputs: a name, or several.

    Returns:
        tuple of the names.

    Raises:
        ImportError, ValueError: as `export_saved_model`.
    """
    names = check_signature_names(inputs)
    check_installed(
        "a SavedModel",
        {
            "tensorflow": "tensorflow",
            "tensorflow_text": "tensorflow-text",
            "tensorflow_serving": "tensorflow-serving-api",
        },
    )
    return names
