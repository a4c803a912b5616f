"""Separate preprocessing layers, from text to arrays."""

from keras_bert_suite.preprocessing.segment_packer import SegmentPacker
from keras_bert_suite.preprocessing.token_masker import TokenMasker
from keras_bert_suite.preprocessing.vocabulary_training import train_vocabulary
from keras_bert_suite.preprocessing.word_piece_tokenizer import WordPieceTokenizer

__all__ = ["SegmentPacker", "TokenMasker", "WordPieceTokenizer", "train_vocabulary"]
