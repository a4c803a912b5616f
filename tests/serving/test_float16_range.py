"""Matrices that hold numbers beyond the range of float16."""

import numpy as np
import pytest

from keras_bert_suite.serving.float16_models import halve_onnx

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


def test_they_stay_in_float32(tmp_path):
    """In float16 they would be infinite, and a softmax of them no number."""
    arrays = {
        "halved": [[1, 2], [3, -65504]],
        "kernel": [[1e5, 2], [3, 4]],
        "mask": [[0, -1e9]] * 2,
    }
    make, kind = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [
        make.make_node("MatMul", ["x", "halved"], ["first"]),
        make.make_node("MatMul", ["first", "kernel"], ["second"]),
        make.make_node("Add", ["second", "mask"], ["logits"]),
        make.make_node("Softmax", ["logits"], ["y"]),
    ]
    x, y = (make.make_tensor_value_info(name, kind, [2, 2]) for name in "xy")
    weights = [onnx.numpy_helper.from_array(np.float32(a), name) for name, a in arrays.items()]
    graph = make.make_graph(nodes, "graph", [x], [y], weights)
    opset = make.make_opsetid("", 17)
    file = tmp_path / "model.onnx"
    onnx.save(make.make_model(graph, opset_imports=[opset], ir_version=8), file)

    def run():
        return onnxruntime.InferenceSession(file).run(None, {"x": np.eye(2, dtype="float32")})[0]

    wanted = run()
    halve_onnx(file)
    np.testing.assert_array_equal(run(), wanted)
    kinds = {tensor.name: tensor.data_type for tensor in onnx.load(file).graph.initializer}
    assert kinds == {"halved": onnx.TensorProto.FLOAT16, "kernel": kind, "mask": kind}
