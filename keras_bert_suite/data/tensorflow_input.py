"""What the TensorFlow backend's `fit` needs to be told about batches of varying length."""


def to_tensorflow_dataset(dataset):
    """Wraps a Grain dataset of arrays in a `tf.data.Dataset` that leaves every size open.

    Keras would look at the first eight batches, take the sizes they share for fixed,
    and fail at the first batch that is padded to another length.

    Args:
        dataset: `grain.IterDataset` of nested arrays.

    Returns:
        `tf.data.Dataset` of the same elements in the same order.
    """
    import tensorflow as tf

    signature = tf.nest.map_structure(
        lambda array: tf.TensorSpec([None] * array.ndim, array.dtype), next(iter(dataset))
    )
    return tf.data.Dataset.from_generator(lambda: dataset, output_signature=signature)
