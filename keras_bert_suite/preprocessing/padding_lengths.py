"""The lengths to which batches are padded."""

import keras


def list_lengths(sequence_length, padding_lengths):
    """The lengths to which a batch may be padded, ascending; None allows any length.

    Args:
        sequence_length: int, the last of them.
        padding_lengths: as for `SegmentPacker`.
    """
    if padding_lengths is None:
        return None
    if padding_lengths == "auto":
        if not compiles_each_length():
            return None
        powers = [1 << n for n in range(4, sequence_length.bit_length())]
        padding_lengths = sorted(powers + [power * 3 // 2 for power in powers])
    return (*(n for n in padding_lengths if n < sequence_length), sequence_length)


def compiles_each_length() -> bool:
    """Whether Keras, by default, compiles a step anew for each length of a batch."""
    backend = keras.config.backend()
    if backend != "tensorflow":
        return backend == "jax"
    import tensorflow as tf

    return any(device.device_type != "CPU" for device in tf.config.list_physical_devices())
