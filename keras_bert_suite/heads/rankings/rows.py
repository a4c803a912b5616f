"""Reads rows of a query and its candidates, with the relevance of each candidate."""

import numpy as np

from keras_bert_suite.data.arrays import check_same_rows, leave_tensorflow
from keras_bert_suite.data.rows import Rows, read_texts
from keras_bert_suite.data.word_rows import as_column
from keras_bert_suite.heads.choices.rows import find_columns

_FORMS = "a tuple of two columns, (queries, texts), in which a row of texts is a list of candidates"


def read_ranking_rows(x, y=None, sample_weight=None, input_names=("query", "text")):
    """Turns queries and their candidates into columns with the same number of rows.

    Args:
        x: `(queries, texts)`: N texts, and N lists of texts, which may differ in length; a
            DataFrame or dict of these two columns, by `input_names`; or a dict of packed arrays
            (N, K, L). Without `y` also pairs, N texts each, or packed arrays (N, L). Eager tensors
            of TensorFlow are taken too.
        y: N lists of numbers, the relevance of each candidate, at least 0; or None.
        sample_weight: a number for each row, or None.
        input_names: names of the two columns.

    Returns:
        `Rows`. Its `inputs` are the queries, and an object array (N,) of lists of str, or of str.
        Its `labels` are an object array (N,) of float32 arrays.

    Raises:
        ValueError: if `x` has another form, or a list is empty or lacks relevances, naming the row.
    """
    x, y, sample_weight = leave_tensorflow((x, y, sample_weight))
    columns = find_columns(x, input_names, _FORMS, ranks=(2, 3) if y is None else (3,))
    if columns is None:
        rows = Rows.read(x, None, sample_weight)
        lists = next(iter(rows.inputs.values()))
    elif y is None and all(isinstance(text, (str, bytes)) for text in columns[1]):
        return Rows.read((columns[0], as_column(columns[1])), None, sample_weight)
    else:
        queries, lists = read_lists(*columns, input_names)
        rows = Rows((queries, lists), None, Rows.read((queries,), None, sample_weight).weights)
    return rows if y is None else Rows(rows.inputs, _read_relevance(y, lists), rows.weights)


def read_lists(queries, texts, input_names=("query", "text")):
    """The queries and an object array (N,) of lists of str; see `read_ranking_rows`."""
    queries, lists = read_texts(queries, input_names[0]), as_column(texts)
    for number, row in enumerate(lists):
        row = row.tolist() if hasattr(row, "tolist") else row
        is_list = isinstance(row, (list, tuple)) and len(row)
        if not is_list or not all(isinstance(text, (str, bytes)) for text in row):
            raise ValueError(
                f"Row {number} of {input_names[1]!r} is {str(row)[:60]!r}, wanted a list of texts, "
                "the candidates of its query. For a table with a candidate in each row: "
                'read_rankings(table, "query", "text", "label").'
            )
        lists[number] = list(row)
    check_same_rows(queries, lists)
    return queries, lists


def list_pairs(queries, lists):
    """Two object arrays of texts: the query and the text of each pair, one list after the other."""
    texts = as_column(text for row in lists for text in row)
    return np.repeat(as_column(queries), list(map(len, lists))), texts


def _read_relevance(y, lists):
    """Object array (N,) of float32 arrays, with a number for each candidate."""
    rows = as_column(y)
    check_same_rows(lists, rows)
    for number, (row, candidates) in enumerate(zip(rows, lists, strict=True)):
        labels = np.asarray(row)
        is_whole = labels.shape == (len(candidates),) and labels.dtype.kind in "biuf"
        if not is_whole or not (np.isfinite(labels) & (labels >= 0)).all():
            raise ValueError(
                f"The labels of row {number} are {str(row)[:60]}, wanted a relevance for each of "
                f"its {len(candidates)} candidates: 0, or a finite number above 0."
            )
        rows[number] = labels.astype("float32")
    return rows
