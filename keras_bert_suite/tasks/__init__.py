"""A task a file: its preprocessing, its head, its loss and metrics."""

from keras_bert_suite.tasks.pretrainer import Pretrainer
from keras_bert_suite.tasks.text_classifier import TextClassifier

__all__ = ["Pretrainer", "TextClassifier"]
