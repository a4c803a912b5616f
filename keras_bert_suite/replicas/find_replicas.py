"""Finds out which processes and which devices share each batch."""

import dataclasses
import functools
import sys
from collections.abc import Callable
from typing import Any

import keras


@dataclasses.dataclass(frozen=True)
class Member:
    """The number of this process, from 0, among the processes that share each batch."""

    index: int = 0
    count: int = 1

    @property
    def leads(self) -> bool:
        """bool, whether this process writes the files and the progress of all processes."""
        return self.index == 0


def find_process() -> Member:
    """The processes that share each batch.

    - PyTorch: the processes of `torch.distributed`, once its `init_process_group` was called.
    - JAX: all processes, under a `keras.distribution`.
    - TensorFlow: this process alone. A strategy splits the batches of a process over its devices.
    """
    if keras.config.backend() == "torch":
        processes = find_torch_processes()
        if processes is None:
            return Member()
        return Member(processes.get_rank(), processes.get_world_size())
    if keras.config.backend() == "jax" and keras.distribution.distribution() is not None:
        import jax

        return Member(jax.process_index(), jax.process_count())
    return Member()


def has_joint_variables() -> bool:
    """Whether each process holds only a part of the variables, as several processes of JAX do.

    Then each process writes and reads its part.
    """
    return keras.config.backend() == "jax" and find_process().count > 1


def count_replicas() -> int:
    """int, the replicas that share each batch; 1 without any distribution.

    - PyTorch: the processes of `torch.distributed`.
    - JAX: the devices along the axis of `keras.distribution` that splits batches.
    - TensorFlow: the devices of the strategy in whose scope or step this function is called.
    """
    backend = keras.config.backend()
    if backend == "torch":
        return find_process().count
    if backend == "jax":
        distribution = keras.distribution.distribution()
        if distribution is None:
            return 1
        mesh = distribution.device_mesh
        return mesh.shape[mesh.axis_names.index(distribution.batch_dim_name)]
    # Without an import of TensorFlow there is no strategy.
    tensorflow = sys.modules.get("tensorflow")
    return 1 if tensorflow is None else tensorflow.distribute.get_strategy().num_replicas_in_sync


def find_replica() -> Any:
    """int or int32 scalar tensor, the number of this replica within a step under TensorFlow.

    It is 0 outside of the steps of a strategy.
    """
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    return 0 if context is None else context.replica_id_in_sync_group


def find_local_replicas() -> tuple[Member, ...]:
    """The replicas that take their rows from this process, one after the other.

    It is one replica, but under TensorFlow each device of the strategy. Under JAX a process hands
    over whole batches, see `whole_batches`.
    """
    if keras.config.backend() == "jax":
        return (Member(),)
    if keras.config.backend() != "tensorflow":
        return (find_process(),)
    count = count_replicas()
    return tuple(Member(index, count) for index in range(count))


def drop_copies(model: Any, outputs: Any) -> Any:
    """The outputs of `predict_on_batch` for one copy of the batch.

    Under a strategy of TensorFlow, Keras gives the whole batch to each device, and joins the
    outputs: arrays (n B, ...) of n devices.
    """
    strategy = getattr(model, "distribute_strategy", None)
    count = 1 if strategy is None else strategy.num_replicas_in_sync
    if count == 1:
        return outputs
    return keras.tree.map_structure(lambda array: array[: len(array) // count], outputs)


def take_first_share(batches: Any) -> Any:
    """The batch of the first replica, of nested arrays that may be values of several replicas."""

    def take(x: Any) -> Any:
        values = getattr(x, "values", None)
        return values[0] if isinstance(values, tuple) else x

    return keras.tree.map_structure(take, batches)


def in_scope_of_model(method: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a method of a model run in the scope of the strategy in which the model was made.

    It changes nothing but under TensorFlow, where other scopes have other variables.
    """

    @functools.wraps(method)
    def call(model: Any, *args: Any, **kwargs: Any) -> Any:
        strategy = getattr(model, "distribute_strategy", None)
        if strategy is None or strategy.num_replicas_in_sync == 1:
            return method(model, *args, **kwargs)
        with strategy.scope():
            return method(model, *args, **kwargs)

    return call


def find_torch_processes():
    """The module `torch.distributed` if it has several processes to talk to, otherwise None.

    It is None under other backends.
    """
    if keras.config.backend() != "torch":
        return None
    import torch

    processes = torch.distributed
    if not processes.is_available() or not processes.is_initialized():
        return None
    return processes if processes.get_world_size() > 1 else None
