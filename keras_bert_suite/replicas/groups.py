"""Finds out which processes and which devices share each batch."""

import dataclasses
import sys

import keras


@dataclasses.dataclass(frozen=True)
class Group:
    """The place of this process among the processes that share each batch.

    Args:
        index: int, from 0.
        count: int, at least 1.
    """

    index: int = 0
    count: int = 1

    @property
    def leads(self) -> bool:
        """bool, whether this process writes the files and the progress of all processes."""
        return self.index == 0


def find_group() -> Group:
    """The processes that share each batch.

    - PyTorch: those of `torch.distributed`, once its `init_process_group` was called.
    - JAX: all processes, under a `keras.distribution`.
    - TensorFlow: this process alone. A strategy splits the batches of a process over its devices.
    """
    if keras.config.backend() == "torch":
        processes = find_torch_processes()
        return Group() if processes is None else Group(processes.get_rank(), _world_size(processes))
    if keras.config.backend() == "jax" and keras.distribution.distribution() is not None:
        import jax

        return Group(jax.process_index(), jax.process_count())
    return Group()


def count_replicas() -> int:
    """int, the replicas that share each batch; 1 without any distribution.

    - PyTorch: the processes of `torch.distributed`.
    - JAX: the devices along the axis of `keras.distribution` that splits batches.
    - TensorFlow: the devices of the strategy in whose scope or step this function is called.
    """
    backend = keras.config.backend()
    if backend == "torch":
        processes = find_torch_processes()
        return 1 if processes is None else _world_size(processes)
    if backend == "jax":
        distribution = keras.distribution.distribution()
        if distribution is None:
            return 1
        mesh = distribution.device_mesh
        return mesh.shape[mesh.axis_names.index(distribution.batch_dim_name)]
    # Without an import of TensorFlow there is no strategy.
    tensorflow = sys.modules.get("tensorflow")
    return 1 if tensorflow is None else tensorflow.distribute.get_strategy().num_replicas_in_sync


def find_torch_processes():
    """The module `torch.distributed` if it has several processes to talk to, otherwise None."""
    import torch

    processes = torch.distributed
    if not processes.is_available() or not processes.is_initialized():
        return None
    return processes if _world_size(processes) > 1 else None


def _world_size(processes) -> int:
    return processes.get_world_size()
