"""The columns beside the texts of a row: which they are, and what was learned of their rows."""

import copy
from collections.abc import Mapping

import numpy as np

from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.data.arrays import name_columns
from keras_bert_suite.files.messages import list_names
from keras_bert_suite.heads.base.feature_columns import FEATURES, make_column
from keras_bert_suite.tokenizers.text_inputs import is_tf_tensor


class Features:
    """The columns beside the texts of a row, in the order of their names.

    A row of D numbers has the places of the first column, then of the second, and so on.

    Args:
        columns: list of the columns.
    """

    def __init__(self, columns):
        self.columns = {column.name: column for column in sorted(columns, key=lambda c: c.name)}

    @classmethod
    def of(cls, said):
        """`Features` of the argument `features` of a task; None for None.

        Raises:
            ValueError: if it is no dict of a name -> a kind.
        """
        if said is None:
            return None
        if not isinstance(said, Mapping) or not said:
            raise ValueError(
                f"features must be a dict of a column and its kind, such as {{'price': 'number', "
                f"'shop': ['a', 'b']}}, got {str(said)[:80]!r}. For no columns, leave it out."
            )
        return cls([make_column(name, kind) for name, kind in said.items()])

    @property
    def names(self):
        """tuple of str, the columns in the order of their places."""
        return tuple(self.columns)

    @property
    def size(self):
        """int D, the numbers of a row."""
        return sum(column.size for column in self.columns.values())

    def describe(self):
        """The argument `features` that makes them, as JSON can hold it."""
        return {name: column.describe() for name, column in self.columns.items()}

    def split(self, x, input_names=None):
        """Parts the texts of rows from their features.

        Args:
            x: DataFrame or dict of columns.
            input_names: tuple of the names of the texts, or None if they are not known yet.

        Returns:
            (dict of the other columns, dict of the columns of the features).

        Raises:
            ValueError: if a column is missing, or has another kind; or if there are columns
                that were not there in training.
        """
        x, wanted = name_columns(x), ", ".join(self.names)
        if not isinstance(x, dict):
            raise ValueError(
                f"This task reads the columns {wanted} beside the texts, got "
                f"{with_article(x)}. Pass a DataFrame, or a dict of columns: "
                f"{{'text': texts, {self.names[0]!r}: [...]}}."
            )
        missing = [name for name in self.names if name not in x]
        if missing:
            raise ValueError(
                f"The columns {', '.join(map(str, x))} lack {list_names(missing)}, which this task "
                f"reads beside the texts. Add {'it' if len(missing) == 1 else 'them'}, with None "
                "for values that are not known."
            )
        texts = {name: column for name, column in x.items() if name not in self.columns}
        others = [name for name in texts if name not in (input_names or texts)]
        if not texts or (others and len(texts) != len(input_names)):
            names = list_names(input_names or ("text",))
            got = f"also got {list_names(others)}" if others else "got no texts"
            raise ValueError(
                f"This task reads the texts {names} and the features {wanted}, and {got}. Pass "
                "these columns only: x[[...]] of a DataFrame."
            )
        return texts, {
            name: x[name] if is_tf_tensor(x[name]) else column.read(x[name])
            for name, column in self.columns.items()
        }

    def learn(self, columns):
        """Learns what is not known yet of the training rows. Returns a hint for users, or None."""
        # After an error, all columns are as they were.
        learned = {name: copy.copy(column) for name, column in self.columns.items()}
        hints = [
            column.learn(columns[name]) for name, column in learned.items() if not column.is_learned
        ]
        self.columns = learned
        return "\n".join(filter(None, hints)) or None

    def encode(self, columns):
        """float32 (B, D) of a batch of columns from `split`, arrays or tensors of TensorFlow.

        Raises:
            ValueError: if numbers or categories are not learned yet.
        """
        new = [name for name, column in self.columns.items() if not column.is_learned]
        if new:
            raise ValueError(
                f"The mean or the categories of {list_names(new)} are not known yet. Call `fit` on "
                "rows in memory, or `learn_features(x)` with rows in memory first."
            )
        if any(map(is_tf_tensor, columns.values())):
            import tensorflow as tf

            parts = [
                column.encode_tensor(tf.convert_to_tensor(columns[name]))
                for name, column in self.columns.items()
            ]
            return tf.cast(tf.concat(parts, axis=1), tf.float32)
        parts = [column.encode(columns[name]) for name, column in self.columns.items()]
        return np.concatenate(parts, axis=1).astype("float32")

    def check_packed(self, arrays):
        """Raises a ValueError if packed arrays have no features (N, D)."""
        shape = getattr(arrays.get(FEATURES), "shape", None)
        if shape is None or len(shape) != 2 or shape[1] != self.size:
            raise ValueError(
                f"Packed arrays of this task have {FEATURES!r}, float32 (N, {self.size}), got "
                f"{'none' if shape is None else f'the shape {tuple(shape)}'}. Pass the texts and "
                "the columns, or pack them by `task.preprocess_samples(x)`."
            )
