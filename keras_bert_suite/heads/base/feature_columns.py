"""A column beside the texts of a row: numbers, booleans or categories."""

import collections
from collections.abc import Mapping

import numpy as np

from keras_bert_suite.data.arrays import as_array, is_number
from keras_bert_suite.data.readers.feature_fields import BOOLEAN, CATEGORY, NUMBER
from keras_bert_suite.data.readers.records import is_missing, make_field

#: The input of a model that has the encoded features of rows. No column may have this name.
FEATURES = "features"

#: The places of learned categories. With more categories, the most frequent have a place.
MOST_CATEGORIES = 100


class NumberColumn:
    """A column of numbers, as `(number - mean) / std` of the training rows.

    Args:
        name: str.
        mean, std: floats; None until the training rows are known.
    """

    kind = NUMBER
    #: The type of its tensor in an export.
    dtype = "float32"
    #: The shape of a value in an export.
    shape = ()
    #: What an export takes for a missing value.
    missing = float("nan")
    #: For an error: what the values are, and how a column gets them.
    values, remedy = "finite numbers", "correct the column, such as by pandas.to_numeric"
    #: A missing number is 0 in the first place and 1 in the second, others 0 in the second.
    size = 2

    def __init__(self, name, mean=None, std=None):
        self.name = name
        self.mean, self.std = mean, std

    @property
    def is_learned(self):
        """bool, whether `encode` may be called."""
        return self.mean is not None

    def describe(self):
        """The argument that makes this column, as JSON can hold it."""
        known = {"kind": self.kind, "mean": self.mean, "std": self.std}
        return known if self.is_learned else self.kind

    def read(self, column):
        """float64 (N,) of a column, NaN for missing values."""
        array = as_array(column)
        if array.ndim != 1 or array.dtype.kind in "mM":
            raise ValueError(
                f"The feature {self.name!r} is a {self.kind}, got an array of {array.dtype} and of "
                f"the shape {array.shape}. Wanted a number for each row; of a date its year or "
                "the days since a first day."
            )
        if array.dtype.kind in "biuf":
            numbers = array.astype("float64")
        else:
            pairs = enumerate(array.tolist())
            numbers = np.array([self._read_value(row, value) for row, value in pairs], "float64")
        infinite = np.flatnonzero(np.isinf(numbers))
        if len(infinite):
            self._refuse(infinite[0], numbers[infinite[0]])
        return numbers

    def _read_value(self, row, value):
        if is_missing(value):
            return np.nan
        return float(value) if is_number(value) else self._refuse(row, value)

    def _refuse(self, row, value):
        raise ValueError(
            f"The feature {self.name!r} is a {self.kind}, got {str(value)[:40]!r} "
            f"({type(value).__name__}) at row {row}. Wanted {self.values}, and None or NaN for "
            f"missing ones: {self.remedy}; or, for names, make the task with "
            f"features={{{self.name!r}: 'category'}}."
        )

    def learn(self, numbers):
        """Takes mean and standard deviation of numbers from `read`. Returns a hint or None."""
        known = numbers[~np.isnan(numbers)]
        mean, std = (float(known.mean()), float(known.std())) if len(known) else (0.0, 0.0)
        # The mean of equal numbers is rounded, so their standard deviation need not be 0.
        if not len(known) or known.min() == known.max() or std == 0:
            value = f"the value {known[0]:g}" if len(known) else "no value"
            raise _without_difference(self.name, value, len(numbers))
        self.mean, self.std = mean, std

    def encode(self, numbers):
        """float64 (B, 2) of numbers from `read`."""
        are_missing = np.isnan(numbers)
        scaled = np.where(are_missing, 0.0, (numbers - self.mean) / self.std)
        return np.stack([scaled, are_missing], axis=1)

    def encode_tensor(self, numbers):
        """`encode` of a numeric tensor (B,) in a graph of TensorFlow."""
        import tensorflow as tf

        if numbers.dtype == tf.string:
            raise ValueError(
                f"The feature {self.name!r} is a {self.kind}, got a tensor of strings. Convert it "
                "by tf.strings.to_number, with NaN for missing values."
            )
        numbers = tf.cast(numbers, tf.float64)
        are_missing = tf.math.is_nan(numbers)
        scaled = tf.where(are_missing, tf.zeros_like(numbers), (numbers - self.mean) / self.std)
        return tf.stack([scaled, tf.cast(are_missing, tf.float64)], axis=1)


class BooleanColumn(NumberColumn):
    """A column of True and False, as 1 and 0."""

    kind = BOOLEAN
    values, remedy = "True and False, or 1 and 0", "map the column to them"

    def __init__(self, name):
        super().__init__(name, mean=0.0, std=1.0)

    def describe(self):
        return self.kind

    def read(self, column):
        numbers = super().read(column)
        wrong = np.flatnonzero(~np.isin(numbers, (0, 1)) & ~np.isnan(numbers))
        if len(wrong):
            self._refuse(wrong[0], numbers[wrong[0]])
        return numbers


