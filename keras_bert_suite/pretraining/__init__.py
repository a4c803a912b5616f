"""Makes pretraining batches from a corpus: plans instances, packs them and masks them."""

from keras_bert_suite.pretraining.context_lane_batches import ContextLaneBatches
from keras_bert_suite.pretraining.frame_batches import FrameBatches
from keras_bert_suite.pretraining.frame_codes import find_codes, learn_codebook
from keras_bert_suite.pretraining.google_examples import GoogleExamples, write_google_examples
from keras_bert_suite.pretraining.lane_batches import LaneBatches
from keras_bert_suite.pretraining.mixed_batches import MixedBatches, share_rows
from keras_bert_suite.pretraining.pretraining_batches import PretrainingBatches

__all__ = [
    "ContextLaneBatches",
    "FrameBatches",
    "GoogleExamples",
    "LaneBatches",
    "MixedBatches",
    "PretrainingBatches",
    "find_codes",
    "learn_codebook",
    "share_rows",
    "write_google_examples",
]
