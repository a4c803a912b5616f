"""What a task needs to be served, and the model that answers for it."""

import keras


def check_task(task):
    """Checks that a task has what an export is made of.

    Raises:
        ValueError: if it has no answers to serve, or nothing that turns texts into its inputs.
    """
    if not hasattr(task, "serving_outputs"):
        raise ValueError(
            f"A {type(task).__name__} cannot be exported: it has no answers to serve. Export a "
            "TextClassifier or a TokenClassifier of keras_bert_suite; one is made from an encoder "
            "with TextClassifier(backbone, label_names=..., preprocessor=...)."
        )
    if task.preprocessor is None:
        raise ValueError(
            f"{task.name} has no preprocessor, so there is nothing to turn texts into token ids "
            "with. Set `task.preprocessor` to a SegmentPacker before the export."
        )


def make_served_model(task):
    """The functional model from a task's inputs to its `serving_outputs`, without `label_ids`.

    ONNX lacks the ops that Keras finds a maximum with, and callers find it easily.
    """
    outputs = task.serving_outputs(task.output, task.input)
    return keras.Model(task.input, {k: v for k, v in outputs.items() if k != "label_ids"})
