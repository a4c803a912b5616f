"""The tasks. Each file has one task: its preprocessing, its head, its loss and metrics."""

from keras_bert_suite.tasks.attention_maps import encode_with_attention
from keras_bert_suite.tasks.attribute_classifier import AttributeClassifier
from keras_bert_suite.tasks.base.inspection import inspect_by_folds
from keras_bert_suite.tasks.crf_token_classifier import CrfLoss, CrfTokenClassifier
from keras_bert_suite.tasks.document_classifier import DocumentClassifier
from keras_bert_suite.tasks.electra_pretrainer import ElectraPretrainer
from keras_bert_suite.tasks.entity_span_classifier import EntitySpanClassifier
from keras_bert_suite.tasks.masked_lm import MaskedLM
from keras_bert_suite.tasks.multiple_choice import MultipleChoice
from keras_bert_suite.tasks.pretrainer import Pretrainer
from keras_bert_suite.tasks.question_answerer import QuestionAnswerer
from keras_bert_suite.tasks.relation_classifier import RelationClassifier
from keras_bert_suite.tasks.score_callbacks import AnswerF1, EntityF1
from keras_bert_suite.tasks.seq2seq import Seq2Seq
from keras_bert_suite.tasks.text_classifier import TextClassifier
from keras_bert_suite.tasks.text_embedder import TextEmbedder
from keras_bert_suite.tasks.text_ranker import TextRanker
from keras_bert_suite.tasks.token_classifier import TokenClassifier
from keras_bert_suite.tasks.vector_index import VectorIndex
