"""Draws which classes are taken for which."""

from collections.abc import Sequence
from typing import Any

from keras_bert_suite.annotations import PathLike
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
        ValueError: if a label is none of `label_names`, naming its row.
        ImportError: without matplotlib.
    """
    from keras_bert_suite.pictures import draw_confusions

    if label_names is None:
        label_names = list_label_names([*map(str, labels), *map(str, predicted)])
        labels, predicted = list(map(str, labels)), list(map(str, predicted))
    classes = Classes(list(label_names))
    true_ids, found_ids = (
        classes.encode(classes.read(list(column))) for column in (labels, predicted)
    )
    counts = count_confusions(true_ids, found_ids, len(classes.names))
    return draw_confusions(counts, classes.names, path)
