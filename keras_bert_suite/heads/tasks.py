"""The tasks and what goes with them, which `keras_bert_suite` offers, too."""

from keras_bert_suite.heads.attributes.attribute_classifier import AttributeClassifier
from keras_bert_suite.heads.base.attention_maps import encode_with_attention
from keras_bert_suite.heads.base.confusions import plot_confusion_matrix
from keras_bert_suite.heads.base.inspection import inspect_by_folds
from keras_bert_suite.heads.choices.multiple_choice import MultipleChoice
from keras_bert_suite.heads.continuations.causal_lm import CausalLM
from keras_bert_suite.heads.documents.document_classifier import DocumentClassifier
from keras_bert_suite.heads.exits.early_exit_classifier import EarlyExitClassifier
from keras_bert_suite.heads.masks.masked_lm import MaskedLM
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
from keras_bert_suite.heads.texts.text_classifier import TextClassifier
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
    "EntityF1",
    "EntitySpanClassifier",
    "FramePretrainer",
    "MaskedLM",
    "MultipleChoice",
    "Pretrainer",
    "QuestionAnswerer",
    "RelationClassifier",
    "Seq2Seq",
    "Seq2SeqPretrainer",
    "TextClassifier",
    "TextEmbedder",
    "TextRanker",
    "TokenClassifier",
    "VectorIndex",
    "encode_with_attention",
    "inspect_by_folds",
    "plot_confusion_matrix",
]
