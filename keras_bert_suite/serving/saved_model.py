"""Writes a task as a SavedModel that takes text."""

import pathlib
from collections.abc import Sequence

import keras_hub

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.files.atomic_directory import atomic_directory
from keras_bert_suite.files.checksums import write_checksums
from keras_bert_suite.heads.base.ensemble import Ensemble, members_of
from keras_bert_suite.heads.base.served import serve
from keras_bert_suite.serving.input_names import choose_input_names
from keras_bert_suite.serving.server_files import write_batching_parameters, write_warmup_requests
from keras_bert_suite.serving.signatures import make_signatures
from keras_bert_suite.serving.task_description import write_description
from keras_bert_suite.serving.tensorflow_process import check_installed, write_under_tensorflow
from keras_bert_suite.serving.versions import version_path
from keras_bert_suite.serving.weight_precision import bring_to_precision, check_weight_precision

#: The files that decide the answers. Batching parameters may be tuned, and warm-up requests added.
SEALED_FILES = (
    "saved_model.pb",
    "variables/*",
    "assets/*",
    "assets.extra/*.txt",
    "assets.extra/*.json",
)


def export_saved_model(
    task: keras_hub.models.Task | Ensemble,
    path: PathLike,
    inputs: Sequence[str] | None = None,
    max_batch_size: int = 32,
    model_name: str | None = None,
    precision: str | None = None,
    verbose: str | int = "auto",
) -> pathlib.Path:
    """Writes a SavedModel with the tokenizer inside its graph, for TensorFlow Serving.

    `make_signatures` describes its signatures. `serving_default` takes texts, `serve_ids` token
    ids, and `serve_examples` `tf.train.Example`s; `serving_default` of a task on frames takes
    vectors, and is its only signature. They return the answers of the task: classes,
    sets of labels, numbers, entities, answers to questions, guesses for masks, or vectors. `embed`
    takes texts and returns the outputs of the encoder. Each batch is padded to its longest row.
    Beside the graph there are:

    - `assets.extra/label_names.txt`, if the task has labels: their names, one in each line, in the
      order of the probabilities;
    - `assets.extra/task.json`: the task, its labels and thresholds, see `describe_task`;
    - `assets.extra/tf_serving_warmup_requests`: requests that a server answers when it loads the
      version;
    - `batching_params.pbtxt`: how a server joins requests, if it is started with batching;
    - `SHA256SUMS`: checksums of the graph, the variables, the vocabulary and the labels. TensorFlow
      does not read it, and checks the variables only. `sha256sum -c SHA256SUMS` checks a copy.

    The version is written to a temporary folder, flushed to disk and then renamed, so a server sees
    it only when it is complete.

    Under JAX and PyTorch the task is saved to a temporary `.keras` file, and rebuilt under
    TensorFlow in a new process, which must be able to import its layers.

    Args:
        task: a task with a preprocessor, ours or KerasHub's. A `Pretrainer` has no answers to
            serve; `MaskedLM.from_preset` reads its preset. Or an `Ensemble`: its export holds all
            its tasks, and answers with their mean.
        path: the folder of the model, such as "saved_models/sentiment", for its next version; or
            the folder of a version, whose name is a whole number, such as
            "saved_models/sentiment/1".
        inputs: names of the text inputs, one for each text of a row. Defaults to the task's
            `input_names`, or to "text" if it has none.
        max_batch_size: int, the maximum number of rows in a batch of a server with batching.
        model_name: str, the name of the model in the warm-up requests. Defaults to the name of
            the model's folder.
        precision: "float32", "bfloat16" or "float16", of the weights and of the products of
            matrices. None keeps the precision of the task. The two others halve the file and the
            memory of a float32 task. The answers stay float32, with errors of about a hundredth in
            bfloat16, and of a thousandth in float16. bfloat16 is for accelerators, and for
            processors with AVX512-BF16 or AMX; float16 for GPUs. Other processors emulate them,
            and are slower.
        verbose: 0 for no lines that say, under JAX and PyTorch, that the new process goes on.

    Returns:
        `pathlib.Path` of the version.

    Raises:
        FileExistsError: if the version exists. It is not changed.
        ImportError: if TensorFlow, tensorflow-text or tensorflow-serving-api is not
            installed.
        ValueError: if the task has no preprocessor or no answers to serve, `inputs` are not
            names or not as many as the texts of a row, `max_batch_size` is not positive, there is
            no such precision, or the task was quantized and `precision` is not None.
        RuntimeError: if the process that rebuilds the task fails, with its last lines.

    Example:
    ```python
    path = export_saved_model(classifier, "saved_models/sentiment")
    model = tf.saved_model.load(str(path))  # needs `import tensorflow_text`
    model.signatures["serving_default"](text=tf.constant(["a gripping, funny film"]))
    ```
    """
    served = serve(task)
    inputs = choose_input_names(task, inputs)
    served.check()
    check_weight_precision(task, precision)
    packages = ("tensorflow", "tensorflow_text", "tensorflow_serving")
    check_installed("a SavedModel", *packages)
    check_integer("max_batch_size", max_batch_size, at_least=1)
    path = version_path(path)
    with atomic_directory(path) as directory:
        write_under_tensorflow(
            write_saved_model,
            task,
            directory,
            verbose,
            inputs=inputs,
            max_batch_size=max_batch_size,
            model_name=model_name or path.absolute().parent.name,
            precision=precision,
        )
        write_checksums(directory, SEALED_FILES)
    return path


def write_saved_model(
    task: keras_hub.models.Task,
    directory: pathlib.Path,
    inputs: Sequence[str],
    max_batch_size: int,
    model_name: str,
    precision: str | None,
) -> None:
    """Writes the files of `export_saved_model`, under the TensorFlow backend."""
    import tensorflow as tf

    task = bring_to_precision(task, precision)
    module = tf.Module()
    # The variables that the graph reads must be attributes of the saved module.
    tasks = members_of(task)
    layers = getattr(task, "joined_layers", {}).values()
    module.weights = [weight.value for part in (*tasks, *layers) for weight in part.weights]
    # So must the tables of KerasHub's tokenizers.
    module.preprocessors = [part.preprocessor for part in tasks]
    served = serve(task)
    signatures = make_signatures(served, inputs)
    tf.saved_model.save(module, str(directory), signatures=signatures)
    extra = directory / "assets.extra"
    extra.mkdir()
    if hasattr(task, "label_names"):
        (extra / "label_names.txt").write_text("\n".join(task.label_names), encoding="utf-8")
    write_description(task, extra)
    write_warmup_requests(served, extra, inputs, signatures, model_name)
    write_batching_parameters(directory, max_batch_size)
