"""Keras layers that own weights or random state."""

from keras_bert_suite.layers.activations import gelu_erf, gelu_tanh
from keras_bert_suite.layers.attention.global_tokens import GlobalTokens
from keras_bert_suite.layers.attention.longformer_attention import (
    LongformerAttention,
    LongformerBlock,
)
from keras_bert_suite.layers.attention.lsh_attention import LshAttention, LshBlock
from keras_bert_suite.layers.attention.modern_bert_attention import (
    ModernBertAttention,
    ModernBertBlock,
)
from keras_bert_suite.layers.attention.permuted_tokens import (
    DifferentSegments,
    NextMemory,
    PermutedTokens,
    RelativeSinusoids,
    VisibleMemory,
)
from keras_bert_suite.layers.attention.relative_attention import RelativeAttention, RelativeBlock
from keras_bert_suite.layers.attention.rotary_attention import RotaryAttention, RotaryBlock
from keras_bert_suite.layers.attention.self_attention import SelfAttention
from keras_bert_suite.layers.attention.sequence_layout import (
    PackedSequences,
    SequenceLayout,
    SequenceNumbers,
    TokenPositions,
    UnpackSequences,
    VisibleTokens,
)
from keras_bert_suite.layers.attention.token_hashing import TokenHashing
from keras_bert_suite.layers.attention.xlnet_attention import XLNetAttention, XLNetBlock
from keras_bert_suite.layers.bart_block import BartBlock
from keras_bert_suite.layers.companions import (
    GLOBAL_ARGUMENT,
    LAYOUT_ARGUMENT,
    PROMPT_ARGUMENT,
    SHIFT_ARGUMENT,
)
from keras_bert_suite.layers.dropout import Dropout
from keras_bert_suite.layers.embeddings.bart_embeddings import BartEmbeddings
from keras_bert_suite.layers.embeddings.bert_embeddings import BertEmbeddings, ProjectedEmbeddings
from keras_bert_suite.layers.embeddings.character_embeddings import CharacterEmbeddings
from keras_bert_suite.layers.embeddings.factorized_embedding import FactorizedEmbedding
from keras_bert_suite.layers.embeddings.part_embeddings import PartEmbeddings
from keras_bert_suite.layers.embeddings.unplaced_embeddings import (
    TokenEmbeddings,
    UnplacedEmbeddings,
)
from keras_bert_suite.layers.embeddings.xlnet_embeddings import XLNetEmbeddings
from keras_bert_suite.layers.heads.crf import ConditionalRandomField
from keras_bert_suite.layers.heads.global_pointer import EfficientGlobalPointer, GlobalPointer
from keras_bert_suite.layers.heads.masked_lm_head import MaskedLMHead
from keras_bert_suite.layers.heads.prediction_head import PredictionHead
from keras_bert_suite.layers.heads.replaced_tokens import ReplacedTokenHead, ReplacementSampler
from keras_bert_suite.layers.heads.span_boundary import SpanBoundaryHead
from keras_bert_suite.layers.norm_condition import NormCondition
from keras_bert_suite.layers.poolings.learned_pooling import (
    AttentionPooling,
    BiLSTMPooling,
    ConvolutionPooling,
    LastLayers,
    ScalarMix,
)
from keras_bert_suite.layers.poolings.pooling import (
    ConcatenatedPooling,
    FirstLastPooling,
    FirstTokenPooling,
    LastTokenPooling,
    MaxPooling,
    MeanPooling,
    PromptlessPooling,
    WeightedMeanPooling,
)
from keras_bert_suite.layers.poolings.window_layers import WindowSampler, WindowTransformer
from keras_bert_suite.layers.projected_lstm import ProjectedLSTM
from keras_bert_suite.layers.transformer_block import TransformerBlock