class CategoryColumn:
    """A column of categories, each with a place in a row of 0 and a 1.

    The last two places are for an unknown category, and for a missing one. A category is known by
    its name, as a table has it: 1, 1.0 and "1" are one category.

    Args:
        name: str.
        categories: list of names; None until the training rows are known.
        are_given: bool, whether the user has listed them, so that they need no more places.
    """

    kind = CATEGORY
    dtype = "string"
    shape = ()
    missing = ""

    def __init__(self, name, categories=None, are_given=False):
        self.name = name
        self.categories, self.are_given = categories, are_given
        self.size = (len(categories) if are_given else MOST_CATEGORIES) + 2

    @property
    def is_learned(self):
        """As of a `NumberColumn`."""
        return self.categories is not None

    def describe(self):
        """As of a `NumberColumn`."""
        if self.are_given:
            return list(self.categories)
        if self.is_learned:
            return {"kind": self.kind, "categories": list(self.categories)}
        return self.kind

    def read(self, column):
        """Object array (N,) of the names of a column, "" for missing values."""
        values = column if isinstance(column, (list, tuple)) else as_array(column).tolist()
        return np.array([self._read_value(*pair) for pair in enumerate(values)], object)

    def _read_value(self, row, value):
        try:
            field = make_field(value)
        except (TypeError, ValueError, OverflowError):
            field = None
        if not isinstance(field, str):
            raise ValueError(
                f"The feature {self.name!r} is a category, got {str(value)[:40]!r} "
                f"({type(value).__name__}) at row {row}. Wanted strings, whole numbers or "
                "booleans, and None or NaN for missing ones."
            )
        return field

    def learn(self, names):
        """Takes the categories of names from `read`. Returns a hint or None."""
        counts = collections.Counter(names.tolist())
        if len(counts) < 2:
            value = f"the category {names[0]!r}" if names[0] else "no value"
            raise _without_difference(self.name, value, len(names))
        del counts[""]
        frequent = sorted(counts, key=lambda name: (-counts[name], name))
        self.categories = sorted(frequent[:MOST_CATEGORIES])
        if len(frequent) > MOST_CATEGORIES:
            return (
                f"The feature {self.name!r} has {len(frequent)} categories. The "
                f"{MOST_CATEGORIES} most frequent have a place each, and the others share the "
                f"place of unknown ones. For more places, list them: "
                f"features={{{self.name!r}: [...]}}."
            )
        return None

    def encode(self, names):
        """float64 (B, size) of names from `read`."""
        place_of = {name: place for place, name in enumerate(self.categories)}
        place_of[""] = self.size - 1
        encoded = np.zeros((len(names), self.size))
        places = [place_of.get(name, self.size - 2) for name in names]
        encoded[np.arange(len(names)), places] = 1
        return encoded

    def encode_tensor(self, names):
        """`encode` of a tensor (B,) of strings or integers in a graph of TensorFlow."""
        import tensorflow as tf

        if names.dtype.is_integer:
            names = tf.as_string(names)
        if names.dtype != tf.string:
            raise ValueError(
                f"The feature {self.name!r} is a category, got a tensor of {names.dtype.name}. "
                "Wanted strings or integers: convert it by tf.strings.as_string."
            )
        known = tf.constant([*self.categories, ""])
        is_name = tf.equal(names[:, None], known[None, :])
        numbers = [*range(len(self.categories)), self.size - 1]
        found = tf.gather(numbers, tf.argmax(tf.cast(is_name, tf.int32), axis=1))
        places = tf.where(tf.reduce_any(is_name, axis=1), found, self.size - 2)
        return tf.one_hot(places, self.size, dtype=tf.float64)


def _without_difference(name, value, num_rows):
    """The error for a feature that is the same in all training rows."""
    return ValueError(
        f"The feature {name!r} has {value} in all {num_rows} training rows, so nothing can be "
        "learned from it. Leave it out of `features`, or train on rows in which it differs."
    )


def make_column(name, kind):
    """The column of an entry of the argument `features` of a task. Others are a ValueError."""
    if not isinstance(name, str) or name in ("", FEATURES):
        raise ValueError(
            f"The name of a feature must be a string that is not empty and not {FEATURES!r}, got "
            f"{name!r}. Rename the column."
        )
    if isinstance(kind, Mapping) and kind.get("kind") in KINDS:  # It is saved.
        return KINDS[kind["kind"]](name, **{k: v for k, v in kind.items() if k != "kind"})
    if isinstance(kind, str) and kind in KINDS:
        return KINDS[kind](name)
    if isinstance(kind, (list, tuple)):
        column = CategoryColumn(name)
        categories = column.read(kind).tolist()
        if "" in categories or not categories or len(set(categories)) != len(categories):
            raise ValueError(
                f"The categories of the feature {name!r} must be different names, at least one, "
                f"got {kind!r}. A missing category has a place without a name."
            )
        return CategoryColumn(name, categories, are_given=True)
    raise ValueError(
        f"The kind of the feature {name!r} must be {', '.join(map(repr, KINDS))} or a list of "
        f"categories, got {kind!r}."
    )


KINDS = {cls.kind: cls for cls in (NumberColumn, BooleanColumn, CategoryColumn)}
