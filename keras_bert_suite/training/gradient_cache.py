"""Encodes a large batch part by part, and encodes each part a second time for its gradient."""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import keras
from keras import ops
from keras.src.backend.common.variables import AutocastScope

from keras_bert_suite.annotations import Tensor

#: A function (weights, constants, random states, part) -> (vectors, next random states). It reads
#: no variables.
Step: TypeAlias = Callable[
    [list[Tensor], list[Tensor], list[Tensor], dict[str, Tensor]], tuple[Tensor, list[Tensor]]
]

#: The first three arguments of a `Step`.
Values: TypeAlias = tuple[list[Tensor], list[Tensor], list[Tensor]]


def encode_in_parts(
    model: keras.Model,
    encode: Callable[[dict[str, Tensor]], Tensor],
    inputs: dict[str, Tensor],
    part_size: int,
) -> Tensor:
    """Encodes rows part by part. Only the activations of one part are in memory at a time.

    The activations of a part are thrown away after its forward pass. For the gradient the part is
    encoded a second time, with the random numbers of the first time. So the gradients equal the
    gradients of `encode` on all rows, up to rounding and other dropout masks. A step takes about a
    third more time.

    If the number of rows is no multiple of `part_size`, JAX and TensorFlow fill the last part up
    with the first rows, and leave out the vectors of the filling.

    A replica may have no rows of a batch. It encodes an empty part, so that the gradients of all
    weights are 0.

    Args:
        model: the model whose variables `encode` reads. `encode` may change only one kind of
            non-trainable variable: the states of random generators.
        encode: function from a dict of tensors (n, ...) to float32 (n, H).
        inputs: dict of tensors (N, ...).
        part_size: int, the rows of a part.

    Returns:
        float32 (N, H).

    Source: Gao et al., 2021, GradCache (https://arxiv.org/abs/2101.06983). There the gradients of
    all vectors are cached between the two passes; here the backward pass of the step holds them.
    """
    states = [v for v in model.non_trainable_variables if not _is_float(v)]
    constants = [v for v in model.non_trainable_variables if _is_float(v)]
    weights = model.trainable_variables
    with AutocastScope(None):  # Values in full precision. The layers cast them.
        values: Any = tuple(
            [ops.convert_to_tensor(v.value) for v in variables]
            for variables in (weights, constants, states)
        )

    def step(
        weight_values: list[Tensor],
        constant_values: list[Tensor],
        state_values: list[Tensor],
        part: dict[str, Tensor],
    ) -> tuple[Tensor, list[Tensor]]:
        mapping = [
            *zip(weights, weight_values, strict=True),
            *zip(constants, constant_values, strict=True),
            *zip(states, state_values, strict=True),
        ]
        with keras.StatelessScope(mapping) as scope:
            vectors = encode(part)
        return vectors, [scope.get_current_value(state) for state in states]

    encode_parts = _ENCODERS[keras.config.backend()]
    vectors, state_values = encode_parts(step, values, inputs, part_size)
    for state, value in zip(states, state_values, strict=True):
        state.assign(value)
    return vectors


def _is_float(variable: keras.Variable) -> bool:
    return keras.backend.is_float_dtype(variable.dtype)


def _encode_torch(
    step: Step, values: Values, inputs: dict[str, Tensor], part_size: int
) -> tuple[Tensor, list[Tensor]]:
    import torch
    from torch.utils.checkpoint import checkpoint

    weights, constants, state = values
    vectors = []
    # Without rows there is one part, which is empty.
    for first in range(0, max(_count_rows(inputs), 1), part_size):
        part = {name: array[first : first + part_size] for name, array in inputs.items()}
        # `checkpoint` also restores the state of PyTorch's own generators for the second pass.
        part_vectors, state = checkpoint(step, weights, constants, state, part, use_reentrant=False)
        vectors.append(part_vectors)
    return torch.cat(vectors), state


def _encode_jax(
    step: Step, values: Values, inputs: dict[str, Tensor], part_size: int
) -> tuple[Tensor, list[Tensor]]:
    import jax

    weights, constants, state = values
    num_rows = _count_rows(inputs)
    num_parts = math.ceil(num_rows / part_size)
    rows = ops.arange(num_parts * part_size) % num_rows
    parts = {
        name: ops.reshape(ops.take(array, rows, axis=0), (num_parts, part_size, *array.shape[1:]))
        for name, array in inputs.items()
    }

    def body(state: list[Tensor], part: dict[str, Tensor]) -> tuple[list[Tensor], Tensor]:
        vectors, state = step(weights, constants, state, part)
        return state, vectors

    # Within a scan the compiler cannot merge the two passes anyway.
    state, vectors = jax.lax.scan(jax.checkpoint(body, prevent_cse=False), state, parts)
    return ops.reshape(vectors, (-1, vectors.shape[-1]))[:num_rows], state


def _encode_tensorflow(
    step: Step, values: Values, inputs: dict[str, Tensor], part_size: int
) -> tuple[Tensor, list[Tensor]]:
    import tensorflow as tf

    num_rows = tf.shape(next(iter(inputs.values())))[0]
    num_parts = (num_rows + part_size - 1) // part_size

    def take_part(number: Tensor) -> dict[str, Tensor]:
        rows = (number * part_size + tf.range(part_size)) % num_rows
        return {name: tf.gather(array, rows) for name, array in inputs.items()}

    def is_part(number: Tensor, *_: Any) -> Tensor:
        return number < num_parts

    # TensorFlow searches all tensors that the function reads for variables, except its arguments.
    # So all values are arguments.
    @tf.custom_gradient
    def encode_all(*arguments: Tensor) -> Any:
        weights, constants, state = tf.nest.pack_sequence_as(values, arguments)

        def encode_part(number: Tensor, state: list[Tensor], vectors: Any) -> Any:
            part_vectors, state = step(weights, constants, state, take_part(number))
            return number + 1, state, vectors.write(number, part_vectors)

        start = 0, state, tf.TensorArray("float32", num_parts)
        _, last_state, vectors = tf.while_loop(is_part, encode_part, start)

        def differentiate(upstream: Tensor, *_: Any) -> list[Tensor | None]:
            upstream = tf.reshape(upstream, [num_parts, part_size, upstream.shape[-1]])

            def add_part(number: Tensor, state: list[Tensor], sums: list[Tensor]) -> Any:
                with tf.GradientTape() as tape:
                    tape.watch(weights)
                    part_vectors, state = step(weights, constants, state, take_part(number))
                gradients = tape.gradient(
                    part_vectors, weights, upstream[number], unconnected_gradients="zero"
                )
                sums = [a + tf.convert_to_tensor(b) for a, b in zip(sums, gradients, strict=True)]
                return number + 1, state, sums

            start = 0, state, [tf.zeros_like(weight) for weight in weights]
            gradients = tf.while_loop(is_part, add_part, start)[2]
            return [*gradients, *[None] * (len(arguments) - len(weights))]

        return (vectors.concat(), *last_state), differentiate

    vectors, *state = encode_all(*tf.nest.flatten(values))
    return vectors[:num_rows], state


_ENCODERS = {"jax": _encode_jax, "tensorflow": _encode_tensorflow, "torch": _encode_torch}


def _count_rows(inputs: dict[str, Any]) -> int:
    shapes: Sequence[Any] = [array.shape for array in inputs.values()]
    return shapes[0][0]
