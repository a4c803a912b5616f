"""Measures a machine: its device, its peak speed and memory, and the work of a model.

The functions that ask for the backend are for the processes of `side_runs.py`: they read
KERAS_BACKEND, so that a peer's process need not import Keras.
"""

import os
import platform
import sys
import time
from pathlib import Path

#: The vector instructions that matter for products, as Linux names them.
INSTRUCTIONS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "asimd", "bf16")


def count_operations(num_layers, hidden_dim, intermediate_dim, lengths):
    """The multiplications and additions of the layers of a BERT, forward, for some rows.

    The products of the dense layers and of attention are counted. A training step has three times
    as many: the gradient of a product is two products.

    Args:
        num_layers, hidden_dim, intermediate_dim: int.
        lengths: the tokens of each row that are no padding, ints.

    Returns:
        int, for all rows.
    """
    weights = 4 * hidden_dim**2 + 2 * hidden_dim * intermediate_dim
    each = (int(length) * (2 * weights + 4 * hidden_dim * int(length)) for length in lengths)
    return num_layers * sum(each)


def find_peak(dtype):
    """The operations/s of a product of two large matrices, the best of six.

    Args:
        dtype: str, the dtype of the matrices.
    """
    import keras

    size, seconds = 512, 0.0
    while seconds < 0.02 and size < 16384:
        size *= 2
        # A GPU multiplies ones faster than numbers.
        x = keras.random.normal((size, size), dtype=dtype, seed=0)
        seconds = min(_time_product(x) for _ in range(6))
    return 2 * size**3 / seconds


def _time_product(x):
    from keras import ops

    from keras_bert_suite.layers.torch_products import linear

    begin = time.perf_counter()
    product = linear(x, x) if _backend() == "torch" else ops.matmul(x, x)
    float(product[0, 0])  # waits for the device
    return time.perf_counter() - begin


def find_device():
    """The name of the accelerator, or None. A process without the backend has used none."""
    library = sys.modules.get(_backend())
    if library is None:
        return None
    if _backend() == "torch":
        return library.cuda.get_device_name() if library.cuda.is_available() else None
    if _backend() == "jax":
        device = library.devices()[0]
        return None if device.platform == "cpu" else device.device_kind
    gpus = library.config.list_physical_devices("GPU")
    details = library.config.experimental.get_device_details
    return details(gpus[0])["device_name"] if gpus else None


def find_memory(device):
    """The most GB (1e9 bytes) that this process has had, of the accelerator if there is one.

    None if the backend or the system does not tell.

    Args:
        device: as `find_device` returns it.
    """
    if device is None:
        try:
            import resource
        except ImportError:  # Windows
            return None
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9
    library = sys.modules[_backend()]
    if _backend() == "torch":
        return library.cuda.max_memory_allocated() / 1e9
    if _backend() == "jax":
        statistics = library.devices()[0].memory_stats() or {}
        return statistics.get("peak_bytes_in_use", 0) / 1e9 or None
    return library.config.experimental.get_memory_info("GPU:0")["peak"] / 1e9


def _backend():
    return os.environ["KERAS_BACKEND"]


def describe_processor():
    """The cores, the name and the vector instructions of the processor."""
    name, known = platform.processor() or platform.machine(), []
    table = Path("/proc/cpuinfo")
    if table.exists():
        lines = table.read_text(encoding="utf-8", errors="replace").splitlines()
        fields = dict(reversed([line.partition(":")[::2] for line in lines if ":" in line]))
        fields = {key.strip(): value.strip() for key, value in fields.items()}
        name = fields.get("model name", name)
        words = (fields.get("flags") or fields.get("Features") or "").split()
        known = [word for word in INSTRUCTIONS if word in words]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} cores of {name}" + (f" ({', '.join(known)})" if known else "")
