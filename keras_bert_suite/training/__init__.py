"""Optimizers, schedules, losses and metrics."""

from keras_bert_suite.training.adamw import AdamW
from keras_bert_suite.training.lamb import Lamb
from keras_bert_suite.training.losses import MaskedLMLoss
from keras_bert_suite.training.metrics import MaskedLMAccuracy
from keras_bert_suite.training.schedules import LinearWarmupDecay

__all__ = ["AdamW", "Lamb", "LinearWarmupDecay", "MaskedLMAccuracy", "MaskedLMLoss"]
