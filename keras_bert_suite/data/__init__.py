"""Files and arrays to examples."""

from keras_bert_suite.data.google_examples import GoogleExamples, write_google_examples
from keras_bert_suite.data.held_out import hold_out
from keras_bert_suite.data.pretraining_batches import PretrainingBatches
from keras_bert_suite.data.row_batches import RowBatches

__all__ = [
    "GoogleExamples",
    "PretrainingBatches",
    "RowBatches",
    "hold_out",
    "write_google_examples",
]
