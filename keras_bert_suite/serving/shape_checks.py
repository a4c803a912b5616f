"""Checks the shapes of a signature's inputs inside its graph."""


def check_inputs(tensors, ranks):
    """Makes the graph refuse tensors of another rank, or of different shapes.

    A server hands a session tensors of any shape: the session does not compare them with the
    signature. TensorFlow Text ends the process when it gets a text without a batch. So a
    signature computes from the tensors returned here, and from no others.

    Args:
        tensors: dict, name of an input -> tensor.
        ranks: int, of each tensor; or several int, one for each. Then only the axes that all
            tensors have must be equal.

    Returns:
        dict, name -> the same values. Running the graph raises an InvalidArgumentError if a
        tensor has another rank, or the tensors differ in shape.
    """
    import tensorflow as tf

    # `ensure_shape` is an op. `assert_rank` would rely on the signature, and check nothing.
    ranks = [ranks] * len(tensors) if isinstance(ranks, int) else ranks
    tensors = {
        name: tf.ensure_shape(tensor, [None] * rank)
        for (name, tensor), rank in zip(tensors.items(), ranks, strict=True)
    }
    shapes = [tf.shape(tensor)[: min(ranks)] for tensor in tensors.values()]
    is_equal = [tf.reduce_all(tf.equal(shapes[0], shape)) for shape in shapes[1:]]
    if not is_equal:
        return tensors
    message = f"The inputs {', '.join(tensors)} must have the same shape. Their shapes are:"
    assertion = tf.debugging.Assert(tf.reduce_all(is_equal), [message, *shapes])
    with tf.control_dependencies([assertion]):
        return {name: tf.identity(tensor) for name, tensor in tensors.items()}
