"""Makes batches of rows in memory, or of a user's dataset, and maps the data of a task over them.

The functions take the data of a task, such as `TextData`, as `data`: the model sees the result of
`data.pack`.
"""

import dataclasses
from collections.abc import Callable

import grain
import keras

from keras_bert_suite.argument_checks import check_integer, with_article
from keras_bert_suite.data.input_dataset import (
    compare_dataset,
    is_dataset,
    num_batches,
    preprocess_batches,
    replica_batches,
)
from keras_bert_suite.data.row_orders import (
    find_batch,
    in_order,
    longest_last,
    shuffled,
    shuffled_by_length,
)
from keras_bert_suite.data.rows import HOW_TO_COLLATE, Rows
from keras_bert_suite.replicas import Member, find_local_replicas, find_process, take_share

DEFAULT_BATCH_SIZE = 32


@dataclasses.dataclass(frozen=True)
class Batches:
    """Batches of data, and the function that turns each batch into inputs of a model.

    Attributes:
        dataset: `RowBatches`, or the dataset of the user.
        pack: function from an element of `dataset` to a batch as Keras takes it: inputs, or a tuple
            (inputs, labels) or (inputs, labels, weights).
        lay_out: function that gives a packed batch a layout of packed rows, or None.
        members: the replicas that take their rows from this process, see `find_local_replicas`.
        in_graph: bool, whether `pack` can be part of a graph of TensorFlow.
        fixed_labels: bool, whether the labels of all batches differ only in the number of rows.
        is_joint: bool, whether all processes take these batches together, so that each of them must
            read the same batches.
    """

    dataset: object
    pack: Callable
    lay_out: Callable | None = None
    members: tuple[Member, ...] = (Member(),)
    in_graph: bool = True
    fixed_labels: bool = False
    is_joint: bool = False

    @property
    def num_batches(self):
        """int, the number of batches of an epoch; None if the dataset does not know it."""
        return num_batches(self.dataset)

    def packed(self, total=None, first=0, shuffle=False):
        """The dataset that Keras' own `fit` takes: each batch, packed, and cut for the replicas.

        `total` is the number of batches that will be read, of all epochs together, or None for one
        pass. The `first` batches are left out. With `shuffle` those of a `PyDataset` come in a
        fresh order each pass. See `preprocess_batches`.
        """
        if self._is_compared:
            whole = preprocess_batches(
                self.dataset, self.pack, total, first, shuffle, in_graph=False
            )
            return preprocess_batches(compare_dataset(whole), lambda batch: self._share(batch)[0])
        if len(self.members) > 1:
            return replica_batches(
                self.dataset, self.shares_of, total, first, shuffle, self.fixed_labels
            )
        return preprocess_batches(
            self.dataset,
            lambda element: self.shares_of(element)[0],
            total,
            first,
            shuffle,
            # A batch is cut outside of a graph, which does not know the number of its rows.
            self.in_graph and self.members[0].count == 1,
            self.fixed_labels,
        )

    def shares_of(self, element):
        """Packs a whole batch, and cuts it into a list of shares, one for each of `members`.

        All shares are padded to the length of the whole batch. Sequence packing lays out each share
        by itself.
        """
        return self._share(self.pack(element))

    @property
    def _is_compared(self):
        """bool, whether the processes compare each batch as it comes.

        They compare batches that can be read at random before the first step; see `joint_start.py`.
        """
        at_random = isinstance(self.dataset, grain.MapDataset)
        return self.is_joint and not at_random and find_process().count > 1

    def _share(self, batch):
        shares = [take_share(batch, member) for member in self.members]
        return shares if self.lay_out is None else [self.lay_out(share) for share in shares]


