"""Optimizers and schedules."""

from keras_bert_suite.training.adamw import AdamW
from keras_bert_suite.training.schedules import LinearWarmupDecay

__all__ = ["AdamW", "LinearWarmupDecay"]
