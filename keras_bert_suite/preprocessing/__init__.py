"""Token ids to arrays: packed, cut into windows, masked."""

from keras_bert_suite.preprocessing.masking.language_model_mixture import LanguageModelMixture
from keras_bert_suite.preprocessing.masking.next_tokens import NextTokenTargets
from keras_bert_suite.preprocessing.masking.similar_words import find_similar_words
from keras_bert_suite.preprocessing.masking.token_masker import TokenMasker
from keras_bert_suite.preprocessing.masking.token_shuffler import TokenShuffler
from keras_bert_suite.preprocessing.masking.unit_weights import rarity_weights
from keras_bert_suite.preprocessing.segment_packer import SegmentPacker

__all__ = [
    "LanguageModelMixture",
    "NextTokenTargets",
    "SegmentPacker",
    "TokenMasker",
    "TokenShuffler",
    "find_similar_words",
    "rarity_weights",
]
