"""Names the axes of an ONNX model, and writes into it which task it answers."""

import json

from keras_bert_suite.heads.base.feature_columns import FEATURES
from keras_bert_suite.models.frame_inputs import CONDITION
from keras_bert_suite.serving.onnx_order import order_graph


def describe_onnx(file, description):
    """Rewrites an ONNX file, so that the same model has the same bytes, with a `describe_task`.

    Inputs and outputs that have an axis in common then name it alike: "batch", "length", "choices"
    of a `MultipleChoice` or a `ZeroShotClassifier`, "windows" of a `DocumentClassifier`, "masks" of
    a `MaskedLM`, and "labels" and "masks" of a `PatternClassifier`. So a runtime knows that they
    are equal. The description becomes `metadata_props`: strings as they are, and others as JSON.
    """
    import onnx

    model = onnx.load(file)
    graph = model.graph
    own = {
        "mask_positions": ["batch", "masks"],
        "verbalizer_ids": ["batch", "labels", "masks"],
        FEATURES: ["batch", "features"],
        CONDITION: ["batch", "numbers"],
    }
    names = {value.name for value in graph.input}
    has_parts = any(len(_dims(v)) == 3 for v in graph.input if v.name == "padding_mask")
    parts = "windows" if "max_windows" in description else "choices"
    axes = ["batch", parts, "length"] if has_parts else ["batch", "length"]
    for value in graph.input:
        characters = ["characters"] * (len(_dims(value)) - len(axes))
        _name_axes(value, own.get(value.name, [*axes, *characters]))
    other = parts if has_parts else "masks" if "mask_positions" in names else "length"
    if "verbalizer_ids" in names:
        other = "labels"
    for value in graph.output:
        _name_axes(value, ["batch"] + [other] * (len(_dims(value)) - 1))
    order_graph(graph)
    texts = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in description.items()
    }
    onnx.helper.set_model_props(model, texts)
    onnx.save(model, file)


def _dims(value):
    return value.type.tensor_type.shape.dim


def _name_axes(value, names):
    for axis, name in zip(_dims(value), names, strict=True):
        if not axis.HasField("dim_value"):
            axis.dim_param = name
