"""Files and arrays to examples."""

from keras_bert_suite.data.corpus_preparation import prepare_corpus
from keras_bert_suite.data.row_batches import RowBatches
from keras_bert_suite.data.shard_reader import open_corpus, verify_corpus

__all__ = ["RowBatches", "open_corpus", "prepare_corpus", "verify_corpus"]
