"""Draws which classes are taken for which."""

from collections.abc import Sequence
from typing import Any

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.data.arrays import as_array
from keras_bert_suite.data.readers.table_labels import list_label_names
from keras_bert_suite.heads.base.label_scores import count_confusions
from keras_bert_suite.heads.base.labels import Classes


def plot_confusion_matrix(
    labels: Sequence[str] | Sequence[int],
    predicted: Sequence[str] | Sequence[int],
    label_names: Sequence[str] | None = None,
    path: PathLike | None = None,
) -> Any:
    """Draws how often each class was predicted as each other class.

    Use it to see which classes a classifier takes for which:

    ```python
    predicted = classifier.predict_labels(dev.x)
    kbs.plot_confusion_matrix(dev.y, predicted, classifier.label_names)
    ```

    Args:
        labels, predicted: N names or ids of classes, the true and the predicted ones.
        label_names: list of C str, the classes in the order of their ids; None for the names in
            both columns, sorted.
        path: str or path of a PNG file to write, or None.

    Returns:
        `matplotlib.figure.Figure`, which a notebook shows. A row is a true class, and has the
        number of its texts and their share in the class. The title has the accuracy.

    Raises:
        ValueError: if a label is none of `label_names`, naming its row; if a column is no list of
            a class for each row, as probabilities are none; if the columns differ in length; or,
            without `label_names`, if one column has ids and the other names.
        ImportError: without matplotlib.
    """
    from keras_bert_suite.pictures import draw_confusions

    labels, predicted = _read_classes("labels", labels), _read_classes("predicted", predicted)
    if len(labels) != len(predicted) or not labels:
        raise ValueError(
            "labels and predicted must have the same number of rows, at least one, got "
            f"{len(labels)} and {len(predicted)}."
        )
    if label_names is None:
        _check_same_form(labels, predicted)
        labels, predicted = list(map(str, labels)), list(map(str, predicted))
        label_names = list_label_names([*labels, *predicted])
    elif isinstance(label_names, str):
        raise ValueError(
            f"label_names must be a list of strings, got {label_names!r}. The file to write is "
            "path=."
        )
    classes = Classes(list(label_names))
    true_ids, found_ids = (classes.encode(classes.read(column)) for column in (labels, predicted))
    counts = count_confusions(true_ids, found_ids, len(classes.names))
    return draw_confusions(counts, classes.names, path)


def _read_classes(name, column):
    """list of names and ids of classes."""
    array = as_array(column)
    if array.ndim != 1:
        raise ValueError(
            f"{name} must be a list with a class for each row, got an array of shape {array.shape}."
            " Names of classes are the answers of predict_labels."
        )
    classes = array.tolist()
    for row, label in enumerate(classes):
        if not isinstance(label, (str, int)):
            raise ValueError(
                f"{name} must be names or ids of classes, got {label!r} "
                f"({type(label).__name__}) at row {row}."
            )
    return classes


def _check_same_form(*columns):
    """Raises ValueError if a column has ids and the other has names, which are no numbers."""
    ids = [all(not isinstance(label, str) for label in column) for column in columns]
    texts = [label for column in columns for label in column if isinstance(label, str)]
    names = [text for text in texts if not text.isdecimal()]
    if any(ids) and names:
        raise ValueError(
            f"A column has ids of classes, and the other has names, such as {names[0]!r}. Pass "
            "label_names, such as `classifier.label_names`."
        )
