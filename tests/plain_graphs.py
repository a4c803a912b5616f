"""Graphs of TensorFlow as tests want them, which run them a few times."""

import keras


def run_plain_graphs():
    """TensorFlow runs its graphs as they are traced, and traces fewer buckets of packed rows.

    A sixth of the time of most tests would go into optimizing what runs a few times. Each group
    of packed rows is a part of the graph by itself. Does nothing under other backends.
    """
    if keras.config.backend() != "tensorflow":
        return
    import tensorflow as tf

    from keras_bert_suite.runs import packed_layout

    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    packed_layout.GRAPH_BUCKETS = 3
