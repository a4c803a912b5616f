"""A fitted task as a service."""

from keras_bert_suite.serving.saved_model import export_saved_model

__all__ = ["export_saved_model"]
