"""The backbones, which `keras_bert_suite.models` and `keras_bert_suite` offer, too."""

from keras_bert_suite.models.albert_backbone import AlbertBackbone
from keras_bert_suite.models.bart_backbone import BartBackbone
from keras_bert_suite.models.bert_backbone import BertBackbone
from keras_bert_suite.models.bert_encoder_decoder import BertEncoderDecoder
from keras_bert_suite.models.distil_bert_backbone import DistilBertBackbone
from keras_bert_suite.models.electra_backbone import ElectraBackbone
from keras_bert_suite.models.elmo_backbone import ElmoBackbone
from keras_bert_suite.models.ernie_backbone import ErnieBackbone
from keras_bert_suite.models.longformer_backbone import LongformerBackbone
from keras_bert_suite.models.modern_bert_backbone import ModernBertBackbone
from keras_bert_suite.models.nezha_backbone import NezhaBackbone
from keras_bert_suite.models.roberta_backbone import RobertaBackbone
from keras_bert_suite.models.roformer_backbone import RoFormerBackbone
from keras_bert_suite.models.static_backbone import StaticBackbone
from keras_bert_suite.models.xlnet_backbone import XLNetBackbone

__all__ = [
    "AlbertBackbone",
    "BartBackbone",
    "BertBackbone",
    "BertEncoderDecoder",
    "DistilBertBackbone",
    "ElectraBackbone",
    "ElmoBackbone",
    "ErnieBackbone",
    "LongformerBackbone",
    "ModernBertBackbone",
    "NezhaBackbone",
    "RoFormerBackbone",
    "RobertaBackbone",
    "StaticBackbone",
    "XLNetBackbone",
]
