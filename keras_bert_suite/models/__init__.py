"""Functional backbones, one model a file."""

from keras_bert_suite.models.bert_backbone import BERT_SIZES, BertBackbone
from keras_bert_suite.models.roberta_backbone import RobertaBackbone

#: The backbones by the name of their class, as checkpoints name them.
BACKBONES = {cls.__name__: cls for cls in (BertBackbone, RobertaBackbone)}

__all__ = ["BACKBONES", "BERT_SIZES", "BertBackbone", "RobertaBackbone"]
