"""Writes several tasks on one encoder, each with an adapter, as one SavedModel that takes text."""

import pathlib
import tempfile
from collections.abc import Sequence
from typing import Any

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.argument_checks import check_list, with_article
from keras_bert_suite.files.atomic_directory import atomic_directory
from keras_bert_suite.files.checksums import write_checksums
from keras_bert_suite.heads.base.adapter_folder import join_task
from keras_bert_suite.heads.base.served import serve
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.serving.input_names import choose_input_names
from keras_bert_suite.serving.portable_formats import trace_arrays, write_companions
from keras_bert_suite.serving.saved_model import SEALED_FILES
from keras_bert_suite.serving.served_adapters import name_arrays
from keras_bert_suite.serving.signatures import make_signatures
from keras_bert_suite.serving.task_description import write_description
from keras_bert_suite.serving.tensorflow_process import check_installed, write_under_tensorflow
from keras_bert_suite.serving.versions import version_path


def export_adapters(
    tasks: Sequence[Any], path: PathLike, verbose: str | int = "auto"
) -> pathlib.Path:
    """Writes a SavedModel that serves several tasks by the names of their adapters.

    The encoder is in it once. Each task has a signature with the name of its adapter, which takes
    texts and answers as `serving_default` of `export_saved_model`. `serving_default` is that of the
    first task. There are no warm-up requests.

    A task with a `SegmentPacker` also has a signature NAME_arrays, from its packed arrays to the
    outputs that `export_onnx` writes. `assets.extra/NAME` has the files beside a model of
    `export_onnx`. `open_runtime(path, adapter=NAME)` reads both.

    ```python
    sentiment = kbs.TextClassifier.from_adapter("adapters/sentiment", "path/to/checkpoint")
    topic = kbs.TextClassifier.from_adapter("adapters/topic", sentiment)
    path = kbs.export_adapters([sentiment, topic], "saved_models/reviews")
    kbs.open_runtime(path, adapter="topic").predict_labels(["a dull plot"])
    ```

    Args:
        tasks: list of tasks on one backbone, each with another adapter of its own.
        path: as for `export_saved_model`.
        verbose: as for `export_saved_model`.

    Returns:
        `pathlib.Path` of the version.

    Raises:
        FileExistsError: if the version exists.
        ImportError: if TensorFlow, tensorflow-text or tensorflow-serving-api is not installed.
        ValueError: if `tasks` is no list; if tasks are on several backbones, or have no adapter of
            their own or the same; if a name is one of a signature; or as for `export_saved_model`.
        RuntimeError: if the process that rebuilds the tasks fails, with its last lines.
    """
    check_list("tasks", tasks, "tasks")
    tasks = list(tasks)
    _check_tasks(tasks)
    for task in tasks:
        serve(task).check()
    packages = ("tensorflow", "tensorflow_text", "tensorflow_serving")
    check_installed("a SavedModel", *packages)
    path = version_path(path)
    with tempfile.TemporaryDirectory() as scratch, atomic_directory(path) as directory:
        folders = [str(pathlib.Path(scratch, str(i))) for i, _ in enumerate(tasks)]
        for task, folder in zip(tasks, folders, strict=True):
            task.save_adapter(folder)
        write_under_tensorflow(
            write_adapters,
            tasks[0],
            directory,
            verbose,
            names=[task.adapter for task in tasks],
            folders=folders,
            inputs=[list(choose_input_names(task, None)) for task in tasks],
        )
        write_checksums(directory, (*SEALED_FILES, "assets.extra/*/*"))
    return path


def write_adapters(
    task: Any,
    directory: pathlib.Path,
    names: Sequence[str],
    folders: Sequence[str],
    inputs: Sequence[Sequence[str]],
) -> None:
    """Writes the files of `export_adapters`, under the TensorFlow backend.

    Args:
        task: a task on the backbone with all adapters.
        directory: where the files are written.
        names: the adapters.
        folders: of the adapters, with their heads.
        inputs: the names of the texts of each task.
    """
    import tensorflow as tf

    module, signatures = tf.Module(), {}
    tasks = [join_task(task, folder, name) for folder, name in zip(folders, names, strict=True)]
    # The variables that the graph reads must be attributes of the saved module.
    weights = {id(weight): weight.value for each in tasks for weight in each.weights}
    module.weights = list(weights.values())
    module.preprocessors = [each.preprocessor for each in tasks]
    for each, name, own in zip(tasks, names, inputs, strict=True):
        signatures[name] = make_signatures(serve(each), own)["serving_default"]
        extra = directory / "assets.extra" / name
        extra.mkdir(parents=True)
        if _takes_arrays(each):
            signatures[name_arrays(name)] = trace_arrays(each)
            write_companions(each, extra)
            continue
        if hasattr(each, "label_names"):
            (extra / "label_names.txt").write_text("\n".join(each.label_names), encoding="utf-8")
        write_description(each, extra)
    signatures["serving_default"] = signatures[names[0]]
    tf.saved_model.save(module, str(directory), signatures=signatures)


def _takes_arrays(task: Any) -> bool:
    served = serve(task)
    packs = isinstance(task.preprocessor, SegmentPacker)
    return packs and served.takes_ids and not served.needs_graph


def _check_tasks(tasks: list[Any]) -> None:
    if not tasks:
        raise ValueError("export_adapters needs at least one task, got an empty list.")
    for task in tasks:
        if getattr(task, "adapter", None) is None:
            raise ValueError(
                f"Each task needs an adapter, got {with_article(task)} without. Call `adapt`, or "
                "export it by `export_saved_model`."
            )
        if not getattr(task, "has_own_adapter", False):
            raise ValueError(
                f"Each task needs an adapter of its own, got {with_article(task)} that computes "
                f"with {task.adapter!r}, which was added to its encoder last. Call `adapt`."
            )
        if task.backbone is not tasks[0].backbone:
            raise ValueError(
                f"The adapters {tasks[0].adapter!r} and {task.adapter!r} are on two backbones. "
                "Build the second task by from_adapter(path, first_task)."
            )
    names = [task.adapter for task in tasks]
    signatures = ["serving_default", *names, *map(name_arrays, names)]
    if len({*signatures}) < len(signatures):
        raise ValueError(
            f"Each adapter is a signature, got the names {', '.join(names)}. Pass another `name` "
            "to from_adapter."
        )
