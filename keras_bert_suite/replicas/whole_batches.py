"""Hands whole batches to `keras.distribution`, and splits them within the step.

Keras takes the rows of each process and puts them together. So the devices must divide each batch,
also the last of an epoch (keras#21167), and only `tf.data` is split by Keras itself. Here every
process passes the whole batch, which it makes anyway. The compiled step splits it. If the number of
devices does not divide the batch, each device computes the whole batch: slower, with the same
result.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import keras

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.replicas.find_replicas import Member, count_replicas


class WholeBatches(keras.distribution.DataParallel):
    """The distribution of another one, which lays out the variables, for whole batches.

    Every process hands over the whole batch.
    """

    def __init__(self, distribution: Any) -> None:
        # The constructor of `DataParallel` takes a mesh of one axis alone.
        super(keras.distribution.DataParallel, self).__init__(
            distribution.device_mesh, distribution.batch_dim_name, auto_shard_dataset=False
        )
        self._distribution = distribution

    @property
    def num_model_replicas(self) -> int:
        """int, the copies of the model."""
        return self._distribution.num_model_replicas

    def get_data_layout(self, data_shape: Sequence[int]) -> keras.distribution.TensorLayout:
        """The layout of an array of a batch: each device gets all of it."""
        return keras.distribution.TensorLayout([None] * len(data_shape), self.device_mesh)

    def get_variable_layout(self, variable: Any) -> keras.distribution.TensorLayout:
        """The layout of a variable, as the other distribution has it."""
        return self._distribution.get_variable_layout(variable)

    def get_tensor_layout(self, path: str) -> keras.distribution.TensorLayout | None:
        """The layout of the output of a layer, as the other distribution has it."""
        return self._distribution.get_tensor_layout(path)


@contextlib.contextmanager
def whole_batches() -> Iterator[None]:
    """Lets every process hand over whole batches, while the block runs. JAX alone needs it."""
    distribution = _find_distribution()
    if distribution is None or isinstance(distribution, WholeBatches):
        yield
        return
    with WholeBatches(distribution).scope():
        yield


def take_share(batch: Any, member: Member) -> Any:
    """The rows of a batch that one replica takes: neighbours, and as many as the others take.

    The batch is the same in all processes. So its lengths of padding do not depend on the number of
    replicas. If they do not divide the rows, the shares differ by one row. A share may be empty.
    The shortest array (B, ...) has the number of rows B. An array (k B, ...) has `k` entries for
    each row, such as texts, one after the other.
    """
    if member.count == 1:
        return batch
    sizes = {
        len(array) if array.shape else 0 for array in keras.tree.flatten(batch) if array is not None
    }
    num_rows = min(sizes)
    wrong = [size for size in sizes if size % max(num_rows, 1)]
    if num_rows == 0 or wrong:
        raise ValueError(
            f"A batch for {member.count} replicas is cut by rows, and this one has arrays of "
            f"{sorted(sizes)} entries. Make batches in which each row has the same number of "
            "entries."
        )
    # The first replicas have a row more.
    first, last = (-(-num_rows * (member.index + i) // member.count) for i in (0, 1))

    def cut(array: Any) -> Any:
        if array is None:
            return None
        entries = len(array) // num_rows
        return array[first * entries : last * entries]

    return keras.tree.map_structure(cut, batch, none_is_leaf=True)


def split_rows(batch: Any) -> Any:
    """Splits the rows of a batch among the devices, within a compiled step of JAX.

    An array whose rows the devices do not divide stays whole on each of them.
    """
    distribution = _find_distribution()
    if distribution is None:
        return batch
    num_replicas = count_replicas()

    def split(array: Tensor) -> Tensor:
        if array is None or not array.shape or array.shape[0] % num_replicas:
            return array
        axes = (distribution.batch_dim_name, *[None] * (len(array.shape) - 1))
        layout = keras.distribution.TensorLayout(axes, distribution.device_mesh)
        return keras.distribution.distribute_tensor(array, layout)

    return keras.tree.map_structure(split, batch, none_is_leaf=True)


def join_rows(outputs: Any) -> Any:
    """Gives each device all rows of the outputs of a step, so that each process can read them."""
    distribution = _find_distribution()
    if distribution is None:
        return outputs
    return keras.tree.map_structure(
        lambda array: keras.distribution.distribute_tensor(
            array, keras.distribution.TensorLayout((), distribution.device_mesh)
        ),
        outputs,
    )


def _find_distribution() -> Any:
    """The distribution under which JAX takes its steps, or None."""
    return keras.distribution.distribution() if keras.config.backend() == "jax" else None
