"""Rows for `fit`: read, ordered, batched."""

from keras_bert_suite.data.row_batches import RowBatches

__all__ = ["RowBatches"]
