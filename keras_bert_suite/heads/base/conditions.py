"""The condition of a row, on which the norms of an encoder depend: a column of vectors."""

import numpy as np

from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.data.arrays import as_array, holds_texts, name_columns
from keras_bert_suite.models.frame_inputs import CONDITION
from keras_bert_suite.tokenizers.text_inputs import is_tf_tensor


class ConditionColumn:
    """The column `condition` beside the texts of rows, for norms with a `NormCondition`.

    Args:
        dim: int C, the width of the condition; None for an encoder without one.
    """

    def __init__(self, dim):
        self.dim = dim

    #: The type of its tensor in an export.
    dtype = "float32"
    #: There is no value for a missing condition.
    missing = None

    @property
    def shape(self):
        """The shape of a value in an export."""
        return (self.dim,)

    def split(self, x):
        """Parts the texts of rows from their condition.

        Args:
            x: rows that are no packed arrays, as a task takes them.

        Returns:
            (dict of the other columns, {"condition": float32 (N, C)}); for an encoder without a
            condition (`x`, None).

        Raises:
            ValueError: if the condition is missing, has another width, or is not finite; or if
                there is one that nothing reads.
        """
        columns = name_columns(x)
        given = columns.get(CONDITION) if isinstance(columns, dict) else None
        if self.dim is None:
            if given is not None and len(columns) > 1 and not holds_texts(given):
                raise _without_use()
            return x, None
        if given is None or len(columns) == 1:
            got = f"the columns {', '.join(columns)}" if isinstance(columns, dict) else None
            raise ValueError(
                f"The norms of the backbone depend on a condition of {self.dim} numbers for each "
                f"row, beside the texts; got {got or with_article(x)}. Pass a dict of columns, "
                f"{{'text': texts, {CONDITION!r}: [...]}}, or a DataFrame."
            )
        texts = {name: column for name, column in columns.items() if name != CONDITION}
        return texts, {CONDITION: self.read(given)}

    def read(self, column):
        """float32 (N, C) of a column, an array or a tensor of TensorFlow."""
        if is_tf_tensor(column):
            import tensorflow as tf

            if column.shape.rank not in (None, 2) or column.shape[-1] not in (None, self.dim):
                raise self._misshapen(tuple(column.shape))
            message = f"The numbers of {CONDITION} must be finite."
            return tf.debugging.assert_all_finite(tf.cast(column, tf.float32), message)
        if not hasattr(column, "__len__"):
            column = list(column)
        if not len(column):
            return np.zeros((0, self.dim), "float32")
        if isinstance(column, list) or getattr(column, "dtype", None) == np.dtype(object):
            # Rows of one list, or cells of a DataFrame, may differ in their width.
            for row, numbers in enumerate(column):
                if np.shape(numbers) != (self.dim,):
                    raise self._misshapen(f"{np.shape(numbers)} of row {row}")
            column = np.stack([as_array(numbers) for numbers in column])
        rows = as_array(column)
        self.check(rows)
        return rows.astype("float32")

    def check(self, rows):
        """Raises a ValueError if an array is none of conditions (N, C) with finite numbers."""
        if rows.ndim != 2 or rows.shape[1] != self.dim:
            raise self._misshapen(rows.shape)
        if rows.dtype.kind not in "biuf":
            raise ValueError(
                f"{CONDITION} must be numbers, got an array of {rows.dtype}. For a class, pass "
                "zeros and a one: np.eye(num_classes)[class_ids]."
            )
        wrong = np.argwhere(~np.isfinite(rows.astype("float32")))
        if len(wrong):
            row = wrong[0][0]
            raise ValueError(
                f"The numbers of {CONDITION} must be finite, got {rows[row].tolist()} at row "
                f"{row}. Leave the row out, or say which numbers stand for an unknown condition."
            )

    def check_packed(self, arrays):
        """Raises a ValueError if packed arrays lack conditions (N, C), or have some without use."""
        given = arrays.get(CONDITION)
        has_rows = any(not isinstance(a, np.ndarray) or len(a) for a in arrays.values())
        if self.dim is None and given is not None:
            raise _without_use()
        if self.dim is not None and given is None and has_rows:
            raise ValueError(
                f"Packed arrays for this backbone have {CONDITION!r}, float32 (N, {self.dim}), got "
                f"{', '.join(arrays)}. Add it, or pass the texts and the condition."
            )
        if isinstance(given, np.ndarray):
            self.check(given)

    def _misshapen(self, shape):
        one = " A single number is a list of one: [[0.5], ...]." if self.dim == 1 else ""
        return ValueError(
            f"{CONDITION} must have {self.dim} numbers for each row, the shape (N, {self.dim}), "
            f"got the shape {shape}.{one}"
        )


def _without_use():
    return ValueError(
        f"The rows have a column {CONDITION!r}, and the norms of the backbone depend on none. Take "
        "`backbone.add_condition(NormCondition(width))`, a copy that reads it, or leave the column "
        "out."
    )
