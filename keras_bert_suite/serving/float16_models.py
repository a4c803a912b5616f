"""Brings the weights of exported models, and the products with them, to float16."""

import numpy as np


def halve_onnx(file):
    """Replaces an ONNX file by its float16 form. Its inputs and outputs keep their types.

    The matrices are stored in float16, and products with them are computed in it. All else stays in
    float32, also a matrix with a number beyond the range of float16. Norms and softmax lose little
    time and much exactness in float16, the numbers that hide tokens are beyond its range, and so
    are differences of places above 2,048, which some models compare.

    Args:
        file: `pathlib.Path`.
    """
    import onnx

    model = onnx.load(file)
    graph, made = model.graph, {}
    matrices = _find_matrices(graph)
    nodes = []

    def cast(name, kind):
        """The name of a tensor in another type, by one node for all that read it."""
        if (name, kind) not in made:
            made[name, kind] = f"{name}/{kind}"
            to = getattr(onnx.TensorProto, kind)
            nodes.append(onnx.helper.make_node("Cast", [name], [made[name, kind]], to=to))
        return made[name, kind]

    for node in graph.node:
        halves = [i for i, name in enumerate(node.input) if name in matrices]
        is_product = node.op_type == "MatMul" and halves == [1]
        if is_product:
            node.input[0] = cast(node.input[0], "FLOAT16")
        if is_product or (node.op_type == "Gather" and halves == [0]):
            output, node.output[0] = node.output[0], f"{node.output[0]}/half"
            nodes.append(node)
            nodes.append(
                onnx.helper.make_node("Cast", [node.output[0]], [output], to=onnx.TensorProto.FLOAT)
            )
            continue
        for i in halves:
            node.input[i] = cast(node.input[i], "FLOAT")
        nodes.append(node)
    for tensor in matrices.values():
        array = onnx.numpy_helper.to_array(tensor).astype("float16")
        tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)
    onnx.save(model, file)


def _find_matrices(graph):
    """dict of the name -> tensor of the float32 weights of two axes or more."""
    import onnx

    within = {
        name
        for node in graph.node
        for attribute in node.attribute
        for inner in attribute.g.node
        for name in inner.input
    }
    return {
        tensor.name: tensor
        for tensor in graph.initializer
        if tensor.data_type == onnx.TensorProto.FLOAT
        and len(tensor.dims) > 1
        and np.prod(tensor.dims) > max(tensor.dims)
        and tensor.name not in within
        and np.abs(onnx.numpy_helper.to_array(tensor)).max(initial=0) <= np.finfo("float16").max
    }
