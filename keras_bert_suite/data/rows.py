"""Reads rows in memory, and batches of rows of datasets."""

import dataclasses

import numpy as np

from keras_bert_suite.data.arrays import (
    as_array,
    check_same_rows,
    holds_texts,
    is_number,
    list_columns,
    map_arrays,
    name_columns,
    to_array,
)
from keras_bert_suite.tokenizers.text_inputs import is_tf_tensor

#: What to do with rows or batches that name their texts and labels.
HOW_TO_COLLATE = (
    'Rows in memory that are dicts: train = kbs.read_rows(rows, "text", "label"), and pass '
    "train.x and train.y. Batches of a dataset: pairs (texts, labels), from a DataLoader with "
    'collate_fn=lambda rows: ([row["text"] for row in rows], [row["label"] for row in rows]).'
)


@dataclasses.dataclass(frozen=True)
class Rows:
    """Rows as a user passed them, or the windows over them that a model sees.

    Attributes:
        inputs: tuple of columns (N,): object arrays of str or of token ids, or string tensors of
            TensorFlow; or dict of packed arrays (N, ...).
        labels: array (N, ...), dict of arrays, or None.
        weights: array (N, ...), dict of arrays, or None.
        input_names: tuple of the names that the text columns came with, or None.
        sources: int64 (N,), the user's row from which each entry comes. It is None in a graph of
            TensorFlow, where each row is one entry.
        epoch: int, the epoch of a training on rows in memory, 0 in an evaluation; None for a batch
            of a user's dataset.
        features: dict of the name of a column beside the texts -> array or tensor (N, ...); or
            None.
    """

    inputs: tuple | dict
    labels: object = None
    weights: object = None
    input_names: tuple | None = None
    sources: np.ndarray | None = None
    epoch: int | None = None
    features: dict | None = None

    def __post_init__(self):
        columns = self._columns()
        if self.sources is None and columns and not any(map(is_tf_tensor, columns)):
            object.__setattr__(self, "sources", np.arange(len(columns[0])))

    @classmethod
    def read(cls, x, y=None, sample_weight=None, features=None):
        """Turns the arguments of `fit` into arrays with the same number of rows.

        Args:
            x: texts as a list, an array or a pandas Series; a tuple of such columns, one for
                each segment; a DataFrame or a dict of text columns; or a dict of packed arrays.
            y, sample_weight: list, array or tensor, a dict of them, or None.
            features: dict of arrays (N, ...), or None.

        Raises:
            ValueError: if a text is missing or not a string, naming its row; if the numbers of
                rows differ; if a weight is negative or not finite, naming its row.
        """
        inputs, names = read_inputs(x)
        rows = cls(inputs, read_labels(y), read_labels(sample_weight), names, features=features)
        map_arrays(check_weights, rows.weights)
        check_same_rows(
            *(rows.inputs, rows.labels, rows.weights, rows.features),
            names=("inputs", "labels", "weights", "features"),
        )
        return rows

    @classmethod
    def read_batch(cls, x, y=None, sample_weight=None, features=None):
        """Makes `Rows` of one batch of a dataset. The columns may be tensors in a graph.

        Raises:
            ValueError: if the batch is a single text.
        """
        inputs, names = read_batch(x)
        labels, weights = map_arrays(to_array, y), map_arrays(to_array, sample_weight)
        return cls(inputs, labels, weights, names, features=features)

    def __len__(self):
        return len(self._columns()[0])

    @property
    def is_packed(self):
        """bool, whether the user passed packed arrays instead of texts."""
        return isinstance(self.inputs, dict)

    def take(self, entries, epoch=None):
        """The entries of an index array or a slice, in an epoch of a training."""
        inputs, labels, weights, features = (
            map_arrays(lambda column: column[entries], part)
            for part in (self.inputs, self.labels, self.weights, self.features)
        )
        sources = self.sources[entries]
        return Rows(inputs, labels, weights, self.input_names, sources, epoch, features)

    def split(self, share):
        """Sets the last `share` of the rows apart, as Keras' `validation_split`: two `Rows`."""
        first = int(len(self) * (1 - share))
        if not 0 < first < len(self):
            raise ValueError(
                f"validation_split={share} leaves {first} of {len(self)} rows for training, but "
                "training and validation both need at least one row. Choose another share."
            )
        return self.take(slice(first)), self.take(slice(first, None))

    def _columns(self):
        return list_columns((self.inputs, self.labels, self.weights))


def read_inputs(x):
    """(tuple of text columns, their names or None) of rows in memory, or (packed arrays, None)."""
    x = name_columns(x)
    if isinstance(x, dict):
        for name, column in x.items():
            if isinstance(column, (str, bytes)):
                read_texts(column, name)  # It says that a single text is no column.
        columns = {name: as_array(column) for name, column in x.items()}
        if not any(holds_texts(column) for column in columns.values()):
            return columns, None
        check_text_columns(columns)
        return tuple(read_texts(column, name) for name, column in columns.items()), tuple(columns)
    if isinstance(x, tuple):
        if x and all(isinstance(text, (str, bytes)) for text in x):
            raise ValueError(
                f"x is a tuple of {len(x)} strings, and a tuple is a pair of columns, "
                "(first_texts, second_texts). Pass a column of texts as a list: list(x)."
            )
        return tuple(read_texts(column, f"segment {i}") for i, column in enumerate(x)), None
    return (read_texts(x),), None


