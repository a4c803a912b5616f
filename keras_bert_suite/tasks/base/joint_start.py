"""Compares the processes that share a call, and gives them the same weights."""

import hashlib
import json

import grain
import keras

from keras_bert_suite.data.input_dataset import list_sources, unpack_batch
from keras_bert_suite.data.rows import Rows
from keras_bert_suite.replicas import count_replicas, find_group, find_groups, take_share
from keras_bert_suite.replicas.compared_batches import digest_batch
from keras_bert_suite.replicas.process_watch import check_calls
from keras_bert_suite.replicas.processes import copy_from_leader, exchange
from keras_bert_suite.training import separate_generators
from keras_bert_suite.training.accumulated_gradients import list_accumulators

#: How many batches are compared between the processes.
COMPARED_BATCHES = 4


def check_data(data, batch_size, shuffle):
    """Checks that replicas can share the batches of a `fit`.

    Args:
        data: `Rows`, or a dataset. A dataset may have a `batch_size`, as `PretrainingBatches` has.
        batch_size: int, the rows of a whole batch of `Rows`.
        shuffle: bool, whether a `keras.utils.PyDataset` is shuffled.

    Raises:
        ValueError: if the number of replicas does not divide the size of a batch, or if each
            process would shuffle the batches in another way.
    """
    num_replicas = count_replicas()
    if num_replicas == 1:
        return
    if isinstance(data, Rows):
        size = batch_size if batch_size < len(data) else None
    else:
        # The outermost dataset that knows it: a mixture has larger batches than its parts.
        sizes = (getattr(source, "batch_size", None) for source in list_sources(data))
        size = next((size for size in sizes if isinstance(size, int)), None)
    if size is not None and size % num_replicas:
        near = max(size // num_replicas, 1) * num_replicas
        raise ValueError(
            f"batch_size={size} is the size of a whole batch, and {num_replicas} replicas "
            f"cannot share it evenly. Pass a multiple of {num_replicas}, such as {near}."
        )
    if find_group().count == 1:
        return
    # A DataLoader(shuffle=True) draws its order from the random state of its own process.
    sampler = getattr(data, "sampler", None)
    is_random = type(sampler).__name__ == "RandomSampler" and sampler.generator is None
    if is_random or isinstance(data, keras.utils.PyDataset) and shuffle:
        raise ValueError(
            f"Each of the {find_group().count} processes would shuffle the batches of "
            f"{type(data).__name__} in another way. Pass shuffle=False and shuffle within the "
            "dataset by a common seed (a DataLoader takes a seeded `generator`), or pass a "
            "grain.MapDataset."
        )


def check_strategy(optimizer):
    """Checks that a strategy of TensorFlow can take the steps of an optimizer.

    Raises:
        ValueError: if it cannot.
    """
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    steps = getattr(optimizer, "gradient_accumulation_steps", None)
    if steps and len(find_groups()) > 1:
        raise ValueError(
            f"gradient_accumulation_steps={steps} does not go with {count_replicas()} devices "
            "under TensorFlow, which cannot sum over devices within a condition. Drop it and raise "
            "batch_size, or train under PyTorch or JAX."
        )


def start_jointly(task, run):
    """Compares the processes that share a `fit`, and gives them the weights of the first process.

    Random generators get other states in each process but the first, so that dropout differs.

    Args:
        task: compiled `RowTask` with a built optimizer.
        run: `TrainingRun`.

    Raises:
        ValueError: in all processes, if they have different models, arguments or data.
    """
    if find_group().count == 1:
        return
    check_same(
        "fit",
        {
            **_describe_model(task),
            "optimizer": _describe_optimizer(task.optimizer),
            "epochs": run.epochs,
            "initial_epoch": run.initial_epoch,
            "steps_per_epoch": run.steps_per_epoch,
            "validation_steps": run.validation_steps,
            "progress": run.progress,
            **_describe_data("data", run.training),
            **_describe_data("validation data", run.validation),
        },
    )
    copy_weights(task)


def copy_weights(task):
    """Gives all processes the weights of the first, and each of them random numbers of its own.

    Args:
        task: compiled `RowTask` with a built optimizer.
    """
    if find_group().count == 1:
        return
    # Between two updates each process has gradients of its own rows.
    own = {id(variable) for variable in list_accumulators(task.optimizer)}
    shared = [variable for variable in task.optimizer.variables if id(variable) not in own]
    copy_from_leader([*task.variables, *shared])
    separate_generators()


def check_shared(call, task, source, steps):
    """Compares the processes that share an `evaluate`, or under JAX a `predict`.

    Args:
        call: str, the name of the method.
        task: `RowTask`.
        source: `BatchSource`, or None if there is no row.
        steps: int or None, how many batches the method takes.

    Raises:
        ValueError: in all processes, if they have different models, arguments or data.
    """
    if find_group().count > 1:
        data = _describe_data("data", source)
        check_same(call, {**_describe_model(task), **data, "steps": steps})


def share_batch(call, batch):
    """Compares the batch of `train_on_batch` or `test_on_batch` between the processes.

    Args:
        call: str, the name of the method.
        batch: nested dicts and tuples of arrays (B, ...), the whole batch.

    Returns:
        the rows that this process takes. Under JAX a step takes all of them, and under TensorFlow
        each device takes all of them.

    Raises:
        ValueError: in all processes, if one has called another method, or has another batch.
    """
    if find_group().count == 1:
        return batch
    check_calls(call)
    check_same(call, {"batch": digest_batch(batch)})
    return take_share(batch, *find_groups())


def check_same(call, facts):
    """Checks that all processes have the same facts.

    Args:
        call: str, the name of the method that the processes share.
        facts: dict of name -> an object that JSON can write.

    Raises:
        ValueError: in all processes, if one has another fact than the first process.
    """
    texts = {name: json.dumps(fact, sort_keys=True, default=str) for name, fact in facts.items()}
    digests = {name: _digest(text) for name, text in texts.items()}
    shown = {name: text[:100] for name, text in texts.items()}
    first, *others = exchange((digests, shown))
    for index, (theirs, their_texts) in enumerate(others, start=1):
        for name in digests:
            if theirs.get(name) != first[0].get(name):
                raise ValueError(
                    f"Processes share `{call}`, but process {index} has another {name} than "
                    f"process 0: {their_texts.get(name)} instead of {first[1].get(name)}. Start "
                    "all processes with the same arguments and the same data. Each takes its rows "
                    "of every batch itself."
                )


def _describe_model(task):
    return {
        "model": [(v.path, tuple(v.shape), v.trainable) for v in task.variables],
        "loss": keras.tree.map_structure(_name_loss, getattr(task, "loss", None)),
    }


def _describe_data(name, source):
    """Facts about a `BatchSource`, or about None, which has no batch."""
    digests = None if source is None else _digest_batches(source)
    number = 0 if source is None else source.num_batches
    return {f"number of batches of the {name}": number, name: digests}


def _describe_optimizer(optimizer):
    config = dict(keras.optimizers.serialize(optimizer)["config"])
    config.pop("name", None)  # Keras numbers the optimizers of a process.
    return config


def _name_loss(loss):
    return loss if isinstance(loss, str) else getattr(loss, "__name__", type(loss).__name__)


def _digest_batches(source):
    """Texts for some batches of a dataset that can be read at random; None for another dataset."""
    if not isinstance(source.dataset, grain.MapDataset):
        return None
    if source.num_batches is None:  # The dataset repeats without end.
        places = range(COMPARED_BATCHES)
    else:
        places = range(0, source.num_batches, -(-source.num_batches // COMPARED_BATCHES))
    return [
        digest_batch(source.preprocess(*unpack_batch(source.dataset[place]))) for place in places
    ]


def _digest(text):
    return hashlib.sha256(text.encode()).hexdigest()
