"""Adaptations of an encoder that train few weights: adapters, LoRA, biases, prefixes, prompts."""

from keras_bert_suite.models.adaptations.adaptation import Adaptation
from keras_bert_suite.models.adaptations.bit_fit import BitFit
from keras_bert_suite.models.adaptations.bottleneck_adapters import (
    HoulsbyAdapters,
    PfeifferAdapters,
)
from keras_bert_suite.models.adaptations.lora import LoRA
from keras_bert_suite.models.adaptations.prefix_tuning import PrefixTuning
from keras_bert_suite.models.adaptations.prompt_tuning import PromptTuning

__all__ = [
    "Adaptation",
    "BitFit",
    "HoulsbyAdapters",
    "LoRA",
    "PfeifferAdapters",
    "PrefixTuning",
    "PromptTuning",
]
