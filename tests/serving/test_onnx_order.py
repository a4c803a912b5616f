"""The same model as ONNX is the same bytes, whatever the converter names its nodes."""

import numpy as np
import pytest

from keras_bert_suite.serving.onnx_order import order_graph

onnx = pytest.importorskip("onnx")


def make_graph(ending, backwards):
    """x + 3 (2 + 1) in a branch, with equal constants, a node without use, and names of its own."""
    helper, numpy_helper = onnx.helper, onnx.numpy_helper

    def name(stem):
        return stem + ending

    def constant(stem, value):
        return numpy_helper.from_array(np.array([value], "float32"), name(stem))

    def make_node(op_type, inputs, output, **attributes):
        node = helper.make_node(op_type, inputs, [output], name("made of " + output), **attributes)
        node.doc_string = ending
        return node

    def branch(op_type):
        inner = make_node(op_type, [name("scaled"), name("three")], name("inner"))
        value = helper.make_tensor_value_info(name("inner"), onnx.TensorProto.FLOAT, ["N"])
        return helper.make_graph([inner], name("branch"), [], [value], [constant("three", 3)])

    nodes = [
        make_node("Mul", ["x", name("one")], name("scaled")),
        make_node("Add", [name("scaled"), name("also one")], name("unused")),
        make_node("Add", [name("also one"), name("two")], name("sum")),
        make_node("ReduceSum", [name("sum")], name("total"), keepdims=0),
        make_node("Greater", [name("total"), name("zero")], name("condition")),
        make_node(
            "If",
            [name("condition")],
            "y",
            then_branch=branch("Add"),
            else_branch=branch("Sub"),
        ),
    ]
    constants = [constant("one", 1), constant("also one", 1), constant("two", 2)]
    constants.append(numpy_helper.from_array(np.float32(0), name("zero")))
    step = -1 if backwards else 1
    if backwards:  # Still each node after the nodes whose outputs it reads.
        nodes = [nodes[2], nodes[3], nodes[0], nodes[4], nodes[1], nodes[5]]
    x, y = (
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["N"]) for name in ("x", "y")
    )
    graph = helper.make_graph(nodes, name("graph"), [x], [y], constants[::step])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)


def test_the_order_depends_on_what_is_computed_alone():
    runtime = pytest.importorskip("onnxruntime")
    written = []
    for ending, backwards in (("", False), ("__17", True), ("_zz", False)):
        model = make_graph(ending, backwards)
        order_graph(model.graph)
        onnx.checker.check_model(model, full_check=True)
        assert len(model.graph.initializer) == 3, "equal constants became one"
        assert len(model.graph.node) == 5, "a node without use is left out"
        written.append(model.SerializeToString())
        session = runtime.InferenceSession(written[-1])
        (found,) = session.run(["y"], {"x": np.array([4, -1], "float32")})
        assert found.tolist() == [7, 2]
    assert len(set(written)) == 1
