"""A run of a model over data, from start to end: batches, checkpoints, resumption, prediction."""

from keras_bert_suite.runs.gradual_unfreezing import GradualUnfreezing
from keras_bert_suite.runs.training_checkpoint import TrainingCheckpoint
