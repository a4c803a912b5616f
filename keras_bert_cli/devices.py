"""Trains on several devices: `--devices` of a command, by each backend's own means.

Under PyTorch each device has a process, which `torchrun` starts. Under TensorFlow and JAX one
process has all devices of its host.
"""

import contextlib
import json
import os
from pathlib import Path

from .command_flags import UsageError

#: The variables that `torchrun` sets in the environment of each process.
TORCHRUN = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def define_devices_flag(flags):
    """Defines --devices."""
    explanation = (
        "Devices that share each batch: a number, or all. On a CPU, a number of processes or "
        "logical devices. Default: one device."
    )
    flags.text("devices", None, explanation)


def find_backend(name):
    """The backend that Keras will be imported with, found without importing it."""
    if name or os.environ.get("KERAS_BACKEND"):
        return name or os.environ["KERAS_BACKEND"]
    home = os.environ.get("KERAS_HOME") or os.path.expanduser("~/.keras")
    with contextlib.suppress(OSError, ValueError):
        return json.loads(Path(home, "keras.json").read_text(encoding="utf-8"))["backend"]
    return "tensorflow"


def needs_processes(values):
    """Whether this process must start one process for each device, and do nothing else."""
    if "devices" not in values or values.devices is None:
        return False
    check_devices(values.devices)
    started = all(name in os.environ for name in TORCHRUN)
    return find_backend(values.backend) == "torch" and not started


def is_leader(values):
    """Whether this process writes the files and the messages of the command."""
    return values.devices is None or find_rank(values) == 0


def find_rank(values):
    """int, the number of this process among PyTorch's."""
    is_torch = find_backend(values.backend) == "torch"
    return int(os.environ.get("RANK", 0)) if is_torch else 0


def check_devices(devices):
    """Raises a `UsageError` if --devices is neither "all" nor a number of at least 1."""
    if devices != "all" and not (devices.isdecimal() and int(devices) >= 1):
        raise UsageError(f"--devices must be all or a number of at least 1, got {devices!r}")


def choose_number(devices, kind, available):
    """int, the devices to take, of --devices and of a kind: "CPU", "GPU" or "TPU".

    On a CPU any number can be made. More than are available of another kind is a `UsageError`.
    """
    number = available if devices == "all" else int(devices)
    if kind != "CPU" and number > available:
        raise UsageError(f"--devices={devices}, but there are {available} devices of kind {kind}")
    return number


def run_processes(devices, arguments):
    """Has PyTorch's `torchrun` run this command, a list of str, once for each device.

    The process of the first device prints. SIGTERM and SIGINT go to all processes. If one fails,
    `torchrun` names it and ends the others. The result is the exit status of the first that failed,
    128 and the number of the signal that has ended it, or 0.
    """
    import torch
    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    is_gpu = torch.cuda.is_available()
    available = torch.cuda.device_count() if is_gpu else os.cpu_count()
    count = choose_number(devices, "GPU" if is_gpu else "CPU", available)
    # `torchrun` would let each process take one core.
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // count)))
    host = ["--standalone", "--local-addr=127.0.0.1", f"--nproc-per-node={count}"]
    try:
        run.main([*host, "--module", "keras_bert_cli", *arguments])
    except SignalException as error:
        return 128 + error.sigval
    except ChildFailedError as error:
        status = error.get_first_failure()[1].exitcode
        return status if status > 0 else 128 - status
    return 0


@contextlib.contextmanager
def use_devices(values):
    """Within the block, models are made and trained on the devices of --devices."""
    if values.devices is None:
        yield
        return
    import keras

    with _USES[keras.config.backend()](values.devices):
        yield


@contextlib.contextmanager
def _use_torch(devices):
    import torch

    if not torch.distributed.is_available():
        raise UsageError("--devices needs a PyTorch with torch.distributed, and this one has none")
    is_gpu = torch.cuda.is_available()
    if is_gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    # Messages between processes go beside the GPU.
    torch.distributed.init_process_group("cpu:gloo,cuda:nccl" if is_gpu else "gloo")
    with contextlib.ExitStack() as stack:
        if torch.distributed.get_rank() > 0:
            nowhere = stack.enter_context(open(os.devnull, "w"))
            stack.enter_context(contextlib.redirect_stdout(nowhere))
        yield
    torch.distributed.destroy_process_group()


@contextlib.contextmanager
def _use_tensorflow(devices):
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    number = choose_number(devices, "GPU" if gpus else "CPU", len(gpus) or 1)
    if not gpus:
        processor = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(
            processor, [tf.config.LogicalDeviceConfiguration()] * number
        )
    kind = "GPU" if gpus else "CPU"
    strategy = tf.distribute.MirroredStrategy([f"{kind}:{i}" for i in range(number)])
    with strategy.scope():
        yield


@contextlib.contextmanager
def _use_jax(devices):
    import jax
    import keras

    if devices != "all" and "JAX_NUM_CPU_DEVICES" not in os.environ:
        jax.config.update("jax_num_cpu_devices", int(devices))
    found = jax.devices()
    number = choose_number(devices, found[0].platform.upper(), len(found))
    names = keras.distribution.list_devices()[:number]
    # The batches are shared by our own functions.
    distribution = keras.distribution.DataParallel(devices=names, auto_shard_dataset=False)
    with distribution.scope():
        yield


_USES = {"torch": _use_torch, "tensorflow": _use_tensorflow, "jax": _use_jax}
