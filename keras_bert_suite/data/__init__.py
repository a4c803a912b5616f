"""Files and arrays to examples."""

from keras_bert_suite.data.corpus_preparation import prepare_corpus
from keras_bert_suite.data.google_examples import GoogleExamples, write_google_examples
from keras_bert_suite.data.held_out import hold_out
from keras_bert_suite.data.pretraining_batches import PretrainingBatches
from keras_bert_suite.data.row_batches import RowBatches
from keras_bert_suite.data.shard_reader import open_corpus, read_tokenizer, verify_corpus
from keras_bert_suite.data.token_corpus import TokenCorpus

__all__ = [
    "GoogleExamples",
    "PretrainingBatches",
    "RowBatches",
    "TokenCorpus",
    "hold_out",
    "open_corpus",
    "prepare_corpus",
    "read_tokenizer",
    "verify_corpus",
    "write_google_examples",
]
