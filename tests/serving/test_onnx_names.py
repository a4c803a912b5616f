"""The names of the axes in an ONNX file, from which a runtime knows which of them are equal."""

import json

import pytest

from keras_bert_suite.serving.onnx_names import describe_onnx

TOKENS = {"token_ids": "B L", "padding_mask": "B L"}
PARTS = {"token_ids": "B N L", "padding_mask": "B N L"}
NAMES = {"B": "batch", "L": "length", "C": "characters"}

#: The inputs and the output of a file -> what N and M stand for.
TABLE = [
    ({**TOKENS, "segment_ids": "B L"}, "B L 3", {}, {}),
    ({"token_ids": "B L C", "padding_mask": "B L"}, "B L", {}, {}),
    ({"frames": "B L 7", "padding_mask": "B L"}, "B 2", {}, {}),
    (PARTS, "B N", {}, {"N": "choices"}),
    (PARTS, "B N", {"max_windows": 4}, {"N": "windows"}),
    ({**TOKENS, "mask_positions": "B M"}, "B M 9", {}, {"M": "masks"}),
    (
        {**TOKENS, "mask_positions": "B M", "verbalizer_ids": "B N M"},
        "B N",
        {},
        {"M": "masks", "N": "labels"},
    ),
    ({**TOKENS, "features": "B 5"}, "B 2", {}, {}),
]


@pytest.mark.parametrize(("inputs", "output", "said", "further"), TABLE)
def test_axes(inputs, output, said, further, tmp_path):
    onnx = pytest.importorskip("onnx")

    def declare(name, axes):
        sizes = [int(axis) if axis.isdigit() else f"unk__{name}{axis}" for axis in axes.split()]
        return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.INT32, sizes)

    values = [declare(name, axes) for name, axes in inputs.items()]
    node = onnx.helper.make_node("Identity", [values[0].name], ["answer"])
    graph = onnx.helper.make_graph([node], "model", values, [declare("answer", output)])
    file = tmp_path / "model.onnx"
    onnx.save(onnx.helper.make_model(graph), file)
    describe_onnx(file, {**said, "task": "T", "labels": ["a", "é"]})

    model = onnx.load(file)
    names = {**NAMES, **further}
    for value in (*model.graph.input, *model.graph.output):
        dims = value.type.tensor_type.shape.dim
        found = [dim.dim_param or str(dim.dim_value) for dim in dims]
        wanted = {**inputs, "answer": output}[value.name].split()
        assert found == [names.get(axis, axis) for axis in wanted], value.name
    properties = {entry.key: entry.value for entry in model.metadata_props}
    assert properties.pop("task") == "T" and json.loads(properties.pop("labels")) == ["a", "é"]
    assert {name: json.loads(value) for name, value in properties.items()} == said
