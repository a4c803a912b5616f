"""Rebuilds a task in another precision, for a SavedModel."""

import keras_hub

from keras_bert_suite.heads.base.ensemble import Ensemble, members_of

PRECISIONS = ("float32", "bfloat16", "float16")


def check_weight_precision(task: keras_hub.models.Task, precision: str | None) -> None:
    """Raises a ValueError if a SavedModel has no such precision, or a task weights of integers."""
    if precision is None:
        return
    if precision not in PRECISIONS:
        raise ValueError(
            f"precision must be one of {', '.join(PRECISIONS)}, or None for the precision of the "
            f"task, got {precision!r}. export_onnx and export_openvino have precision='int8'."
        )
    if any(is_quantized(part) for part in members_of(task)):
        raise ValueError(
            f"precision must be None for a task that was quantized, got {precision!r}. Export it "
            f"as it is, or bring the task to {precision} before it is quantized."
        )


def is_quantized(task: keras_hub.models.Task) -> bool:
    """Whether a layer of a task computes in 8-bit integers."""
    return any(layer.quantization_mode for layer in task._flatten_layers(include_self=False))


def bring_to_precision(task: keras_hub.models.Task, precision: str | None) -> keras_hub.models.Task:
    """A copy of a task that keeps its weights and computes in a precision of `PRECISIONS`.

    With None, or if it has this precision already, it is returned as it is. The layers that a user
    has built, such as a pooling, keep their precision. So do the transitions of a CRF.
    """
    if isinstance(task, Ensemble):
        return task.map_tasks(lambda part: bring_to_precision(part, precision))
    backbone = task.backbone
    if precision in (None, backbone.dtype_policy.name):
        return task
    config = {
        **task.get_config(),
        "backbone": type(backbone).from_config({**backbone.get_config(), "dtype": precision}),
        "preprocessor": task.preprocessor,
    }
    rebuilt = type(task).from_config(config)
    rebuilt.set_weights(task.get_weights())
    return rebuilt
