"""Runs a function of a test in processes of their own."""

import os
import pickle
import socket
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def start_processes(count, module, function, *arguments, folder, environment=()):
    """Starts processes that call `function(rank, *arguments)` of a module of the tests.

    The function yields pairs (name, result).

    Args:
        count: int. If there are several, PyTorch or JAX joins them on a loopback address.
        module, function: str.
        *arguments: str.
        folder: `pathlib.Path`, where they write their results.
        environment: dict of further variables.

    Returns:
        list of (`subprocess.Popen`, `pathlib.Path` of its result), for `read_results`.
    """
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    command = [sys.executable, str(FOLDER / "worker.py")]
    return [
        (
            subprocess.Popen(
                [*command, *map(str, (rank, count, port, out, module, function, *arguments))],
                env={**os.environ, **dict(environment)},
            ),
            out,
        )
        for rank in range(count)
        for out in [folder / f"result-{rank}"]
    ]


def read_results(processes, timeout=240):
    """The results of processes, in their order: dicts of name -> result of the steps they ended."""
    try:
        for process, _ in processes:
            process.wait(timeout)
    finally:
        for process, _ in processes:
            process.kill()
    return [pickle.loads(out.read_bytes()) if out.is_file() else {} for _, out in processes]
