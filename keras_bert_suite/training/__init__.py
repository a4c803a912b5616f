"""Optimizers, schedules, losses, metrics and techniques."""

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
from keras_bert_suite.training.head_rate import set_head_rate
from keras_bert_suite.training.keras_losses import is_loss_of_keras, read_loss, take_class_ids
from keras_bert_suite.training.lamb import Lamb
from keras_bert_suite.training.losses import (
    AttributeLoss,
    ClassCrossentropy,
    LabelwiseLoss,
    MaskedLMLoss,
    OneHotLoss,
    ReplacedTokenLoss,
    SpanLoss,
)
from keras_bert_suite.training.metrics import (
    AttributeAccuracy,
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
from keras_bert_suite.training.optimizer_state import fit_optimizer
from keras_bert_suite.training.ranking import NDCG, RankingLoss
from keras_bert_suite.training.schedule_lengths import open_schedule_end, set_schedule_length
from keras_bert_suite.training.schedules import LinearWarmupDecay
from keras_bert_suite.training.techniques.fgm import FGM
from keras_bert_suite.training.techniques.technique import Technique

__all__ = [
    "AdamW",
    "AttributeAccuracy",
    "AttributeLoss",
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
    "NDCG",
    "OneHotLoss",
    "RankingLoss",
    "SpanLoss",
    "ReplacedTokenAccuracy",
    "ReplacedTokenLoss",
    "ReplacedTokenRecall",
    "TokenAccuracy",
    "Technique",
    "Triplet",
    "encode_in_parts",
    "fit_optimizer",
    "forget_metrics",
    "is_loss_of_keras",
    "set_head_rate",
    "set_schedule_length",
    "open_schedule_end",
    "read_loss",
    "sum_before_clipping",
    "take_class_ids",
    "track_finite_losses",
]
