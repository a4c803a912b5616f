"""Optimizers, schedules, losses, metrics and checkpoints."""

from keras_bert_suite.training.adamw import AdamW
from keras_bert_suite.training.embedding_losses import (
    CoSENT,
    CosineRegression,
    EmbeddingLoss,
    InBatchNegatives,
    Triplet,
)
from keras_bert_suite.training.gradient_cache import encode_in_parts
from keras_bert_suite.training.lamb import Lamb
from keras_bert_suite.training.losses import LabelwiseLoss, MaskedLMLoss, OneHotLoss
from keras_bert_suite.training.metrics import (
    FiniteMean,
    LabelSetF1,
    MaskedLMAccuracy,
    TokenAccuracy,
    track_finite_losses,
)
from keras_bert_suite.training.progress import Progress
from keras_bert_suite.training.schedule_lengths import lay_schedule, lay_schedule_without_end
from keras_bert_suite.training.schedules import LinearWarmupDecay
from keras_bert_suite.training.span_loss import SpanLoss
from keras_bert_suite.training.training_checkpoint import (
    TrainingCheckpoint,
    find_training_checkpoint,
)
from keras_bert_suite.training.whole_epochs import WholeEpochs

__all__ = [
    "AdamW",
    "CoSENT",
    "CosineRegression",
    "EmbeddingLoss",
    "FiniteMean",
    "InBatchNegatives",
    "LabelSetF1",
    "LabelwiseLoss",
    "Lamb",
    "LinearWarmupDecay",
    "MaskedLMAccuracy",
    "MaskedLMLoss",
    "OneHotLoss",
    "SpanLoss",
    "Progress",
    "TokenAccuracy",
    "TrainingCheckpoint",
    "Triplet",
    "WholeEpochs",
    "encode_in_parts",
    "find_training_checkpoint",
    "lay_schedule",
    "lay_schedule_without_end",
    "track_finite_losses",
]
