"""Products of matrices under PyTorch, by the faster of its two libraries.

On a CPU, PyTorch multiplies float32 matrices by Intel's MKL. On processors of AMD, MKL leaves their
widest registers (AVX-512) unused. oneDNN, the library of PyTorch's compiler, uses them, and is
twice as fast there. It keeps the code of the last 1,024 shapes, some 600 MB if all differ. The
environment variable ONEDNN_PRIMITIVE_CACHE_CAPACITY takes another number.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.processor import read_processor

#: The least number of multiplications of a product for oneDNN. Calling it takes longer.
_LEAST_PRODUCT = 1 << 23


def linear(
    x: Tensor, kernel: Tensor, bias: Tensor | None = None, gelu: str | None = None
) -> Tensor:
    """Computes `x @ kernel + bias` under PyTorch, and GELU of it: (..., I) -> (..., O).

    `gelu` is None for no activation function; "none" or "tanh", the `approximate` of PyTorch's
    GELU.
    """
    import torch

    has_gradients = torch.is_grad_enabled()
    if not _takes_onednn(x, kernel):
        y = _multiply_with_mkl(x, kernel, bias, has_gradients)
    elif not has_gradients:  # Training needs the numbers that GELU was given.
        return _uncompiled_product()(x.contiguous(), kernel, bias, gelu)
    else:
        y = _product_with_gradients().apply(x.contiguous(), kernel, bias)
    return y if gelu is None else torch.nn.functional.gelu(y, approximate=gelu)


def _multiply_with_mkl(
    x: Tensor, kernel: Tensor, bias: Tensor | None, has_gradients: bool
) -> Tensor:
    import torch

    if not has_gradients or bias is None:
        # `linear` takes the kernel with its axes swapped, which is a view.
        return torch.nn.functional.linear(x, kernel.T, bias)
    # A view less, which would have a gradient.
    rows = torch.addmm(bias, x.reshape(-1, x.shape[-1]), kernel)
    return rows.view(*x.shape[:-1], kernel.shape[-1])


def bind_linear(
    kernel: Tensor, bias: Tensor | None = None, gelu: str | None = None
) -> Callable[[Tensor], Tensor]:
    """`linear` as a function of its input alone, which asks for the size of the product at most.

    It takes gradients if they are enabled now.
    """
    import torch

    least = math.inf
    if kernel.dtype == torch.float32 and kernel.device.type == "cpu" and _is_mkl_slow():
        least = _LEAST_PRODUCT / kernel.shape[-1]
    activate = torch.nn.functional.gelu
    if torch.is_grad_enabled():

        def compute(x: Tensor) -> Tensor:
            if x.numel() < least:
                y = _multiply_with_mkl(x, kernel, bias, has_gradients=True)
            else:
                y = _product_with_gradients().apply(x.contiguous(), kernel, bias)
            return y if gelu is None else activate(y, approximate=gelu)

        return compute
    weight, multiply = kernel.T, torch.nn.functional.linear
    if least == math.inf and gelu is None:
        return functools.partial(multiply, weight=weight, bias=bias)

    def predict(x: Tensor) -> Tensor:
        if x.numel() >= least:
            return _multiply(x.contiguous(), kernel, bias, gelu)
        y = multiply(x, weight, bias)
        return y if gelu is None else activate(y, approximate=gelu)

    return predict


def pack_table(table: Tensor) -> Tensor | None:
    """A matrix (V, E) in the order in which oneDNN multiplies few rows with it, on a CPU.

    The products `x @ table.T` take half as long, and the packing as long as five of them. None
    where the matrix cannot be packed.
    """
    import torch

    is_packable = (
        torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
        and table.dtype == torch.float32
        and table.device.type == "cpu"
        and not torch.is_grad_enabled()
    )
    return torch.ops.mkldnn._reorder_linear_weight(table.detach()) if is_packable else None


def multiply_packed(x: Tensor, packed: Tensor, bias: Tensor | None = None) -> Tensor:
    """Computes `x @ table.T + bias` for a matrix of `pack_table`: (..., E) -> (..., V)."""
    import torch

    return torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")


def _takes_onednn(x: Tensor, kernel: Tensor) -> bool:
    import torch

    # The compiler cannot read how the processor is asked, and would break the graph of `predict`.
    return (
        not torch.compiler.is_compiling()
        and x.numel() * kernel.shape[-1] >= _LEAST_PRODUCT
        and x.dtype == torch.float32
        and x.device.type == "cpu"
        and _is_mkl_slow()
    )


@functools.cache
def _is_mkl_slow() -> bool:
    import torch

    return (
        torch.backends.mkl.is_available()
        and torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and torch.backends.cpu.get_cpu_capability() == "AVX512"
        and "AuthenticAMD" in read_processor()[0]
    )


def _multiply(
    x: Tensor, kernel: Tensor, bias: Tensor | None = None, gelu: str | None = None
) -> Tensor:
    """The product of a matrix, or a stack of rows, with a matrix; each may be a transposed view."""
    import torch

    activation = "none" if gelu is None else "gelu"
    # The weight of this operation is the kernel with its axes swapped.
    return torch.ops.mkldnn._linear_pointwise(x, kernel.T, bias, activation, [], gelu or "")


@functools.cache
def _uncompiled_product() -> Callable[..., Tensor]:
    """`_multiply`, which PyTorch's compiler runs as it is. It cannot lower the transposed view."""
    import torch

    return torch.compiler.disable(_multiply)


@functools.cache
def _product_with_gradients() -> Any:
    import torch

    class Product(torch.autograd.Function):
        """`_multiply` without GELU, with its gradients, which have gradients themselves."""

        @staticmethod
        def forward(x: Tensor, kernel: Tensor, bias: Tensor | None) -> Tensor:
            return _uncompiled_product()(x, kernel, bias)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            ctx.save_for_backward(*inputs[:2])

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
            x, kernel = ctx.saved_tensors
            gradient = gradient.contiguous()
            rows, row_gradients = (y.reshape(-1, y.shape[-1]) for y in (x, gradient))
            of_x, of_kernel, of_bias = ctx.needs_input_grad
            return (
                Product.apply(gradient, kernel.T, None) if of_x else None,
                Product.apply(rows.T, row_gradients, None) if of_kernel else None,
                row_gradients.sum(dim=0) if of_bias else None,
            )

    return Product