def read_labels(y):
    """Reads labels or weights as arrays. A tuple of numbers or names is one column."""
    if isinstance(y, str):
        raise ValueError(
            f"Labels and weights must have an entry for each row, got the string {y!r}. For a "
            "column of a DataFrame, pass the column: table[name]."
        )
    if isinstance(y, tuple) and y and all(np.isscalar(label) for label in y):
        y = list(y)
    return map_arrays(_read_label_column, y)


def _read_label_column(column):
    try:
        array = as_array(column)
    except ValueError:
        if not isinstance(column, list):
            raise
        raise ValueError(
            "Labels and weights must have the same shape in each row, got lists of different "
            f"lengths, {str(column)[:60]}. For sets of labels, build the task with "
            "problem_type='multi_label_classification'."
        ) from None
    if array.ndim == 0:
        raise ValueError(
            "Labels and weights must be a list with an entry for each row, got "
            f"{str(column)[:60]} ({type(column).__name__})."
        )
    return array


def check_weights(weights):
    """Raises ValueError if a weight is negative or not a finite number, naming its row."""
    if weights.dtype.kind in "biuf":
        wrong = ~(np.isfinite(weights) & (weights >= 0))
    else:
        wrong = np.vectorize(lambda weight: not is_number(weight), otypes=[bool])(weights)
    if wrong.any():
        row = int(np.argwhere(wrong)[0][0])
        raise ValueError(
            f"Sample weights must be finite numbers of at least 0, got {weights[row]} at row {row}."
        )


def read_texts(column, name=None):
    """Reads one column of texts as an object array (N,) of str.

    A missing text, such as None or NaN, is an error. The empty string is a text like others.
    """
    if isinstance(column, (str, bytes)):
        raise ValueError(
            f"Texts must come as a list of strings, got the string {column[:40]!r}. "
            "Put it in a list: [text]."
        )
    if isinstance(column, (set, frozenset)):  # Its order is another one in each process.
        raise ValueError(
            "Texts must be in an order, got a set of texts. Pass a list: sorted(texts)."
        )
    if not isinstance(column, list) and not hasattr(column, "__array__"):
        column = list(column)  # such as the keys of a dict
    if isinstance(column, list) and column and isinstance(column[0], dict):
        raise ValueError(f"A row is a dict, {str(column[0])[:80]}. {HOW_TO_COLLATE}")
    if isinstance(column, list) and column and isinstance(column[0], (list, tuple)):
        raise ValueError(
            "Pairs of texts must come as a tuple of two lists, (first_texts, second_texts), "
            f"got a list of {type(column[0]).__name__}s. Pass tuple(map(list, zip(*pairs)))."
        )
    if isinstance(column, list):
        texts = np.empty(len(column), dtype=object)
        texts[:] = column
    else:
        texts = as_array(column)
    if texts.ndim != 1:
        raise ValueError(
            f"Texts must have one string for each row, got an array of shape {texts.shape}. Pass "
            "several columns of texts as a tuple of columns."
        )
    texts = texts.astype(object, copy=False)  # The strings of NumPy may be missing, too.
    wrong = [row for row, text in enumerate(texts) if not isinstance(text, (str, bytes))]
    if wrong:
        text = texts[wrong[0]]
        where = f"row {wrong[0]}" if name is None else f"row {wrong[0]} of {name!r}"
        if len(wrong) > 1:
            where += f", and no strings in {len(wrong)} of {len(texts)} rows"
        raise ValueError(
            f"Texts must be strings, got {str(text)[:40]} ({type(text).__name__}) at {where}. "
            'Leave out rows without a text, as kbs.read_rows(..., errors="skip") does.'
        )
    return texts


def read_batch(x):
    """The inputs of one batch of a dataset: (text columns, their names or None), or (dict, None).

    A list or tuple of strings is one column of texts, as PyTorch's `default_collate` makes it.
    Other lists and tuples have a column for each segment. A dict has packed arrays.
    """
    x = name_columns(x)
    if isinstance(x, dict):
        if any(isinstance(column, (str, bytes)) or holds_texts(column) for column in x.values()):
            columns = tuple(map(_batch_column, x.values()))
            check_text_columns(x)
            return columns, tuple(x)
        return map_arrays(to_array, x), None
    one_column = not isinstance(x, (list, tuple)) or not x or holds_texts(x)
    return tuple(map(_batch_column, [x] if one_column else x)), None


def _batch_column(column):
    shape = getattr(column, "shape", None)
    if isinstance(column, (str, bytes)) or (
        shape is not None and getattr(shape, "rank", len(shape)) == 0
    ):
        raise ValueError(
            "The dataset has single texts, wanted batches of texts. Call "
            f"`dataset.batch(batch_size)` on it. {HOW_TO_COLLATE}"
        )
    return column.tolist() if isinstance(column, np.ndarray) else column


def check_text_columns(columns):
    """Raises a ValueError if a dict of text columns has a column of numbers, such as the labels."""
    others = [name for name, column in columns.items() if _holds_numbers(column)]
    if others:
        texts = ", ".join(str(name) for name in columns if name not in others)
        raise ValueError(
            f"The columns are the texts {texts}, and also {', '.join(map(str, others))}, "
            "which are no texts. Columns that the model shall read beside the texts are the "
            f"`features` of a TextClassifier or a DocumentClassifier. {HOW_TO_COLLATE}"
        )


def _holds_numbers(column):
    if isinstance(column, (list, tuple)):
        return bool(column) and all(map(is_number, column))
    dtype = str(getattr(column, "dtype", ""))
    return any(kind in dtype for kind in ("int", "float", "bool"))
