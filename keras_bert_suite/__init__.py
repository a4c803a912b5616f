"""Pretrain, fine-tune and serve BERT and RoBERTa with Keras 3."""

from keras_bert_suite.layers import (
    BertEmbeddings,
    ConditionalRandomField,
    EfficientGlobalPointer,
    GlobalPointer,
    MaskedLMHead,
    SelfAttention,
    TransformerBlock,
)
from keras_bert_suite.models import BertBackbone, RobertaBackbone
from keras_bert_suite.preprocessing import SegmentPacker, TokenMasker
from keras_bert_suite.serving import export_litert, export_onnx, export_saved_model
from keras_bert_suite.tasks import (
    AnswerF1,
    CrfTokenClassifier,
    EntityF1,
    EntitySpanClassifier,
    MaskedLM,
    MultipleChoice,
    Pretrainer,
    QuestionAnswerer,
    TextClassifier,
    TextEmbedder,
    TokenClassifier,
)
from keras_bert_suite.tokenizers import BytePairTokenizer, WordPieceTokenizer, train_vocabulary
from keras_bert_suite.training import (
    AdamW,
    CoSENT,
    CosineRegression,
    InBatchNegatives,
    LabelwiseLoss,
    Lamb,
    LinearWarmupDecay,
    MaskedLMLoss,
    TrainingCheckpoint,
    Triplet,
)

__version__ = "0.1.0"

__all__ = [
    "AdamW",
    "AnswerF1",
    "BertBackbone",
    "BertEmbeddings",
    "BytePairTokenizer",
    "CoSENT",
    "CosineRegression",
    "ConditionalRandomField",
    "CrfTokenClassifier",
    "EfficientGlobalPointer",
    "EntityF1",
    "EntitySpanClassifier",
    "GlobalPointer",
    "InBatchNegatives",
    "LabelwiseLoss",
    "Lamb",
    "LinearWarmupDecay",
    "MaskedLM",
    "MaskedLMHead",
    "MaskedLMLoss",
    "MultipleChoice",
    "Pretrainer",
    "QuestionAnswerer",
    "RobertaBackbone",
    "SegmentPacker",
    "SelfAttention",
    "TextClassifier",
    "TextEmbedder",
    "TokenClassifier",
    "TokenMasker",
    "TrainingCheckpoint",
    "TransformerBlock",
    "Triplet",
    "WordPieceTokenizer",
    "export_litert",
    "export_onnx",
    "export_saved_model",
    "train_vocabulary",
]
