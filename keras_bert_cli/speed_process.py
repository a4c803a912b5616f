"""A process of `keras-bert benchmark`: measures one backend with one precision.

KERAS_BACKEND=torch python -m keras_bert_cli.speed_process '{"size": "tiny", ...}'
"""

import json
import sys
import time

import keras
import numpy as np
from keras import ops

import keras_bert_suite as kbs
from keras_bert_suite.layers.torch_products import linear

VOCABULARY_SIZE = 30522


def measure(size, checkpoint, dtype, batch_size, length, steps):
    """Trains a classifier, and predicts with it.

    Args:
        size: str, of `BertBackbone.from_size`.
        checkpoint: path, in place of `size`, or None.
        dtype: str, the precision.
        batch_size, length, steps: int.

    Returns:
        dict. `fit` and `predict` are in rows/s, `first_step` in s, `memory` in GB, `peak` in
        TFLOP/s; `fit_share` and `predict_share` are shares of the peak; `device` is the name of
        the accelerator, or None.

    Raises:
        ValueError: if the model has fewer positions than `length`.
    """
    device = find_device()
    classifier = make_classifier(size, checkpoint, dtype)
    rows = make_rows(classifier.backbone, batch_size * steps, length)
    classes = np.arange(batch_size * steps) % 2
    classifier.compile()
    clock = Clock()
    clock.begin = time.perf_counter()
    classifier.fit(rows, classes, batch_size=batch_size, epochs=2, callbacks=[clock], verbose=0)
    classifier.predict(rows, batch_size=batch_size, verbose=0)
    begin = time.perf_counter()
    classifier.predict(rows, batch_size=batch_size, verbose=0)
    predict = len(classes) / (time.perf_counter() - begin)
    fit = len(classes) / (clock.epochs[1] - clock.epochs[0])
    memory = find_memory(device)
    peak = find_peak(classifier.compute_dtype)
    operations = count_operations(classifier.backbone, length)
    return {
        "fit": fit,
        "fit_share": 3 * operations * fit / peak,
        "predict": predict,
        "predict_share": operations * predict / peak,
        "first_step": clock.first_step,
        "memory": memory,
        "peak": peak / 1e12,
        "device": device,
    }


class Clock(keras.callbacks.Callback):
    """Notes the seconds of the first step, and the end of each epoch."""

    def __init__(self):
        super().__init__()
        self.begin, self.first_step, self.epochs = None, None, []

    def on_train_batch_end(self, batch, logs=None):
        if self.first_step is None:
            float(next(iter((logs or {}).values()), 0.0))  # waits for the device
            self.first_step = time.perf_counter() - self.begin

    def on_epoch_end(self, epoch, logs=None):
        self.epochs.append(time.perf_counter())


def make_classifier(size, checkpoint, dtype):
    """A `TextClassifier` of two classes."""
    if checkpoint:
        return kbs.TextClassifier.from_preset(
            checkpoint, num_classes=2, dtype=dtype, preprocessor=None
        )
    backbone = kbs.BertBackbone.from_size(size, vocabulary_size=VOCABULARY_SIZE, dtype=dtype)
    return kbs.TextClassifier(backbone, num_classes=2)


def make_rows(backbone, num_rows, length):
    """Packed arrays of random tokens, without padding."""
    most = getattr(backbone, "max_sequence_length", length)
    if length > most:
        raise ValueError(f"--length {length} is more than the {most} positions of the model.")
    shape = (num_rows, length)
    rows = {name: np.zeros(shape, "int32") for name in backbone.input}
    rows["padding_mask"] += 1
    rows["token_ids"] += np.random.default_rng(0).integers(
        backbone.vocabulary_size // 2, backbone.vocabulary_size, shape, "int32"
    )
    return rows


def count_operations(backbone, length):
    """The multiplications and additions of the layers for a row, forward."""
    width, inner = backbone.hidden_dim, backbone.intermediate_dim
    weights = 4 * width**2 + 2 * width * inner
    return backbone.num_layers * length * (2 * weights + 4 * width * length)


def find_peak(dtype):
    """The operations/s of a product of two large matrices, the best of six."""
    size, seconds = 512, 0.0
    while seconds < 0.02 and size < 16384:
        size *= 2
        x = ops.cast(ops.ones((size, size)), dtype)
        seconds = min(_time_product(x) for _ in range(6))
    return 2 * size**3 / seconds


def _time_product(x):
    begin = time.perf_counter()
    product = linear(x, x) if keras.config.backend() == "torch" else ops.matmul(x, x)
    float(product[0, 0])  # waits for the device
    return time.perf_counter() - begin


def find_device():
    """The name of the accelerator, or None."""
    backend = keras.config.backend()
    if backend == "torch":
        import torch

        return torch.cuda.get_device_name() if torch.cuda.is_available() else None
    if backend == "jax":
        import jax

        device = jax.devices()[0]
        return None if device.platform == "cpu" else device.device_kind
    import tensorflow as tf

    devices = tf.config.list_physical_devices("GPU")
    return tf.config.experimental.get_device_details(devices[0])["device_name"] if devices else None


def find_memory(device):
    """The most GB that were taken, of the accelerator if there is one, so far.

    None if the backend does not tell.
    """
    backend = keras.config.backend()
    if device is None:
        try:
            import resource
        except ImportError:  # Windows
            return None
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9
    if backend == "torch":
        import torch

        return torch.cuda.max_memory_allocated() / 1e9
    if backend == "jax":
        import jax

        statistics = jax.devices()[0].memory_stats() or {}
        return statistics.get("peak_bytes_in_use", 0) / 1e9 or None
    import tensorflow as tf

    return tf.config.experimental.get_memory_info("GPU:0")["peak"] / 1e9


if __name__ == "__main__":
    try:
        print(json.dumps(measure(**json.loads(sys.argv[1]))))
    except (ValueError, OSError, ImportError) as error:
        sys.exit(" ".join(str(error).split()))
