"""A process of a test: `python worker.py RANK COUNT PORT OUT MODULE FUNCTION [ARGUMENT ...]`."""

import datetime
import importlib
import os
import pickle
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def main():
    """Calls the function, which yields (name, result), and writes all results so far to OUT."""
    rank, count, port, out, module, function, *arguments = sys.argv[1:]
    sys.path[0] = str(FOLDER.parent)
    if os.environ["KERAS_BACKEND"] != "tensorflow":
        # KerasHub imports TensorFlow where it is, which takes most of the time of the imports.
        sys.modules.update(tensorflow=None, tensorflow_text=None)
    if int(count) > 1:
        join_processes(int(rank), int(count), port)
    found = {}
    steps = getattr(importlib.import_module(module), function)(int(rank), *arguments)
    for name, result in steps:
        found[name] = result
        Path(f"{out}.new").write_bytes(pickle.dumps(found))
        Path(f"{out}.new").rename(out)


def join_processes(rank, count, port):
    """Joins the processes of PyTorch, or of JAX."""
    if os.environ["KERAS_BACKEND"] == "jax":
        import jax

        jax.distributed.initialize(f"127.0.0.1:{port}", count, rank, heartbeat_timeout_seconds=10)
        return
    import torch

    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo",
        init_method=f"tcp://127.0.0.1:{port}",
        rank=rank,
        world_size=count,
        timeout=datetime.timedelta(seconds=60),
    )


if __name__ == "__main__":
    main()
