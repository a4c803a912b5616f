"""The tasks and what goes with them, which `keras_bert_suite` offers, too."""

from keras_bert_suite.heads.attributes.attribute_classifier import AttributeClassifier
from keras_bert_suite.heads.base.attended_tokens import attended_tokens
from keras_bert_suite.heads.base.attention_maps import encode_with_attention
from keras_bert_suite.heads.base.confusions import plot_confusion_matrix
from keras_bert_suite.heads.base.ensemble import Ensemble
from keras_bert_suite.heads.base.fold_ensembles import fit_folds
from keras_bert_suite.heads.base.inspection import inspect_by_folds
from keras_bert_suite.heads.base.integrated_gradients import integrated_gradients
from keras_bert_suite.heads.base.size_comparison import compare_sizes
from keras_bert_suite.heads.base.teacher_outputs import (
    add_teacher_outputs,
    write_teacher_outputs,
)
from keras_bert_suite.heads.choices.multiple_choice import MultipleChoice
from keras_bert_suite.heads.continuations.causal_lm import CausalLM
from keras_bert_suite.heads.documents.document_classifier import DocumentClassifier
from keras_bert_suite.heads.entailments.zero_shot_classifier import ZeroShotClassifier
from keras_bert_suite.heads.exits.early_exit_classifier import EarlyExitClassifier
from keras_bert_suite.heads.masks.masked_lm import MaskedLM
from keras_bert_suite.heads.patterns.pattern_classifier import PatternClassifier
from keras_bert_suite.heads.pretraining.electra_pretrainer import ElectraPretrainer
from keras_bert_suite.heads.pretraining.elmo_pretrainer import ElmoPretrainer
from keras_bert_suite.heads.pretraining.frame_pretrainer import FramePretrainer
from keras_bert_suite.heads.pretraining.pretrainer import Pretrainer
from keras_bert_suite.heads.pretraining.seq2seq_pretrainer import Seq2SeqPretrainer
from keras_bert_suite.heads.questions.callbacks import AnswerF1
from keras_bert_suite.heads.questions.question_answerer import QuestionAnswerer
from keras_bert_suite.heads.rankings.text_ranker import TextRanker
from keras_bert_suite.heads.relations.relation_classifier import RelationClassifier
from keras_bert_suite.heads.spans.entity_span_classifier import EntitySpanClassifier
from keras_bert_suite.heads.tags.callbacks import EntityF1
from keras_bert_suite.heads.tags.crf_token_classifier import CrfTokenClassifier
from keras_bert_suite.heads.tags.token_classifier import TokenClassifier
from keras_bert_suite.heads.targets.beam_search import BeamSearch
from keras_bert_suite.heads.targets.seq2seq import Seq2Seq
from keras_bert_suite.heads.texts.few_shot import fit_few_shot
from keras_bert_suite.heads.texts.text_classifier import TextClassifier
from keras_bert_suite.heads.towers.two_tower_ranker import TwoTowerRanker
from keras_bert_suite.heads.vectors.negative_mining import mine_negatives
from keras_bert_suite.heads.vectors.static_distillation import distill_static
from keras_bert_suite.heads.vectors.text_embedder import TextEmbedder
from keras_bert_suite.heads.vectors.vector_index import VectorIndex

__all__ = [
    "AnswerF1",
    "AttributeClassifier",
    "BeamSearch",
    "CausalLM",
    "CrfTokenClassifier",
    "DocumentClassifier",
    "EarlyExitClassifier",
    "ElectraPretrainer",
    "ElmoPretrainer",
    "Ensemble",
    "EntityF1",
    "EntitySpanClassifier",
    "FramePretrainer",
    "MaskedLM",
    "MultipleChoice",
    "PatternClassifier",
    "Pretrainer",
    "QuestionAnswerer",
    "RelationClassifier",
    "Seq2Seq",
    "Seq2SeqPretrainer",
    "TextClassifier",
    "TextEmbedder",
    "TextRanker",
    "TokenClassifier",
    "TwoTowerRanker",
    "VectorIndex",
    "ZeroShotClassifier",
    "attended_tokens",
    "add_teacher_outputs",
    "compare_sizes",
    "distill_static",
    "encode_with_attention",
    "fit_few_shot",
    "fit_folds",
    "inspect_by_folds",
    "integrated_gradients",
    "mine_negatives",
    "plot_confusion_matrix",
    "write_teacher_outputs",
]
