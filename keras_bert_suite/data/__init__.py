"""Files and arrays to examples."""

from keras_bert_suite.data.row_batches import RowBatches

__all__ = ["RowBatches"]
