"""Functional backbones, one model a file."""

import keras_hub

from keras_bert_suite import checkpoints
from keras_bert_suite.annotations import PathLike
from keras_bert_suite.models import backbones
from keras_bert_suite.models.backbones import *  # noqa: F403
from keras_bert_suite.models.bert_backbone import BERT_SIZES
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.models.mixture_segments import change_pattern
from keras_bert_suite.models.model_parallel import ModelParallel
from keras_bert_suite.models.segments import predict_segments
from keras_bert_suite.models.text_encoder import TextEncoder

#: The backbones by the name of their class, as checkpoints name them.
BACKBONES: dict[str, type[TextEncoder]] = {
    name: getattr(backbones, name) for name in backbones.__all__
}

__all__ = [
    *backbones.__all__,
    "BACKBONES",
    "BERT_SIZES",
    "Encoder",
    "ModelParallel",
    "TextEncoder",
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
