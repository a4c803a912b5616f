"""Functional backbones, one model a file."""

from keras_bert_suite.models.bert_backbone import BERT_SIZES, BertBackbone

__all__ = ["BERT_SIZES", "BertBackbone"]
