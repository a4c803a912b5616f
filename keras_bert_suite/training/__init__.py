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
from keras_bert_suite.training.gradient_sums import sum_before_clipping
from keras_bert_suite.training.keras_losses import is_loss_of_keras, read_loss, take_class_ids
from keras_bert_suite.training.lamb import Lamb
from keras_bert_suite.training.losses import (
    ClassCrossentropy,
    LabelwiseLoss,
    MaskedLMLoss,
    OneHotLoss,
    ReplacedTokenLoss,
    SpanLoss,
)
from keras_bert_suite.training.metrics import (
    ClassAccuracy,
    FiniteMean,
    LabelSetF1,
    MaskedLMAccuracy,
    ReplacedTokenAccuracy,
    ReplacedTokenRecall,
    TokenAccuracy,
    forget_metrics,
    track_finite_losses,
)
from keras_bert_suite.training.progress import Progress
from keras_bert_suite.training.schedule_lengths import open_schedule_end, set_schedule_length
from keras_bert_suite.training.schedules import LinearWarmupDecay
from keras_bert_suite.training.techniques.fgm import FGM
from keras_bert_suite.training.techniques.technique import Technique
from keras_bert_suite.training.torch_generators import separate_generators
from keras_bert_suite.training.training_checkpoint import (
    TrainingCheckpoint,
    find_training_checkpoint,
)

__all__ = [
    "AdamW",
    "ClassAccuracy",
    "ClassCrossentropy",
    "CoSENT",
    "CosineRegression",
    "EmbeddingLoss",
    "FGM",
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
    "ReplacedTokenAccuracy",
    "ReplacedTokenLoss",
    "ReplacedTokenRecall",
    "TokenAccuracy",
    "TrainingCheckpoint",
    "Technique",
    "Triplet",
    "encode_in_parts",
    "find_training_checkpoint",
    "forget_metrics",
    "is_loss_of_keras",
    "set_schedule_length",
    "open_schedule_end",
    "read_loss",
    "separate_generators",
    "sum_before_clipping",
    "take_class_ids",
    "track_finite_losses",
]
