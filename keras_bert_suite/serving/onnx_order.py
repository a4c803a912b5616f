"""Gives the nodes of an ONNX graph an order and names that depend on what they compute alone.

tf2onnx numbers names through all exports of a process, and its order follows the hashes of strings,
which each process of Python draws anew.
"""

import hashlib


def order_graph(graph, outer=None, prefix=""):
    """Orders and names the nodes and constants of a graph in place. Equal constants become one.

    The same model then has the same bytes in each export. The inputs and outputs of a model keep
    their names. For a graph that is an attribute of a node, such as the body of a loop, `outer` has
    the new names of the names around it. New names begin with `prefix`.
    """
    makers = {output: node for node in graph.node for output in node.output}
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    names = dict(outer or {})
    for number, value in enumerate(graph.input):
        names[value.name] = value.name if outer is None else f"{prefix}input_{number}"
    if outer is None:
        names |= {value.name: value.name for value in graph.output}
    nodes = _follow([value.name for value in graph.output], makers)
    used = [name for node in nodes for name in _read_names(node)]
    constants = {}  # digest of the content -> (new name, tensor)
    for name in [*used, *(value.name for value in graph.output)]:
        if name in tensors:
            tensor = tensors.pop(name)
            tensor.ClearField("name")
            digest = hashlib.sha256(tensor.SerializeToString()).digest()
            new = f"{prefix}constant_{len(constants)}"
            names[name], _ = constants.setdefault(digest, (new, tensor))
    for number, node in enumerate(nodes):
        node.name = f"{prefix}{node.op_type}_{number}"
        for place, output in enumerate(node.output):
            if output:  # An output that is left out has the name "".
                names.setdefault(output, f"{node.name}:{place}")
    for node in nodes:
        for inner in _inner_graphs(node):
            order_graph(inner, names, f"{node.name}/")
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
        node.ClearField("doc_string")
    for name, tensor in constants.values():
        tensor.name = name
    for value in (*graph.input, *graph.output):
        value.name = names[value.name]
    _sort(graph.node, [node.name for node in nodes])
    _sort(graph.initializer, [name for name, _ in constants.values()])
    del graph.value_info[:]  # Runtimes find the shapes in between by themselves.
    graph.ClearField("doc_string")
    graph.name = f"{prefix}graph"


def _follow(outputs, makers):
    """list of the nodes that outputs need, each after the nodes whose outputs it reads."""
    nodes, done = [], set()
    waiting = [makers[name] for name in reversed(outputs) if name in makers]
    while waiting:
        node = waiting[-1]
        before = (makers[name] for name in _read_names(node) if name in makers)
        missing = next((other for other in before if id(other) not in done), None)
        if missing is not None:
            waiting.append(missing)
            continue
        waiting.pop()
        if id(node) not in done:
            done.add(id(node))
            nodes.append(node)
    return nodes


def _read_names(node):
    """list of the names that a node reads, also inside of its graphs."""
    inner = [name for graph in _inner_graphs(node) for name in _read_outside(graph)]
    return [*node.input, *inner]


def _read_outside(graph):
    """list of the names that a graph reads from outside."""
    own = {value.name for value in (*graph.input, *graph.initializer)}
    own |= {output for node in graph.node for output in node.output}
    read = [name for node in graph.node for name in _read_names(node)]
    read += [value.name for value in graph.output]
    return [name for name in read if name and name not in own]


def _inner_graphs(node):
    return [attribute.g for attribute in node.attribute if attribute.HasField("g")]


def _sort(values, names):
    """Puts the values with these names in their order, and drops all others."""
    order = {name: place for place, name in enumerate(names)}
    for place in reversed(range(len(values))):
        if values[place].name not in order:
            del values[place]
    values.sort(key=lambda value: order[value.name])
