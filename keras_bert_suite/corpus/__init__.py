"""Turns raw text into shards of tokens, and reads their documents at random."""

from keras_bert_suite.corpus.held_out import hold_out
from keras_bert_suite.corpus.preparation import prepare_corpus
from keras_bert_suite.corpus.reversed_corpus import ReversedCorpus
from keras_bert_suite.corpus.shard_reader import open_corpus, read_tokenizer
from keras_bert_suite.corpus.token_corpus import TokenCorpus

__all__ = [
    "ReversedCorpus",
    "TokenCorpus",
    "hold_out",
    "open_corpus",
    "prepare_corpus",
    "read_tokenizer",
]
