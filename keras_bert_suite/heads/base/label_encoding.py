"""Turns labels into class ids, and targets of a regression into numbers, and checks them."""

import numpy as np

from keras_bert_suite.data.readers.records import is_missing
from keras_bert_suite.heads.base.label_tensors import encode_tensor
from keras_bert_suite.tokenizers.text_inputs import is_tf_tensor


def order_label_columns(labels, label_names):
    """Puts the columns of a DataFrame of labels into the order of the label names.

    Other labels are returned unchanged, as is a DataFrame of one column, or with the label names
    "0", "1" and so on. Other columns than the label names are an error.
    """
    columns = list(getattr(labels, "columns", ()))
    are_names = len(columns) > 1 and all(isinstance(column, str) for column in columns)
    numbers = [str(number) for number in range(len(label_names))]
    if not are_names or (list(label_names) == numbers and len(columns) == len(label_names)):
        return labels
    if sorted(columns) != sorted(label_names):
        raise ValueError(
            f"The columns of a DataFrame of labels must be {list_names(label_names)}, got "
            f"{list_names(columns)}. labels.to_numpy() reads them in their order."
        )
    return labels[list(label_names)].to_numpy()


def encode_labels(labels, label_names):
    """Turns label names into class ids, and checks that ids are in range.

    >>> encode_labels(["no", "yes", "no"], ["no", "yes"])
    array([0, 1, 0], dtype=int32)

    Args:
        labels: B label names or B class ids, as a list, an array or a TensorFlow
            tensor; or one-hot or soft labels (B, C), numbers in [0, 1].
        label_names: list of C names, in the order of the classes.

    Returns:
        int32 (B,), or for one-hot or soft labels float32 (B, C). A NumPy array, or a tensor for a
        tensor, in whose graph a wrong label raises `tf.errors.InvalidArgumentError`.
    """
    if is_tf_tensor(labels):
        is_matrix = labels.shape.rank == 2 and labels.shape[1] != 1
        kind = ("float32", (None, len(label_names))) if is_matrix else ("int32", (None,))
        # TensorFlow keeps the function. A list that Keras tracks would bring its task along.
        names = list(label_names)
        return encode_tensor(lambda array: encode_labels(array, names), labels, *kind)
    if hasattr(labels, "detach"):
        labels = labels.detach().cpu()
    labels = np.asarray(labels)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        return _check_soft_labels(labels, label_names)
    if labels.dtype.kind in "OUST":
        return _encode_names(labels, label_names)
    check_one_reading(np.unique(labels), label_names)
    ids = np.nan_to_num(labels, nan=-1).astype("int32")
    wrong = np.flatnonzero((ids != labels) | (ids < 0) | (ids >= len(label_names)))
    if len(wrong):
        remedy = "Correct it, or build the task with more classes."
        if labels[wrong[0]] == -1:
            remedy = f"If -1 stands for no label, leave out its {(labels == -1).sum()} rows."
        raise ValueError(
            f"Label {labels[wrong[0]]} at row {wrong[0]} is not a whole number in "
            f"[0, {len(label_names)}). {remedy}"
        )
    return ids


def encode_targets(labels, num_targets):
    """Turns the targets of a regression, N numbers or N rows of T, into float32 (N, T).

    >>> encode_targets([4.5, 0], 1).tolist()
    [[4.5], [0.0]]

    A number that is not finite is an error. A tensor of TensorFlow gives a tensor, in whose graph
    the error is `tf.errors.InvalidArgumentError`.
    """
    if is_tf_tensor(labels):
        shape = (None, num_targets)
        return encode_tensor(lambda x: encode_targets(x, num_targets), labels, "float32", shape)
    labels = np.asarray(labels)
    if labels.dtype.kind not in "biuf":
        for row, label in enumerate(labels.tolist()):
            if not isinstance(label, (int, float, np.number)):
                raise ValueError(
                    f"The targets of a regression must be numbers, got {str(label)[:40]!r} "
                    f"({type(label).__name__}) at row {row}."
                )
        labels = labels.astype("float64")
    if labels.ndim == 1 and (num_targets == 1 or not len(labels)):
        labels = labels.reshape(-1, num_targets)
    if labels.ndim != 2 or labels.shape[1] != num_targets:
        raise ValueError(
            f"The regression has {num_targets} targets, so its labels must have the shape "
            f"(N, {num_targets}), got {labels.shape}."
        )
    wrong = np.argwhere(~np.isfinite(labels))
    if len(wrong):
        row, column = wrong[0]
        raise ValueError(
            f"The targets of a regression must be finite numbers, got {labels[row, column]} at row "
            f"{row}. Correct the row, or leave it out."
        )
    return labels.astype("float32")


