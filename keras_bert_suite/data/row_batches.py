"""Makes batches for `fit` of rows in memory."""

import grain

from keras_bert_suite.argument_checks import check_integer


class RowBatches(grain.MapDataset):
    """A Grain dataset of batches of rows. Each epoch visits the rows in an order of its own.

    Args:
        rows: `Rows`. Element i of the dataset is the `Rows` of a batch.
        batch_size: int. The last batch of an epoch may be smaller.
        order: function from the epoch to a permutation of the rows, see `row_orders`.
        trains: bool, whether batches have their epoch. In an evaluation they have the epoch 0.

    Raises:
        ValueError: if `batch_size` is not a whole number of at least 1.
    """

    def __init__(self, rows, batch_size, order, trains=True):
        super().__init__()
        check_integer("batch_size", batch_size, at_least=1)
        self._rows = rows
        self._batch_size = batch_size
        self._order = order
        self._trains = trains
        self._num_batches = -(-len(order(0)) // batch_size)

    def __len__(self):
        return self._num_batches

    def __getitem__(self, index):
        if isinstance(index, slice):
            return self.slice(index)
        epoch, batch = divmod(index, self._num_batches)
        rows = self._order(epoch)[batch * self._batch_size : (batch + 1) * self._batch_size]
        return self._rows.take(rows, epoch if self._trains else 0)
