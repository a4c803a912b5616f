"""Makes batches from the data that users pass to `fit`, `evaluate` and `predict` of a task."""

import dataclasses
from collections.abc import Callable

import grain
import keras

from keras_bert_suite.data.input_dataset import (
    compare_dataset,
    evaluation_batches,
    is_dataset,
    list_sources,
    num_batches,
    preprocess_batches,
    replica_batches,
    training_batches,
)
from keras_bert_suite.data.rows import Rows
from keras_bert_suite.replicas import Group, find_group, find_groups, take_share
from keras_bert_suite.tasks.base.input_checks import (
    check_held_out,
    check_packed,
    check_preprocessor,
)
from keras_bert_suite.tasks.base.sequence_packing import choose_layout
from keras_bert_suite.tasks.base.text_packing import measure_rows

DEFAULT_BATCH_SIZE = 32


@dataclasses.dataclass(frozen=True)
class BatchSource:
    """Batches of data, and the function that turns each batch into inputs of the model.

    Attributes:
        dataset: `RowBatches`, or the dataset of the user.
        preprocess: function(x, y, sample_weight).
        lay_out: function that gives a preprocessed batch a layout of packed rows, or None.
        groups: the replicas that take their rows from this process, see `find_groups`.
        in_graph: bool, whether `preprocess` can be part of a graph of TensorFlow.
        fixed_labels: bool, whether the labels of all batches differ only in the number of rows.
        is_joint: bool, whether all processes take these batches together, so that each of them must
            read the same batches.
    """

    dataset: object
    preprocess: Callable
    lay_out: Callable | None = None
    groups: tuple[Group, ...] = (Group(),)
    in_graph: bool = True
    fixed_labels: bool = False
    is_joint: bool = False

    @property
    def num_batches(self):
        """int, the number of batches of an epoch; None if the dataset does not know it."""
        return num_batches(self.dataset)

    def prepare(self, x, y=None, sample_weight=None):
        """Preprocesses a whole batch, and cuts it into a list of shares, one for each of `groups`.

        All shares are padded to the length of the whole batch. Sequence packing lays out each share
        by itself.
        """
        return self._share(self.preprocess(x, y, sample_weight))

    @property
    def _is_compared(self):
        """bool, whether the processes compare each batch as it comes.

        They compare batches that can be read at random before the first step; see `joint_start.py`.
        """
        at_random = isinstance(self.dataset, grain.MapDataset)
        return self.is_joint and not at_random and find_group().count > 1

    def _share(self, batch):
        shares = [take_share(batch, group) for group in self.groups]
        return shares if self.lay_out is None else [self.lay_out(share) for share in shares]

    def preprocessed(self, total=None, first=0, shuffle=False):
        """The dataset that Keras' own `fit` takes. Arguments: as for `preprocess_batches`."""
        if self._is_compared:
            whole = preprocess_batches(
                self.dataset, self.preprocess, total, first, shuffle, in_graph=False
            )
            return preprocess_batches(
                compare_dataset(whole),
                lambda *batch: self._share(keras.utils.pack_x_y_sample_weight(*batch))[0],
            )
        if len(self.groups) > 1:
            return replica_batches(
                self.dataset, self.prepare, total, first, shuffle, self.fixed_labels
            )
        return preprocess_batches(
            self.dataset,
            lambda *batch: self.prepare(*batch)[0],
            total,
            first,
            shuffle,
            # A batch is cut outside of a graph, which does not know the number of its rows.
            self.in_graph and self.groups[0].count == 1,
            self.fixed_labels,
        )

    @classmethod
    def shared(cls, task, dataset, preprocess, in_graph=True, lay_out=None):
        """The batches of a `fit` or `evaluate`, which all replicas share."""
        return cls(
            dataset,
            preprocess,
            lay_out,
            find_groups(),
            in_graph,
            task.has_fixed_labels,
            is_joint=True,
        )


def training_source(
    task, data, batch_size, shuffle, seed, class_weight=None, sequence_packing=False
):
    """The `BatchSource` of a `fit` on `Rows` or a dataset. Arguments: as for `RowTask.fit`."""
    lay_out = choose_layout(task.backbone) if sequence_packing else None
    if not isinstance(data, Rows):
        preprocess = weighted(task, task.preprocess_training_samples, class_weight)
        in_graph = task.preprocesses_in_graphs and not sequence_packing
        return BatchSource.shared(task, data, preprocess, in_graph, lay_out)
    preprocess = weighted(task, task.preprocess_training, class_weight, given=data.weights)
    windows = task.cut_windows(data)
    # Packed rows have no padding, so any rows may share a batch.
    by_length = shuffle and not sequence_packing
    lengths = measure_rows(task.preprocessor, windows) if by_length else None
    batches = training_batches(windows, choose_size(batch_size), shuffle, seed, lengths)
    return BatchSource.shared(task, batches, preprocess, lay_out=lay_out)


