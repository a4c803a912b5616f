"""Helps tf2onnx with some ops of TensorFlow, and with memory."""

import contextlib
import gc

import numpy as np


def register_erfc():
    """Teaches tf2onnx the op Erfc, 1 - erf(x).

    TensorFlow computes the exact GELU with it. tf2onnx 1.17 does not know the op, and copies it
    into the file, where no runtime knows it either.
    """
    from tf2onnx import utils
    from tf2onnx.handler import tf_op

    @tf_op("Erfc")
    class Erfc:
        @classmethod
        def version_9(cls, ctx, node, **kwargs):  # The first opset that has Erf.
            node.type = "Erf"
            (erf,) = node.output
            dtype = utils.map_onnx_to_numpy_type(ctx.get_dtype(erf))
            one = ctx.make_const(utils.make_name("one"), np.array(1, dtype))
            erfc = ctx.insert_new_node_on_output(
                "Sub", erf, inputs=[one.output[0], erf], name=utils.make_name(node.name)
            )
            ctx.copy_shape(erf, erfc.output[0])
            ctx.copy_dtype(erf, erfc.output[0])


def register_floors():
    """Teaches tf2onnx to round quotients of integers down, as the ops FloorDiv and FloorMod do.

    tf2onnx 1.17 rounds them to 0. Then -5 % 4 would be -1 and not 3, and rows of a model with local
    attention would be cut, and not filled up, to whole blocks.
    """
    from tf2onnx.handler import tf_op
    from tf2onnx.onnx_opset import math

    @tf_op("FloorMod")
    class FloorMod:
        @classmethod
        def version_10(cls, ctx, node, **kwargs):  # The first opset that has Mod.
            if _is_float(ctx, node):
                math.FloorMod.version_7(ctx, node, **kwargs)
            else:
                node.type = "Mod"  # Of integers it has the sign of the divisor.

    @tf_op("FloorDiv")
    class FloorDiv:
        @classmethod
        def version_10(cls, ctx, node, **kwargs):
            if _is_float(ctx, node):
                math.FloorDiv.version_6(ctx, node, **kwargs)
                return
            dividend, divisor = node.input
            remainder = ctx.make_node("Mod", [dividend, divisor])
            whole = ctx.make_node("Sub", [dividend, remainder.output[0]])
            ctx.replace_input(node, dividend, whole.output[0], 0)
            node.type = "Div"


def _is_float(ctx, node):
    from tf2onnx import utils

    return np.issubdtype(utils.map_onnx_to_numpy_type(ctx.get_dtype(node.input[0])), np.floating)


@contextlib.contextmanager
def frequent_garbage_collection():
    """Frees tf2onnx' discarded copies of a model soon, while the block runs.

    Each optimizer of tf2onnx works on a deep copy of the whole graph. The copy has cycles, which
    only the garbage collector frees. Python puts off a full collection until there are enough new
    objects, but few objects hold all the weights. So a model of 90 MB took 5.2 GB. In this block it
    takes 2.3 GB.
    """
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()  # Collections then skip the objects from before, and are quick.
    gc.set_threshold(10_000, 1, 1)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
        gc.collect()
