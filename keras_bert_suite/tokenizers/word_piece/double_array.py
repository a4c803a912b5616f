"""Writes tries as darts-clone double arrays, the form in which tensorflow_text's ops read them.

Every node of a trie has a base. Byte b leads to a child, whose unit lies at base ^ b. The value of
a node, if it has one, lies at its base. A unit has 32 bits. From the lowest bit on they are:

    a node:  its byte (8), whether it has a value (1), 0, its own position ^ its base (21), 0
    a value: the value (31), 1
"""

import numpy as np

_HAS_VALUE = 1 << 8
_OFFSET_SHIFT = 10
_IS_VALUE = 1 << 31
_BLOCK = 256


class Node:
    """A node of a trie: its value (0 for none) and its children, dict of byte -> Node."""

    def __init__(self, value, children):
        self.value = value
        self.children = children


class NodePool:
    """Makes nodes; equal subtrees are one object, so that `lay_out` stores them once."""

    def __init__(self):
        self._nodes = {}

    def node(self, value, children):
        key = (value, tuple((byte, id(child)) for byte, child in children.items()))
        if key not in self._nodes:
            self._nodes[key] = Node(value, children)
        return self._nodes[key]

    def leaf(self, value):
        """A node without children; None for no value."""
        return self.node(value, {}) if value else None


def lay_out(root):
    """The trie below `root` as an array of uint32 units, whole blocks of 256 of them."""
    nodes = _collect(root)
    bases = _place(root, nodes)
    size = (max(bases.values()) // _BLOCK + 1) * _BLOCK
    units = np.zeros(size, dtype=np.uint32)
    units[0] = _node_unit(0, 0, root, bases)
    for node in nodes:
        base = bases[node]
        if node.value:
            units[base] = _IS_VALUE | node.value
        for byte, child in node.children.items():
            units[base ^ byte] = _node_unit(base ^ byte, byte, child, bases)
    return units


def _node_unit(position, byte, node, bases):
    offset = position ^ bases[node]
    return byte | (_HAS_VALUE if node.value else 0) | offset << _OFFSET_SHIFT


def _collect(root):
    """Every node below `root`, each once."""
    seen = {root: None}
    pending = [root]
    while pending:
        for child in pending.pop().children.values():
            if child not in seen:
                seen[child] = None
                pending.append(child)
    return list(seen)


def _place(root, nodes):
    """dict of node -> base, such that no two units meet and no two nodes share a base."""
    bases = {root: _BLOCK}
    # Position 0 is the unit of the root. The children of the root have a separate block.
    occupied = bytearray(2 * _BLOCK)
    occupied[0] = 1
    occupied[_BLOCK:] = b"\1" * _BLOCK
    branching = [node for node in nodes if node.children and node is not root]
    # Nodes with many children come first, while whole blocks are free. The 64 continuation bytes
    # are neighbours, so it is enough to try every 64th base.
    for node in sorted(branching, key=lambda node: -len(node.children)):
        labels = [*node.children, 0] if node.value else list(node.children)
        base = 0
        used = set(bases.values())
        while base in used or any(occupied[base ^ label] for label in labels):
            base += 64
            if base == len(occupied):
                occupied += bytes(_BLOCK)
        bases[node] = base
        for label in labels:
            occupied[base ^ label] = 1
    # Single values fill the gaps.
    used = set(bases.values())
    position = 0
    for node in nodes:
        if node.children:
            continue
        position = occupied.find(0, position)
        while position in used:
            position = occupied.find(0, position + 1)
        if position < 0:
            position = len(occupied)
            occupied += bytes(_BLOCK)
        bases[node] = position
        occupied[position] = 1
    return bases
