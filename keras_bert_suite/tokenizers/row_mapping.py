"""Functions of rows of text, for TensorFlow tensors of any rank."""


def map_rows(function, inputs):
    """Applies `function` (texts (B,) -> tuple of ragged (B, None)) to texts of any rank."""
    import tensorflow as tf

    if not isinstance(inputs, tf.RaggedTensor):
        if inputs.shape.rank is None:
            raise ValueError(
                "The rank of a tensor of texts must be known. Received a tensor of unknown rank; "
                "give it a shape with `tf.ensure_shape`."
            )
        if inputs.shape.rank == 0:
            return tuple(rows.values for rows in function(inputs[tf.newaxis]))
        if inputs.shape.rank == 1:
            return function(inputs)
        inputs = tf.RaggedTensor.from_tensor(inputs, ragged_rank=inputs.shape.rank - 1)
    inputs = inputs.with_row_splits_dtype(tf.int64)
    return tuple(inputs.with_flat_values(rows) for rows in function(inputs.flat_values))
