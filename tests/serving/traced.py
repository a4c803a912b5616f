"""The signatures of an export, without writing it."""

import keras
import numpy as np
import pytest

from keras_bert_suite import export_saved_model
from keras_bert_suite.heads.base.served import serve
from keras_bert_suite.serving.input_names import choose_input_names
from keras_bert_suite.serving.signatures import make_signatures


def trace(task, num_texts=1):
    """function(**texts) to the answers of the signature "serving_default"."""
    import tensorflow as tf

    served = serve(task)
    graph = tf.function(
        lambda *texts: served.answer_texts(texts),
        input_signature=[tf.TensorSpec([None], tf.string)] * num_texts,
        autograph=False,
    )
    return lambda **texts: graph(*texts.values())


def call_signatures(task, folder=None, inputs=None):
    """dict of the name of each signature -> function(**tensors), which runs no graph.

    The folder is for `save_signatures` alone. Files and graphs take five times as long.
    """
    signatures = make_signatures(serve(task), choose_input_names(task, inputs))
    return {name: _call_without_graph(function) for name, function in signatures.items()}


def _call_without_graph(function):
    import tensorflow as tf

    def call(**tensors):
        arguments = tf.nest.map_structure(lambda spec: tensors[spec.name], function.input_signature)
        tf.config.run_functions_eagerly(True)
        try:
            return function(*arguments)
        finally:
            tf.config.run_functions_eagerly(False)

    return call


def save_signatures(task, folder, inputs=None):
    """As `call_signatures`, of a SavedModel that is written into a folder."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401

    path = export_saved_model(task, folder / "model", inputs, verbose=0)
    return tf.saved_model.load(str(path)).signatures


def write_answers(task, directory, texts):
    """Writes what a process answers, and its backend, in the place of an export."""
    answers = task.predict(texts, verbose=0)
    np.savez(directory / "answers.npz", answers=answers, backend=keras.config.backend())


#: Parametrizes a test by `open_signatures`. What is in the file is the same for each head.
called_or_saved = pytest.mark.parametrize(
    "open_signatures",
    [
        pytest.param(call_signatures, id="called"),
        pytest.param(save_signatures, id="saved", marks=pytest.mark.long("serving")),
    ],
)