def evaluation_source(task, data, batch_size=None, by_length=True):
    """The `BatchSource` of an `evaluate`; `by_length` says whether short rows come first."""
    if not isinstance(data, Rows):
        preprocess = task.preprocess_training_samples
        return BatchSource.shared(task, data, preprocess, task.preprocesses_in_graphs)
    windows = task.cut_windows(data)
    lengths = measure_rows(task.preprocessor, windows) if by_length else None
    batches, _ = evaluation_batches(windows, choose_size(batch_size), lengths)
    return BatchSource.shared(task, batches, task.preprocess_training)


def choose_size(batch_size):
    """int, the size of a batch of rows in memory."""
    return DEFAULT_BATCH_SIZE if batch_size is None else batch_size


def weighted(task, preprocess, class_weight, given=None):
    """Makes a function that preprocesses a batch, and weights its rows by their class.

    `preprocess` is function(x, y, sample_weight), and so is the result. `given` are the weights of
    rows in memory. Weights beside `class_weight` are a ValueError.
    """
    if class_weight is None:
        return preprocess
    weigh = task.class_weighting(class_weight)

    def check(sample_weight):
        if sample_weight is not None:
            raise ValueError("Pass class_weight or sample_weight, not both.")

    def preprocess_weighted(x, y=None, sample_weight=None):
        if preprocess == task.preprocess_training_samples:
            check(sample_weight)
        # For rows in memory, `weights` can only say which tokens have a label.
        x, y, weights = keras.utils.unpack_x_y_sample_weight(preprocess(x, y, sample_weight))
        class_weights = weigh(y)
        return x, y, class_weights if weights is None else class_weights * weights

    check(given)
    return preprocess_weighted


def read_data(task, x, y=None, sample_weight=None, batch_size=None, labelled=False):
    """Reads the arguments of `fit`, `evaluate` or `predict`, and checks them before the first step.

    Returns:
        `x` if it is a dataset, otherwise `Rows` with encoded labels. With `labelled` every row
        needs a label.
    """
    if is_dataset(x):
        check_dataset(task, x, y=y, sample_weight=sample_weight, batch_size=batch_size)
        return x
    check_preprocessor(task.preprocessor, task.backbone)
    rows = task.read_rows(x, y, sample_weight)
    if labelled and not len(rows):
        raise ValueError(f"{type(task).__name__} needs at least one row, got none.")
    if labelled and y is None and task.needs_labels:
        raise ValueError(
            f"{type(task).__name__} needs a label for each row, got {len(rows)} rows and no "
            "labels. Pass the labels as `y`."
        )
    return _encode_rows(task, rows, labelled)


def read_samples(task, x, y=None, sample_weight=None):
    """`Rows` with encoded labels of one batch of a dataset, also in a graph of TensorFlow."""
    rows = task.read_batch(x, y, sample_weight)
    return _encode_rows(task, rows, rows.labels is not None)


def _encode_rows(task, rows, labelled):
    """`Rows` with encoded labels, and with inputs that fit the task."""
    # Labels come first: a wrong label is then an error before the task stores the column names.
    labels = None if rows.labels is None else task.encode_labels(rows.labels)
    if isinstance(rows.inputs, dict):
        check_packed(rows.inputs, task.backbone)
        inputs = rows.inputs
    else:
        inputs = task.arrange_columns(rows.inputs, rows.input_names, labelled)
    return Rows(inputs, labels, rows.weights)


def hold_out(task, data, validation_data, validation_split, batch_size):
    """Sets apart the data that a `fit` validates on. Arguments: as for `RowTask.fit`.

    Returns:
        (`Rows` or a dataset to train on; `Rows` or a dataset to validate on, or None).
    """
    if validation_split and not isinstance(data, Rows):
        raise ValueError(
            "validation_split needs rows in memory. With a dataset, pass `validation_data`."
        )
    if validation_split and validation_data is None:
        return data.split(validation_split)
    if isinstance(validation_data, (tuple, list)):
        check_held_out(validation_data, task.needs_labels)
        validation_data = read_data(task, *validation_data, labelled=True)
    elif validation_data is not None and is_dataset(validation_data):
        check_dataset(task, validation_data, validation_batch_size=batch_size)
    return data, validation_data


def check_dataset(task, dataset, **given):
    """Checks that a dataset has batches that fit, and comes without arguments that are for rows.

    A dataset may have a method `check_task`, as `PretrainingBatches` has. All of `given` must be
    None.
    """
    check_preprocessor(task.preprocessor, task.backbone)
    if not hasattr(dataset, "__iter__"):
        raise ValueError(
            f"x is of type {type(dataset).__name__}, which holds no data. Wanted texts, packed "
            "arrays, a Grain or tf.data dataset, a keras.utils.PyDataset, a PyTorch DataLoader "
            "or a generator of batches."
        )
    names = [name for name, value in given.items() if value is not None]
    if names:
        raise ValueError(
            f"A dataset, {type(dataset).__name__}, brings its own batches with labels and "
            f"weights. Drop {', '.join(names)}."
        )
    for source in list_sources(dataset):
        if hasattr(source, "check_task"):
            source.check_task(task)
