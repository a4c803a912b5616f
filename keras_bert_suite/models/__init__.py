"""Functional backbones, one model a file."""

import keras_hub

from keras_bert_suite import checkpoints
from keras_bert_suite.annotations import PathLike
from keras_bert_suite.models.albert_backbone import AlbertBackbone
from keras_bert_suite.models.bart_backbone import BartBackbone
from keras_bert_suite.models.bert_backbone import BERT_SIZES, BertBackbone
from keras_bert_suite.models.bert_encoder_decoder import BertEncoderDecoder
from keras_bert_suite.models.distil_bert_backbone import DistilBertBackbone
from keras_bert_suite.models.electra_backbone import ElectraBackbone
from keras_bert_suite.models.elmo_backbone import ElmoBackbone
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.models.ernie_backbone import ErnieBackbone
from keras_bert_suite.models.longformer_backbone import LongformerBackbone
from keras_bert_suite.models.mixture_segments import change_pattern
from keras_bert_suite.models.model_parallel import ModelParallel
from keras_bert_suite.models.modern_bert_backbone import ModernBertBackbone
from keras_bert_suite.models.nezha_backbone import NezhaBackbone
from keras_bert_suite.models.roberta_backbone import RobertaBackbone
from keras_bert_suite.models.roformer_backbone import RoFormerBackbone
from keras_bert_suite.models.segments import predict_segments
from keras_bert_suite.models.static_backbone import StaticBackbone
from keras_bert_suite.models.text_encoder import TextEncoder
from keras_bert_suite.models.xlnet_backbone import XLNetBackbone

#: The backbones by the name of their class, as checkpoints name them.
BACKBONES = {
    cls.__name__: cls
    for cls in (
        AlbertBackbone,
        BartBackbone,
        BertBackbone,
        BertEncoderDecoder,
        DistilBertBackbone,
        ElectraBackbone,
        ElmoBackbone,
        ErnieBackbone,
        LongformerBackbone,
        ModernBertBackbone,
        NezhaBackbone,
        RobertaBackbone,
        RoFormerBackbone,
        StaticBackbone,
        XLNetBackbone,
    )
}

__all__ = [
    "BACKBONES",
    "BERT_SIZES",
    "AlbertBackbone",
    "BartBackbone",
    "BertBackbone",
    "BertEncoderDecoder",
    "DistilBertBackbone",
    "ElectraBackbone",
    "ElmoBackbone",
    "Encoder",
    "ErnieBackbone",
    "LongformerBackbone",
    "ModelParallel",
    "ModernBertBackbone",
    "NezhaBackbone",
    "RoFormerBackbone",
    "RobertaBackbone",
    "StaticBackbone",
    "TextEncoder",
    "XLNetBackbone",
    "change_pattern",
    "open_backbone",
    "predict_segments",
]


def open_backbone(preset: PathLike) -> keras_hub.models.Backbone:
    """Builds the encoder of a checkpoint, of whatever kind it is.

    Args:
        preset: as for `BertBackbone.from_preset`.
    """
    checkpoint = checkpoints.open_checkpoint(preset)
    if checkpoint is None:
        return keras_hub.models.Backbone.from_preset(checkpoints.preset_name(preset))
    return BACKBONES[checkpoint.model_type.backbone].from_preset(preset)
