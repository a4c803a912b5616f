"""Lists of texts of different lengths, as columns with a place for each text of the longest."""

import itertools

import numpy as np

from keras_bert_suite.data.rows import read_texts


class NoText(str):
    """The place of a text in a row with fewer texts than others have: the empty string."""


def spread_lists(lists, name):
    """K object arrays (N,) of str, from N lists of at most K: all first texts, all second texts...

    `NoText` stands after the last text of a shorter list. `name` is the name of the column.
    """
    places = itertools.zip_longest(*lists, fillvalue=NoText())
    return [read_texts(list(place), name) for place in places]


def find_texts(columns):
    """bool, whether there is a text at each place of object arrays."""
    return np.vectorize(lambda text: not isinstance(text, NoText), otypes=[bool])(columns)
