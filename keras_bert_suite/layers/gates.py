"""Factors of the parts of a block: of its attention heads, and of its feed-forward units.

With a factor of 1 a part counts as it is, and with 0 it is removed. The gradient of a loss by the
factor of a part says how much the loss depends on the part.
"""

import contextlib
import threading
from collections.abc import Iterator, Mapping

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor

#: `gates`, within `hold_gates`: layer -> tensor. `torch.compile` reads attributes of this kind.
_held = threading.local()


@contextlib.contextmanager
def hold_gates(gates: Mapping[keras.layers.Layer, Tensor]) -> Iterator[None]:
    """Within it, layers multiply their parts by factors.

    Args:
        gates: dict of an attention layer -> float (B, heads), or of a block -> float
            (B, intermediate_dim). B is the number of rows, or a divisor of it: of a batch whose
            rows have several texts each, the texts of a row share its factors.
    """
    _held.gates = {id(layer): gate for layer, gate in gates.items()}
    try:
        yield
    finally:
        del _held.gates


def apply_gate(layer: keras.layers.Layer, x: Tensor, axis: int) -> Tensor:
    """The parts of a layer times their factors, or as they are outside of `hold_gates`.

    Args:
        layer: the layer that the factors are of.
        x: float, whose first axis is rows and whose axis `axis` is parts.
        axis: int.
    """
    gates = getattr(_held, "gates", None)
    gate = None if gates is None else gates.get(id(layer))
    if gate is None:
        return x
    repeats = x.shape[0] // gate.shape[0]
    gate = gate if repeats == 1 else ops.repeat(gate, repeats, axis=0)
    shape = [1] * len(x.shape)
    shape[0], shape[axis] = gate.shape
    return x * ops.cast(ops.reshape(gate, shape), x.dtype)