def encode_tags(rows, label_names):
    """Turns the tags of words into label ids: object array (N,) of lists -> of int32 arrays."""
    id_of = number_labels(label_names)
    encoded = np.empty(len(rows), dtype=object)
    for row, tags in enumerate(rows):
        ids = [find_label(tag, id_of, row, word) for word, tag in enumerate(tags)]
        encoded[row] = np.array(ids, "int32")
    return encoded


def check_one_reading(labels, label_names):
    """Raises a ValueError if a number may be the id of one class, and the name of another.

    >>> check_one_reading([0, 1], ["0", "1"])
    """
    names = list(label_names)
    for label in labels:
        name = str(int(label)) if np.isfinite(label) and label == int(label) else None
        if name not in names or names.index(name) == label:
            continue
        by_id = repr(names[int(label)]) if 0 <= label < len(names) else "no class"
        raise ValueError(
            f"The label {name} may be the class with the name {name!r}, or the class with the id "
            f"{name}, which is {by_id}: the label_names are {list_names(names)}. Write names as "
            "strings, list(map(str, labels)); or ids from 0 with num_classes, without label_names."
        )


def number_labels(label_names):
    """dict of label name -> label id, and of label id -> label id, unless the id is also a name."""
    id_of = {name: i for i, name in enumerate(label_names)}
    ids = range(len(label_names))
    id_of.update({i: i for i in ids if id_of.get(str(i), i) == i})
    return id_of


def find_label(label, id_of, row, word=None):
    """int, the id of a label name, str or bytes, or of a label id.

    Raises:
        ValueError: if `id_of`, a dict from `number_labels`, lacks the label. It names the place.
    """
    try:
        return id_of[label.decode("utf-8", "replace") if isinstance(label, bytes) else label]
    except (KeyError, TypeError):  # A list, for example, cannot be the key of a dict.
        if isinstance(label, (int, np.integer)):
            check_one_reading([label], [name for name in id_of if isinstance(name, str)])
        place = f"row {row}" if word is None else f"row {row}, word {word}"
        names = [name for name in id_of if isinstance(name, str)]
        raise ValueError(
            f"Label {repr(label)[:40]} at {place} is not one of the labels {list_names(names)}, "
            "nor a label id. Correct it, or build the task with `label_names` that include it."
        ) from None


def check_token_labels(labels, label_names):
    """Checks label ids of packed tokens (N, L). A negative id marks a token without a label."""
    labels = np.asarray(labels)
    are_integers = labels.ndim == 2 and labels.dtype.kind in "iu"
    if not are_integers or labels.max(initial=0) >= len(label_names):
        raise ValueError(
            "The labels of packed arrays must be integers (N, L), for each token a label id in "
            f"[0, {len(label_names)}), or -100 for no label, got {labels.dtype} of shape "
            f"{labels.shape}: {str(labels)[:200]}."
        )
    return labels.astype("int32")


def weigh_token_labels(labels, sample_weight=None):
    """Replaces negative label ids (N, L) by 0, and gives their tokens the weight 0.

    The weights are (N,) of rows, (N, L) of tokens, or None. Returns labels and float32 weights,
    both (N, L).
    """
    weights = (labels >= 0).astype("float32")
    if sample_weight is not None:
        weights *= np.reshape(sample_weight, (len(labels), -1))
    return np.maximum(labels, 0), weights


def _encode_names(labels, label_names):
    id_of = {name: i for i, name in enumerate(label_names)}
    names = [name.decode() if isinstance(name, bytes) else str(name) for name in labels]
    missing = [row for row in range(len(labels)) if is_missing(labels[row])]
    if missing and labels.dtype == object:
        raise ValueError(
            f"The label at row {missing[0]} is missing, {labels[missing[0]]!r}. Give the row a "
            "label, or leave it out."
        )
    ids = [find_label(name, id_of, row) for row, name in enumerate(names)]
    return np.array(ids, dtype="int32")


def _check_soft_labels(labels, label_names):
    if labels.dtype.kind not in "biuf" or labels.shape[1:] != (len(label_names),):
        raise ValueError(
            "Labels of classes must be an id or a name for each row, or one-hot or soft labels of "
            f"the shape (N, {len(label_names)}), got {labels.dtype} of shape {labels.shape}. Sets "
            "of labels need problem_type='multi_label_classification'."
        )
    return check_matrix(labels)


def check_matrix(labels):
    """Checks that all numbers of a matrix of labels (N, C) are in [0, 1]; float32."""
    wrong = np.argwhere(~((labels >= 0) & (labels <= 1)))
    if len(wrong):
        row, column = wrong[0]
        raise ValueError(
            f"A matrix of labels has numbers in [0, 1], got {labels[row, column]} at row {row}, "
            f"class {column}. Correct the row, or pass label names instead of numbers."
        )
    return labels.astype("float32")


def list_names(label_names):
    """The first twenty names, as text for a message."""
    names = list(map(repr, label_names[:20]))
    return ", ".join(names + ["..."] * (len(label_names) > 20))
