"""The names that `keras_bert_suite.heads` offers: the tasks, and the parts of a head.

`keras_bert_suite` offers the names of `__all__`, too.
"""
# ruff: noqa: F401

from keras_bert_suite.heads.attributes.attribute_classifier import AttributeClassifier
from keras_bert_suite.heads.base.answers import (
    ClassAnswers,
    DictAnswers,
    LabelSetAnswers,
    NumberAnswers,
    RowAnswers,
)
from keras_bert_suite.heads.base.attention_maps import encode_with_attention
from keras_bert_suite.heads.base.confusions import plot_confusion_matrix
from keras_bert_suite.heads.base.head import HEADS, Head
from keras_bert_suite.heads.base.input_checks import EncoderInputs
from keras_bert_suite.heads.base.inspection import inspect_by_folds, inspect_rows
from keras_bert_suite.heads.base.labelled_task import (
    LabelledTask,
    make_head,
    resolve_label_names,
)
from keras_bert_suite.heads.base.labels import Classes, DictLabels, Labels, LabelSets, Numbers
from keras_bert_suite.heads.base.part_checks import check_summary_place
from keras_bert_suite.heads.base.predicted_probabilities import predict_probabilities
from keras_bert_suite.heads.base.served import ServedTask
from keras_bert_suite.heads.base.task import Task
from keras_bert_suite.heads.base.text_data import TextData
from keras_bert_suite.heads.choices.multiple_choice import MultipleChoice
from keras_bert_suite.heads.continuations.causal_lm import CausalLM
from keras_bert_suite.heads.documents.document_classifier import DocumentClassifier
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
from keras_bert_suite.heads.tags.crf_token_classifier import CrfLoss, CrfTokenClassifier
from keras_bert_suite.heads.tags.token_classifier import TokenClassifier
from keras_bert_suite.heads.targets.beam_search import BeamSearch
from keras_bert_suite.heads.targets.seq2seq import Seq2Seq
from keras_bert_suite.heads.texts.text_classifier import TextClassifier
from keras_bert_suite.heads.vectors.text_embedder import TextEmbedder
from keras_bert_suite.heads.vectors.vector_index import VectorIndex
from keras_bert_suite.models.encoder import Encoder

__all__ = [
    "AnswerF1",
    "AttributeClassifier",
    "BeamSearch",
    "CausalLM",
    "CrfTokenClassifier",
    "DocumentClassifier",
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
