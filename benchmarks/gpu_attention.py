"""Measures the attention of JAX on a GPU: cuDNN's kernel and XLA's formula, in turn in one process.

    python benchmarks/gpu_attention.py
    python benchmarks/gpu_attention.py --shapes 64x12x256x64

cuDNN is called for rows of any length here, also where the layers leave short rows to XLA.

Rows are padded to lengths between a quarter and all of the tokens. A time is the median of several
calls that are compiled. The errors are the largest differences to float32 on real tokens.
"""

import argparse
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np

from keras_bert_suite.layers.attention import cudnn_attention


def attend_by_formula(query, key, value, mask):
    """softmax(Q K' / sqrt(D)) V with the scores in float32, (B, heads, L, D)."""
    scores = jnp.einsum("bhqd,bhkd->bhqk", query, key, preferred_element_type="float32")
    scores = jnp.where(mask, scores / query.shape[-1] ** 0.5, -1e30)
    probabilities = jax.nn.softmax(scores, axis=-1).astype(value.dtype)
    return jnp.einsum("bhqk,bhkd->bhqd", probabilities, value)


KERNELS = {"formula": attend_by_formula, "cuDNN": cudnn_attention.attend}


def make_inputs(batch_size, num_heads, length, head_dim):
    """Queries, keys and values in float32, a padding mask, and the tokens as weights."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(3, batch_size, num_heads, length, head_dim)).astype("float32")
    real = np.arange(length) < rng.integers(length // 4, length + 1, (batch_size, 1))
    return [jnp.asarray(x) for x in inputs], jnp.asarray(real)


def measure(shape, repeats):
    """Prints a row of the table for each kernel."""
    inputs, real = make_inputs(*shape)
    mask, weights = real[:, None, None, :], real[:, None, :, None]
    halves = [x.astype("bfloat16") for x in inputs]

    def make_functions(kernel):
        def forward(query, key, value, mask, weights):
            return jnp.where(weights, kernel(query, key, value, mask), 0)

        def loss(*args):
            return jnp.sum(jnp.sin(forward(*args).astype("float32")))

        return jax.jit(forward), jax.jit(jax.grad(loss, (0, 1, 2)))

    masks = mask, weights
    functions = make_functions(attend_by_formula)
    exact = [np.asarray(x) for x in flatten(run(functions, [*inputs, *masks]))]
    for name, kernel in KERNELS.items():
        functions = make_functions(kernel)
        outputs = [np.asarray(x, "float32") for x in flatten(run(functions, [*halves, *masks]))]
        errors = [float(abs(x - y).max()) for x, y in zip(outputs, exact, strict=True)]
        seconds = [time_calls(function, [*halves, *masks], repeats) for function in functions]
        figures = f"{1e3 * seconds[0]:.3f} | {1e3 * seconds[1]:.3f}"
        print(f"| {shape} | {name} | {figures} | {errors[0]:.4f} | {max(errors[1:]):.4f} |")


def run(functions, inputs):
    return [function(*inputs) for function in functions]


def flatten(outputs):
    context, gradients = outputs
    return [context, *gradients]


def time_calls(function, inputs, repeats):
    """The median of the seconds of a call."""
    jax.block_until_ready(function(*inputs))
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        jax.block_until_ready(function(*inputs))
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    shapes = ["256x12x128x64", "64x12x512x64", "128x16x128x64", "32x16x512x64"]
    parser.add_argument("--shapes", nargs="+", default=shapes, help="B x heads x L x D")
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    cudnn_attention.FEWEST_KEYS = 1
    print(f"jax {jax.__version__} on {jax.devices()[0].device_kind}\n")
    print("| shape | kernel | forward, ms | gradient, ms | error | error of the gradient |")
    print("| --- | --- | --- | --- | --- | --- |")
    for shape in options.shapes:
        measure([int(number) for number in shape.split("x")], options.repeats)


if __name__ == "__main__":
    main()
