"""Masking: which tokens pretraining hides, moves or deletes, and which tokens it predicts."""

from keras_bert_suite.masking.both_neighbors import BidirectionalTargets
from keras_bert_suite.masking.corruption import Corruption
from keras_bert_suite.masking.denoising_corruption import BART_NOISES, DenoisingCorruption
from keras_bert_suite.masking.frame_masker import FrameMasker
from keras_bert_suite.masking.language_model_mixture import LanguageModelMixture
from keras_bert_suite.masking.mass_corruption import MassCorruption
from keras_bert_suite.masking.next_tokens import NextTokenTargets
from keras_bert_suite.masking.noises import (
    DocumentRotation,
    Noise,
    SentencePermutation,
    TextInfilling,
    TokenDeletion,
    TokenInsertion,
    TokenMasking,
)
from keras_bert_suite.masking.permutation_targets import PermutationTargets
from keras_bert_suite.masking.ragged_rows import RaggedRows
from keras_bert_suite.masking.similar_words import find_similar_words
from keras_bert_suite.masking.token_masker import TokenMasker
from keras_bert_suite.masking.token_shuffler import TokenShuffler
from keras_bert_suite.masking.unit_weights import rarity_weights
