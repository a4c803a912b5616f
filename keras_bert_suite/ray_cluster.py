"""Starts Ray on this machine, or joins a cluster."""

import contextlib
import os
import re
import socket
import sys
import threading
from collections.abc import Iterator
from typing import Any

#: The variables of the environment that the processes of a cluster must share with this one.
_SHARED = ("KERAS_BACKEND", "TF_CPP_MIN_LOG_LEVEL", "TF_ENABLE_ONEDNN_OPTS", "PYTHONPATH")

#: How long an execution of Ray Data that has been ended may take to end.
_MOST_SECONDS = 60


def import_ray() -> Any:
    """The module `ray`. Without it an ImportError names the package."""
    try:
        import ray
        import ray.data  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"engine='ray' needs Ray Data ({error}): pip install 'keras-bert-suite[ray]'. Without "
            "it, one process answers with engine='local'."
        ) from error
    return ray


@contextlib.contextmanager
def ray_cluster(address: str | None = None, workers: int | None = None) -> Iterator[Any]:
    """Yields the module `ray`, connected to a cluster while the block runs.

    A program that is connected already keeps its connection. Processes of Python on the cluster get
    `KERAS_BACKEND` of this one.

    Args:
        address: str, of a cluster, as `ray.init` takes it: "auto", "host:6379", "ray://host:10001".
            None starts Ray on this machine.
        workers: int, the processes that will work at once on this machine; None for a process for
            each processor.

    Raises:
        ImportError: without Ray Data.
        ConnectionError: if there is no cluster at the address, or Ray does not start here.
    """
    ray = import_ray()
    if ray.is_initialized():
        yield ray
        return
    shared = {name: os.environ[name] for name in _SHARED if name in os.environ}
    if address is None:  # On other machines, paths of this one may not be there.
        shared["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)
    else:
        shared.pop("PYTHONPATH", None)
    options: dict[str, Any] = {"runtime_env": {"env_vars": shared}, "log_to_driver": False}
    if address is None:
        # One more than the workers, for the tasks that hand them their rows.
        options["num_cpus"] = None if workers is None else workers + 1
        options["include_dashboard"] = False
    try:
        _reach(address)
        ray.init(address=address or "local", logging_level="ERROR", **options)
    except Exception as error:  # A start that takes too long is a plain Exception.
        if address is None:
            raise ConnectionError(
                f"Ray does not start on this machine: {error} Without it, use engine='local'."
            ) from error
        raise ConnectionError(
            f"There is no Ray cluster at {address}: {error}. Start one with `ray start --head`, "
            "name its address, or leave the address out to use this machine."
        ) from error
    try:
        yield ray
    finally:
        _wait_for_executions()
        ray.shutdown()


def _wait_for_executions() -> None:
    """Waits until Ray Data has ended what it was told to end.

    Ray Data waits two seconds for the thread of an execution. A thread that is slower would start
    Ray anew, and with the end of the thread ends that Ray, and a minute later this process.
    """
    for thread in threading.enumerate():
        if thread.name.startswith("StreamingExecutor"):
            thread.join(_MOST_SECONDS)


def _reach(address: str | None) -> None:
    """Raises an OSError if nothing answers at host:port, for which Ray waits some minutes."""
    named = re.fullmatch(r"(?:ray://)?(.+):(\d+)", address or "")
    if named is not None:
        socket.create_connection((named[1].strip("[]"), int(named[2])), timeout=20).close()
