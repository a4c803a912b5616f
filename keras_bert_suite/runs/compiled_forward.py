"""Predicts with a compiled forward pass under PyTorch."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops


def compile_forward(model: keras.Model) -> Callable[[list[Any]], Any]:
    """Makes a `predict_function` for Keras that compiles the forward pass of a built model, whole.

    Keras would compile the step together with what converts its batch. The compiler leaves its
    graph to convert a NumPy array, and does not use CUDA graphs if an input is on the CPU. Here the
    batch becomes tensors of the model's device before the compiled function is called, and the
    compiler sees one function from tensors to tensors. PyTorch compiles it at the first batch, and
    once more, for all lengths, at the first batch of another length.

    On a GPU the compiled function runs as CUDA graphs, which PyTorch records for each shape of a
    batch. A CUDA graph writes its outputs to the same memory each time, so they are copied.
    """
    import torch

    on_gpu = any(variable.value.is_cuda for variable in model.variables)

    @torch.compile(mode="reduce-overhead" if on_gpu else "default")
    def forward(x: Any) -> Any:
        return model(x, training=False)

    def predict_on(data: list[Any]) -> Any:
        x, _, _ = keras.utils.unpack_x_y_sample_weight(data[0])
        x = keras.tree.map_structure(ops.convert_to_tensor, x)
        if not on_gpu:
            with torch.no_grad():
                return forward(x)
        torch.compiler.cudagraph_mark_step_begin()
        with torch.no_grad():
            return keras.tree.map_structure(torch.clone, forward(x))

    return predict_on
