"""Reads, orders and batches rows for `fit`."""

from keras_bert_suite.data.row_batches import RowBatches

__all__ = ["RowBatches"]
