"""Compares the processes that share a call, and gives them the same weights."""

import grain
import keras

from keras_bert_suite.data.input_dataset import list_sources, num_batches
from keras_bert_suite.replicas import count_replicas, find_local_replicas, find_process, take_share
from keras_bert_suite.replicas.processes import check_same, copy_from_leader, digest_batch
from keras_bert_suite.runs.torch_generators import separate_generators
from keras_bert_suite.training.gradient_sums import list_accumulators

#: How many batches are compared between the processes.
COMPARED_BATCHES = 4


def check_shares(optimizer, dataset):
    """Checks that replicas can share the batches of a `fit`.

    A dataset may have a `batch_size`, as `RowBatches` and `PretrainingBatches` have.
    """
    num_replicas = count_replicas()
    if num_replicas == 1:
        return
    # The outermost dataset that knows it: a mixture has larger batches than its parts.
    sizes = (getattr(source, "batch_size", None) for source in list_sources(dataset))
    size = next((size for size in sizes if isinstance(size, int)), None)
    # A single batch may have any size, as the last one may.
    if size is not None and size % num_replicas and num_batches(dataset) != 1:
        near = max(size // num_replicas, 1) * num_replicas
        raise ValueError(
            f"batch_size={size} is the size of a whole batch, and {num_replicas} replicas "
            f"cannot share it evenly. Pass a multiple of {num_replicas}, such as {near}."
        )
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    steps = getattr(optimizer, "gradient_accumulation_steps", None)
    if steps and len(find_local_replicas()) > 1:
        raise ValueError(
            f"gradient_accumulation_steps={steps} does not go with {num_replicas} devices under "
            "TensorFlow, which cannot sum over devices within a condition. Drop it and raise "
            "batch_size, or train under PyTorch or JAX."
        )


def copy_weights(task):
    """Gives all processes the weights of the first, and each process different random numbers."""
    if find_process().count == 1:
        return
    # Between two updates each process has the gradients of its rows.
    own = {id(variable) for variable in list_accumulators(task.optimizer)}
    shared = [variable for variable in task.optimizer.variables if id(variable) not in own]
    copy_from_leader([*task.trainable_variables, *task.non_trainable_variables, *shared])
    separate_generators()


def start_jointly(task, run):
    """Compares the processes that share a `fit`, and gives them the weights of the first."""
    if find_process().count == 1:
        return
    optimizer = keras.optimizers.serialize(task.optimizer)["config"]
    check_shared(
        task,
        {"data": run.training, "validation data": run.validation},
        optimizer={**optimizer, "name": None},  # Keras numbers the optimizers of a process.
        technique=keras.saving.serialize_keras_object(getattr(task, "technique", None)),
        epochs=run.epochs,
        initial_epoch=run.initial_epoch,
        steps_per_epoch=run.steps_per_epoch,
        validation_steps=run.validation_steps,
        progress=run.progress,
    )
    copy_weights(task)


def check_shared(task, sources, **facts):
    """Compares the processes that share a `fit` or `evaluate`, or under JAX a `predict`.

    `sources` is a dict of name -> `Batches`, or None if there is no row. If models, data or
    `facts` differ, all processes raise a ValueError.
    """
    if find_process().count == 1:
        return
    joint = {
        "model": [(v.path, tuple(v.shape), v.trainable) for v in task.variables],
        "loss": keras.tree.map_structure(_name_loss, getattr(task, "loss", None)),
    }
    for name, source in sources.items():
        joint[f"number of batches of the {name}"] = source and source.num_batches
        joint[name] = source and _digest_batches(source)
    check_same({**joint, **facts})


def share_batch(call, batch):
    """Compares the batch of `train_on_batch` or `test_on_batch` between the processes.

    It returns the rows that this process takes. Under JAX a step takes all of them, and under
    TensorFlow each device takes all of them.
    """
    if find_process().count == 1:
        return batch
    check_same({"call": call, "batch": digest_batch(batch)})
    return take_share(batch, *find_local_replicas())


def _name_loss(loss):
    return loss if isinstance(loss, str) else getattr(loss, "__name__", type(loss).__name__)


def _digest_batches(source):
    """Texts for some batches of a dataset that can be read at random; None for another dataset."""
    if not isinstance(source.dataset, grain.MapDataset):
        return None
    if source.num_batches is None:  # The dataset repeats without end.
        indices = range(COMPARED_BATCHES)
    else:
        indices = range(0, source.num_batches, -(-source.num_batches // COMPARED_BATCHES))
    return [digest_batch(source.pack(source.dataset[index])) for index in indices]
