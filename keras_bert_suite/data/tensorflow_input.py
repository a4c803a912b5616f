"""Maps `tf.data` datasets of users, and makes `tf.data` datasets for `fit` under TensorFlow."""

import itertools
import weakref

from keras_bert_suite.data.passes import Passes
from keras_bert_suite.tokenizers.text_inputs import as_written


def map_tensorflow_dataset(dataset, function):
    """Maps a function over the elements of a `tf.data.Dataset`, in its graph."""
    import tensorflow as tf

    # tf.data passes the parts of a tuple as arguments.
    function_of_parts = as_written(lambda *element: function(element))
    batches = dataset.map(function_of_parts, num_parallel_calls=tf.data.AUTOTUNE)
    return batches.prefetch(tf.data.AUTOTUNE)


def distribute_shares(batches, fixed_labels=False):
    """Makes a `tf.distribute.DistributedDataset` of lists of nested arrays, one for each replica.

    TensorFlow would split batches itself, but only arrays with the same number of rows.
    """
    import tensorflow as tf

    each_share = Passes(lambda: itertools.chain.from_iterable(batches))
    shares = to_tensorflow_dataset(each_share, fixed_labels)
    # Of a dataset made so, each replica takes the next element.
    strategy = tf.distribute.get_strategy()
    distributed = strategy.distribute_datasets_from_function(lambda context: shares)
    distributed.shares = shares  # It refers to its source weakly.
    return distributed


def to_tensorflow_dataset(dataset, fixed_labels=False):
    """Wraps a Grain dataset or a generator of arrays in a `tf.data.Dataset` without fixed lengths.

    Keras would look at the first eight batches. It would treat a size that all of them share as
    fixed, and fail at the first batch that is padded to another length. With `fixed_labels` the
    graph knows the sizes of the labels, which differ only in the number of rows.
    """
    import tensorflow as tf

    batches = iter(dataset)
    first = next(batches, None)
    if first is None:
        raise ValueError("The dataset has no batches.")

    def open_sizes(array):
        return tf.TensorSpec([None] * array.ndim, array.dtype)

    def open_rows(array):
        return tf.TensorSpec([None, *array.shape[1:]], array.dtype)

    if isinstance(first, tuple) and fixed_labels:
        signature = (
            tf.nest.map_structure(open_sizes, first[0]),
            *(tf.nest.map_structure(open_rows, part) for part in first[1:]),
        )
    else:
        signature = tf.nest.map_structure(open_sizes, first)
    # A generator cannot begin again.
    source = itertools.chain([first], batches) if batches is dataset else dataset
    # TensorFlow has nothing to tune here, and at the end `fit` would wait for seconds for the
    # thread that tunes.
    untuned = tf.data.Options()
    untuned.autotune.enabled = False

    def open_source():
        return source

    # TensorFlow never frees a generator, nor the objects that it refers to: the rows and the task.
    # So it gets a generator with a weak reference.
    opened = weakref.ref(open_source)
    made = tf.data.Dataset.from_generator(lambda: opened()(), output_signature=signature)
    made.open_source = open_source
    return made.with_options(untuned)
