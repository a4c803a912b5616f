"""Exports tasks, and opens them in all formats."""

from keras_bert_suite.serving import saved_tasks, versions
from keras_bert_suite.serving.saved_tasks import PRETRAINERS, find_task  # noqa: F401

from .outputs import write_output


def open_task(path, wanted=None, base=None):
    """Loads a task; see `open_task` of `keras_bert_suite.serving`."""
    _register_classes()
    return saved_tasks.open_task(path, wanted, base)


def open_embedder(path, base=None):
    """Loads a `TextEmbedder`; see `open_embedder` of `keras_bert_suite.serving`."""
    _register_classes()
    return saved_tasks.open_embedder(path, base)


def _register_classes():
    """Imports the whole package, which registers its classes with Keras."""
    import keras_bert_suite

    return keras_bert_suite.TextClassifier  # See `unopened`.


def export_version(task, path, inputs, overwrite=False, max_batch_size=32, precision=None):
    """Writes a version of a SavedModel, as `export_saved_model` does, and returns its path."""
    from keras_bert_suite.serving import export_saved_model

    path = versions.version_path(path)

    def write(aside):
        name = path.absolute().parent.name
        export_saved_model(task, aside, tuple(inputs), max_batch_size, name, precision)

    return write_output(path, write, overwrite, folder=True)
