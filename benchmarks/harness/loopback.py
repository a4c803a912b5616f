"""What processes of this host need to find each other."""

import os
import socket


def find_free_port():
    """int, a port of this host that no process listens to."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def make_environment(rank, count, port):
    """dict, the environment of a process as `torchrun` sets it, which shares the cores."""
    variables = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": count,
        "LOCAL_WORLD_SIZE": count,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "OMP_NUM_THREADS": max(1, (os.cpu_count() or 1) // count),
    }
    return {name: str(value) for name, value in variables.items()}
