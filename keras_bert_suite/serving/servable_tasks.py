"""Checks that a task can be served, and makes the model that is served."""

import keras

from keras_bert_suite.tasks import MaskedLM


def check_task(task):
    """Checks that a task can be exported.

    Raises:
        ValueError: if the task has no `serving_outputs`, or no preprocessor.
    """
    if not hasattr(task, "serving_outputs"):
        raise ValueError(
            f"A {type(task).__name__} cannot be exported: it has no answers to serve. Export a "
            "task of keras_bert_suite that has a head. Build a TextClassifier on an encoder with "
            "TextClassifier(backbone, label_names=..., preprocessor=...)."
        )
    if task.preprocessor is None:
        raise ValueError(
            f"{task.name} has no preprocessor, so texts cannot be turned into token ids. Set "
            "`task.preprocessor` to a SegmentPacker before the export."
        )


def check_num_texts(task, input_names):
    """Raises a `ValueError` if masks are to be guessed in rows of several texts."""
    if isinstance(task, MaskedLM) and len(input_names) != 1:
        raise ValueError(
            f"A MaskedLM guesses masks in single texts, and inputs={tuple(input_names)} names "
            f"{len(input_names)}. Name one input, such as inputs=('text',)."
        )


def make_served_model(task):
    """The functional model from a task's inputs to those `serving_outputs` that are scores.

    ONNX lacks the ops with which Keras finds a maximum. Callers can find it themselves.
    """
    outputs = task.serving_outputs(task.output, task.input)
    places = ("label_ids", "choices")
    return keras.Model(task.input, {k: v for k, v in outputs.items() if k not in places})
