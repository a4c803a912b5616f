"""Optimizers, schedules, losses, metrics and techniques."""

from keras_bert_suite.training.adamw import AdamW
from keras_bert_suite.training.distilled_scores import DistilledScores, MarginMSE
from keras_bert_suite.training.divergences import Divergence, compare_switches
from keras_bert_suite.training.embedding_losses import (
    CoSENT,
    CosineRegression,
    EmbeddingLoss,
    InBatchNegatives,
    Triplet,
    VectorRegression,
)
from keras_bert_suite.training.gradient_cache import encode_in_parts
from keras_bert_suite.training.gradient_sums import sum_before_clipping
from keras_bert_suite.training.keras_losses import is_loss_of_keras, read_loss
from keras_bert_suite.training.keras_metrics import is_accuracy, is_metric_of_keras, read_metric
from keras_bert_suite.training.label_triplets import BatchAllTriplet, BatchHardTriplet
from keras_bert_suite.training.lamb import Lamb
from keras_bert_suite.training.losses import (
    AttributeLoss,
    ClassCrossentropy,
    MaskedFrameLoss,
    MaskedLMLoss,
    ReplacedTokenLoss,
    SpanLoss,
)
from keras_bert_suite.training.macro_f1 import MacroF1
from keras_bert_suite.training.matryoshka import Matryoshka
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
from keras_bert_suite.training.output_forms import OutputForm
from keras_bert_suite.training.piecewise_linear import PiecewiseLinear
from keras_bert_suite.training.ranking import NDCG, RankingLoss
from keras_bert_suite.training.rate_table import RateTable, WeightRate, list_rates
from keras_bert_suite.training.schedule_lengths import open_schedule_end, set_schedule_length
from keras_bert_suite.training.schedules import LinearWarmupDecay
from keras_bert_suite.training.techniques.carried_memory import CarriedMemory
from keras_bert_suite.training.techniques.combined_techniques import CombinedTechniques
from keras_bert_suite.training.techniques.distillation.distillation import Distillation
from keras_bert_suite.training.techniques.distillation.terms import (
    AttentionRelations,
    AttentionScores,
    HiddenStates,
)
from keras_bert_suite.training.techniques.distillation.theseus import Theseus
from keras_bert_suite.training.techniques.fgm import FGM
from keras_bert_suite.training.techniques.free_lb import FreeLB
from keras_bert_suite.training.techniques.gradient_penalty import GradientPenalty
from keras_bert_suite.training.techniques.layer_drop import LayerDrop
from keras_bert_suite.training.techniques.mixup import Mixup
from keras_bert_suite.training.techniques.pgd import PGD
from keras_bert_suite.training.techniques.r_drop import RDrop
from keras_bert_suite.training.techniques.smart import SMART
from keras_bert_suite.training.techniques.technique import Technique
from keras_bert_suite.training.techniques.vat import VAT
from keras_bert_suite.training.techniques.weight_averages import EMA, SWA
from keras_bert_suite.training.weight_rates import set_head_rate, set_layer_rates
from keras_bert_suite.training.wrapped_losses import (
    ClassIdLoss,
    ElementwiseLoss,
    LabelwiseLoss,
    OneHotLoss,
    PredictionMean,
)

__all__ = [
    "AdamW",
    "AttentionRelations",
    "AttentionScores",
    "AttributeAccuracy",
    "AttributeLoss",
    "BatchAllTriplet",
    "BatchHardTriplet",
    "CarriedMemory",
    "ClassAccuracy",
    "ClassCrossentropy",
    "ClassIdLoss",
    "EMA",
    "SWA",
    "CoSENT",
    "CombinedTechniques",
    "CosineRegression",
    "DistilledScores",
    "Distillation",
    "Divergence",
    "ElementwiseLoss",
    "EmbeddingLoss",
    "FGM",
    "FiniteMean",
    "FreeLB",
    "GradientPenalty",
    "HiddenStates",
    "InBatchNegatives",
    "LabelSetF1",
    "LabelwiseLoss",
    "Lamb",
    "LayerDrop",
    "LinearWarmupDecay",
    "MacroF1",
    "MarginMSE",
    "Matryoshka",
    "MaskedLMAccuracy",
    "MaskedFrameLoss",
    "MaskedLMLoss",
    "Mixup",
    "NDCG",
    "OneHotLoss",
    "OutputForm",
    "PGD",
    "PiecewiseLinear",
    "PredictionMean",
    "RDrop",
    "RankingLoss",
    "RateTable",
    "SMART",
    "SpanLoss",
    "ReplacedTokenAccuracy",
    "ReplacedTokenLoss",
    "ReplacedTokenRecall",
    "TokenAccuracy",
    "Technique",
    "Theseus",
    "Triplet",
    "VAT",
    "VectorRegression",
    "WeightRate",
    "compare_switches",
    "encode_in_parts",
    "fit_optimizer",
    "forget_metrics",
    "is_accuracy",
    "is_loss_of_keras",
    "is_metric_of_keras",
    "list_rates",
    "set_head_rate",
    "set_layer_rates",
    "set_schedule_length",
    "open_schedule_end",
    "read_loss",
    "read_metric",
    "sum_before_clipping",
    "track_finite_losses",
]
