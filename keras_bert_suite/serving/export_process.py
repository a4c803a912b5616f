"""Rebuilds a saved task under TensorFlow and writes its SavedModel.

Run by `export_saved_model` as a process of its own:
`python -m keras_bert_suite.serving.export_process TASK.keras DIRECTORY INPUT...`
"""

import sys

import keras

from keras_bert_suite.serving.saved_model import write_saved_model

if __name__ == "__main__":
    _, file, directory, *inputs = sys.argv
    write_saved_model(keras.saving.load_model(file, compile=False), directory, inputs)