class RowBatches(grain.MapDataset):
    """A Grain dataset of batches of rows. Each epoch visits the rows in another order.

    Element i is the `Rows` of a batch. The last batch of an epoch may be smaller. `order` is a
    function from the epoch to a permutation of the rows, see `row_orders`. With `trains` batches
    have their epoch. In an evaluation they have the epoch 0.
    """

    def __init__(self, rows, batch_size, order, trains=True):
        super().__init__()
        check_integer("batch_size", batch_size, at_least=1)
        self.rows = rows
        self.batch_size = batch_size
        self._order = order
        self._trains = trains
        self._num_batches = -(-len(order(0)) // batch_size)

    def __len__(self):
        return self._num_batches

    def __getitem__(self, index):
        if isinstance(index, slice):
            return self.slice(index)
        epoch, batch = find_batch(index, self._num_batches)
        rows = self._order(epoch)[batch * self.batch_size : (batch + 1) * self.batch_size]
        return self.rows.take(rows, epoch if self._trains else 0)


def read(model, x, y=None, sample_weight=None, labelled=False, **given):
    """Reads the arguments of `fit`, `evaluate` or `predict` by `data.read`, and checks them.

    `given` are arguments that are for rows, such as `batch_size`, and None for a dataset. The
    result is `x` if it is a dataset, otherwise `Rows`.
    """
    model.check_parts()
    if is_dataset(x):
        _check_dataset(x, y=y, sample_weight=sample_weight, **given)
        model.check_dataset(x)
        return x
    return model.data.read(x, y, sample_weight, labelled)


def hold_out(model, given, validation_data=None, validation_split=None, batch_size=None):
    """Sets the validation rows of a `fit` apart.

    Args:
        model: task.
        given: `Rows` or a dataset, from `read`.
        validation_data, validation_split: as for `Task.fit`.
        batch_size: int, the size of the batches of `validation_data`, or None.

    Returns:
        (`Rows` or a dataset to train on; the same to validate on, or None).
    """
    if validation_split and not isinstance(given, Rows):
        raise ValueError(
            "validation_split needs rows in memory. With a dataset, pass `validation_data`."
        )
    if validation_data is None:
        return given.split(validation_split) if validation_split else (given, None)
    if not isinstance(validation_data, (tuple, list)):
        held_out = read(model, validation_data, labelled=True, validation_batch_size=batch_size)
        return given, held_out
    needs_labels = model.data.labels.are_needed
    sizes = (2, 3) if needs_labels else (1, 2, 3)
    if len(validation_data) not in sizes or isinstance(validation_data[0], (str, bytes)):
        alone = "" if needs_labels else "(x,), "
        raise ValueError(
            f"validation_data must be {alone}(x, y) or (x, y, sample_weight), or a dataset, got "
            f"{with_article(validation_data)} of {len(validation_data)}."
        )
    return given, read(model, *validation_data, labelled=True)


def learn_rows(model, given, verbose):
    """Lets the data of a model note of `Rows` how texts are read after a `fit`, and says so."""
    said = model.data.learn_rows(given) if isinstance(given, Rows) else None
    if said and verbose and find_process().leads:
        print(said)


def pack_batch(model, x, y=None, sample_weight=None, labelled=False, weigh=None):
    """(inputs, labels or None, weights or None) of one batch of rows, as for `Task.fit`."""
    rows = model.data.window(read(model, x, y, sample_weight, labelled))
    return keras.utils.unpack_x_y_sample_weight(pack_rows(model.data, labelled, weigh)(rows))


def training_batches(data, given, batch_size, shuffle, seed, weigh=None, lay_out=None):
    """The `Batches` of a `fit`, which all replicas share.

    `given` is `Rows`, or a user's dataset. `shuffle` says whether rows come in a fresh order each
    epoch, and `weigh` is a function from encoded labels to the weights of their classes, or None.
    """
    if not isinstance(given, Rows):
        return _share(data, given, pack_elements(data, True, weigh), lay_out)
    if weigh is not None:
        check_one_weight(given.weights)
    size = choose_size(batch_size)
    data.check_training(given, size)
    windows = data.window(given)
    if not shuffle:
        order = in_order(len(windows))
    elif (own_order := data.order_rows(windows, size, seed)) is not None:
        order = own_order
    elif lay_out is not None or (lengths := data.lengths(windows)) is None:
        # Packed rows have no padding, so any rows may share a batch.
        order = shuffled(len(windows), seed)
    else:
        order = shuffled_by_length(lengths, size, seed)
    return _share(data, RowBatches(windows, size, order), pack_rows(data, True, weigh), lay_out)


def evaluation_batches(data, given, batch_size=None, by_length=True):
    """The `Batches` of an `evaluate`, which all replicas share.

    With `by_length`, rows in memory come in the order of their lengths.
    """
    if not isinstance(given, Rows):
        return _share(data, given, pack_elements(data, True))
    windows = data.window(given)
    batches = batch_rows(windows, batch_size, data.lengths(windows) if by_length else None)[0]
    return _share(data, batches, pack_rows(data, True))


def batch_rows(windows, batch_size, lengths=None):
    """Batches of rows of similar length, short rows first.

    Without `lengths`, (N,), they stay in order. The result is `RowBatches`, and the rows in the
    order in which they are visited, int (N,).
    """
    order = in_order(len(windows)) if lengths is None else longest_last(lengths)
    return RowBatches(windows, choose_size(batch_size), order, trains=False), order(0)


def choose_size(batch_size):
    """int, the size of a batch of rows in memory. A size below 1 is a ValueError."""
    if batch_size is None:
        return DEFAULT_BATCH_SIZE
    check_integer("batch_size", batch_size, at_least=1)
    return batch_size


def pack_elements(data, labelled=False, weigh=None):
    """The function from an element of a user's dataset to a batch as Keras takes it."""
    pack = pack_rows(data, labelled, weigh)
    return lambda element: pack(data.window(data.read_batch(*data.unpack(element), labelled)))


def pack_rows(data, labelled=False, weigh=None):
    """The function from the `Rows` of a batch to a batch as Keras takes it, by `data.pack`.

    `weigh` is a function from encoded labels to the weights of their classes, or None. Weights
    beside it are a ValueError.
    """

    def pack(rows):
        x, y, weights = data.pack(rows, labelled)
        if weigh is not None:
            check_one_weight(rows.weights)
            # Other weights can only say which tokens have a label.
            weights = weigh(y) if weights is None else weigh(y) * weights
        return keras.utils.pack_x_y_sample_weight(x, y, weights)

    return pack


def check_one_weight(weights):
    """Raises a ValueError if rows have weights beside `class_weight`."""
    if weights is not None:
        raise ValueError("Pass class_weight or sample_weight, not both.")


def _check_dataset(dataset, **given):
    """Checks that a dataset has batches, and comes without arguments that are for rows.

    All of `given` must be None.
    """
    if not hasattr(dataset, "__iter__"):
        raise ValueError(
            f"x is of type {type(dataset).__name__}, which holds no data. Wanted texts, packed "
            "arrays, a Grain or tf.data dataset, a keras.utils.PyDataset, a PyTorch DataLoader "
            f"or a generator of batches. {HOW_TO_COLLATE}"
        )
    names = [name for name, value in given.items() if value is not None]
    if names:
        raise ValueError(
            f"A dataset, {type(dataset).__name__}, brings its own batches with labels and "
            f"weights. Drop {', '.join(names)}."
        )


def _share(data, batches, pack, lay_out=None):
    """The `Batches` of a call that all replicas share."""
    return Batches(
        batches,
        pack,
        lay_out,
        find_local_replicas(),
        in_graph=data.takes_graphs and lay_out is None,
        fixed_labels=data.labels.have_fixed_shape,
        is_joint=True,
    )
