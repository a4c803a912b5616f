"""Exports fitted tasks: SavedModel, ONNX, OpenVINO, LiteRT."""

from keras_bert_suite.serving.adapter_models import export_adapters
from keras_bert_suite.serving.batch_predictor import BatchPredictor
from keras_bert_suite.serving.portable_formats import export_litert, export_onnx, export_openvino
from keras_bert_suite.serving.runtime import TaskRuntime, open_runtime
from keras_bert_suite.serving.saved_model import export_saved_model
from keras_bert_suite.serving.versions import version_path
