"""Columns of texts, of every kind that an array may have."""

import numpy as np
import pandas
import pytest

from keras_bert_suite.data.arrays import holds_texts


@pytest.mark.parametrize("values", [["a", "b"], [None, b"b"]])
def test_objects_are_looked_at(values):
    for column in (values, np.array(values, object), pandas.Series(values, dtype=object)):
        assert holds_texts(column)


@pytest.mark.parametrize("values", [[1.5, 2.0], [None, 2]])
def test_other_objects_are_no_texts(values):
    for column in (values, np.array(values, object), pandas.Series(values, dtype=object)):
        assert not holds_texts(column)
