"""The names that `keras_bert_suite.heads` offers: the tasks, and the parts of a head."""
# ruff: noqa: F401

from keras_bert_suite.heads.base.answers import (
    ClassAnswers,
    DictAnswers,
    LabelSetAnswers,
    NumberAnswers,
    RowAnswers,
)
from keras_bert_suite.heads.base.head import HEADS, Head
from keras_bert_suite.heads.base.input_checks import EncoderInputs
from keras_bert_suite.heads.base.inspection import inspect_rows
from keras_bert_suite.heads.base.labelled_task import LabelledTask, make_head, resolve_label_names
from keras_bert_suite.heads.base.labels import Classes, DictLabels, Labels, LabelSets, Numbers
from keras_bert_suite.heads.base.part_checks import check_summary_place
from keras_bert_suite.heads.base.predicted_probabilities import predict_probabilities
from keras_bert_suite.heads.base.served import ServedTask
from keras_bert_suite.heads.base.task import Task
from keras_bert_suite.heads.base.text_data import TextData
from keras_bert_suite.heads.tags.crf_token_classifier import CrfLoss
from keras_bert_suite.heads.tasks import *  # noqa: F403
from keras_bert_suite.models.encoder import Encoder
