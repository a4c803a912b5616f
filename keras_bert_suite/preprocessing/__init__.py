"""Token ids to arrays: packed, cut into windows, masked."""

from keras_bert_suite.preprocessing.language_model_mixture import LanguageModelMixture
from keras_bert_suite.preprocessing.next_tokens import NextTokenTargets
from keras_bert_suite.preprocessing.segment_packer import SegmentPacker
from keras_bert_suite.preprocessing.sequence_packing import split_sequences
from keras_bert_suite.preprocessing.token_masker import TokenMasker
from keras_bert_suite.preprocessing.token_shuffler import TokenShuffler

__all__ = [
    "LanguageModelMixture",
    "NextTokenTargets",
    "SegmentPacker",
    "TokenMasker",
    "TokenShuffler",
    "split_sequences",
]
