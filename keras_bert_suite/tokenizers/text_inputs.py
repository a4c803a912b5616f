"""The forms of text that a preprocessing layer takes."""

import sys


def is_tf_tensor(inputs):
    """Whether `inputs` is a tensor or variable of TensorFlow. It does not import TensorFlow."""
    # A caller that has a tensor has imported TensorFlow.
    tf = sys.modules.get("tensorflow")
    kinds = ("Tensor", "RaggedTensor", "Variable")
    return hasattr(tf, "RaggedTensor") and isinstance(
        inputs, tuple(getattr(tf, kind) for kind in kinds)
    )


def as_written(function):
    """Has TensorFlow trace a function as it is written.

    Otherwise it rewrites the source of each function that is called in a dataset, for conditions
    and loops over tensors. Ours have none, and the rewriting takes seconds.
    """
    tf = sys.modules.get("tensorflow")
    if not hasattr(tf, "autograph"):
        return function
    return tf.autograph.experimental.do_not_convert(function)


def check_several(texts):
    """Raises a ValueError if a single text stands in the place of several."""
    if isinstance(texts, str | bytes):
        raise ValueError(f"`texts` must hold texts. Received a single one: {texts[:40]!r}.")


def canonicalize_texts(inputs):
    """Python text as `(list of str, whether it was a batch)`. Bytes that are not UTF-8 are dropped.

    `inputs` are str or bytes, or a list, tuple, NumPy array or pandas Series of them. Others are a
    ValueError.
    """
    if hasattr(inputs, "tolist"):
        inputs = inputs.tolist()
    if isinstance(inputs, str | bytes):
        return [decode_text(inputs)], False
    if not isinstance(inputs, list | tuple):
        raise ValueError(
            "A tokenizer takes str, bytes, a list or array of them, or a tf.Tensor of strings. "
            f"Received: {inputs!r} of type {type(inputs).__name__}."
        )
    for index, text in enumerate(inputs):
        if not isinstance(text, str | bytes):
            raise ValueError(
                "A batch of texts is one flat list of str or bytes, with '' for missing ones. "
                f"Received {text!r} of type {type(text).__name__} at index {index}."
            )
    return [decode_text(text) for text in inputs], True


def decode_text(text):
    """str or bytes to str. Bytes that are not UTF-8 are dropped."""
    return text if isinstance(text, str) else text.decode("utf-8", "ignore")
