"""An LSTM whose output is projected, over rows of different lengths."""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Shape, Tensor
from keras_bert_suite.argument_checks import check_positive
from keras_bert_suite.layers.configured_layer import ConfiguredLayer

#: What the forget gate adds to its bias. Files hold the bias without it.
FORGET_BIAS = 1.0


class ProjectedLSTMCell(ConfiguredLayer):
    """A step of a `ProjectedLSTM`, after the product with its input.

    The gates are in the order of TensorFlow 1: input i, new values j, forget f, output o. With
    the projected output h and the memory c of the step before,

        i, j, f, o = split(x W + h U + b)
        c' = clip(sigmoid(f + 1) c + sigmoid(i) tanh(j))
        h' = clip((sigmoid(o) tanh(c')) P)

    Args:
        units: int C, the width of the memory.
        projection_dim: int P, the width of the output.
        cell_clip: float, the largest absolute value in the memory; None for no limit.
        projection_clip: float, the same of the output.
    """

    def __init__(
        self,
        units: int,
        projection_dim: int,
        cell_clip: float | None = None,
        projection_clip: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        for name, clip in (("cell_clip", cell_clip), ("projection_clip", projection_clip)):
            if clip is not None:
                check_positive(name, clip)
        self.units = units
        self.projection_dim = projection_dim
        self.cell_clip = cell_clip
        self.projection_clip = projection_clip
        # `keras.layers.RNN` reads both.
        self.state_size = [projection_dim, units]
        self.output_size = projection_dim

    def build(self, inputs_shape: Shape) -> None:
        """Makes the weights for inputs (B, I)."""
        rows, columns = inputs_shape[-1] + self.projection_dim, 4 * self.units
        self.kernel = self.add_weight(shape=(rows, columns), name="kernel")
        self.bias = self.add_weight(shape=(columns,), initializer="zeros", name="bias")
        self.projection = self.add_weight(
            shape=(self.units, self.projection_dim), name="projection"
        )

    def multiply_inputs(self, inputs: Tensor) -> Tensor:
        """`x W + b`, float (..., I) -> (..., 4 C), for all steps at once."""
        kernel = ops.convert_to_tensor(self.kernel)[: inputs.shape[-1]]
        return ops.matmul(inputs, kernel) + ops.convert_to_tensor(self.bias)

    def call(self, inputs: Tensor, states: tuple[Tensor, Tensor]) -> tuple[Tensor, list[Tensor]]:
        """A step.

        Args:
            inputs: float (B, 4 C), of `multiply_inputs`.
            states: h (B, P) and c (B, C) of the step before.

        Returns:
            (h (B, P), list of h and c).
        """
        output, memory = states
        kernel = ops.convert_to_tensor(self.kernel)[-self.projection_dim :]
        gates = inputs + ops.matmul(output, kernel)
        i, j, f, o = ops.split(gates, 4, axis=-1)
        memory = ops.sigmoid(f + FORGET_BIAS) * memory + ops.sigmoid(i) * ops.tanh(j)
        memory = _clip(memory, self.cell_clip)
        output = ops.matmul(ops.sigmoid(o) * ops.tanh(memory), self.projection)
        output = _clip(output, self.projection_clip)
        return output, [output, memory]


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ProjectedLSTM(ConfiguredLayer):
    """An LSTM with a projection of its output, and clips of its memory and of its output.

    A step on padding keeps the state. So a row that is read backwards begins with its own last
    token, wherever its padding stands.

    Args:
        units, projection_dim, cell_clip, projection_clip: as for `ProjectedLSTMCell`.
        go_backwards: bool, whether rows are read from their last token to the first.

    Source: Sak et al., 2014 (https://arxiv.org/abs/1402.1128), and the `LSTMCell` of TensorFlow 1.
    """

    def __init__(
        self,
        units: int,
        projection_dim: int,
        cell_clip: float | None = None,
        projection_clip: float | None = None,
        go_backwards: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.units = units
        self.projection_dim = projection_dim
        self.cell_clip = cell_clip
        self.projection_clip = projection_clip
        self.go_backwards = go_backwards
        self.cell = ProjectedLSTMCell(
            units, projection_dim, cell_clip, projection_clip, dtype=self.dtype_policy, name="cell"
        )
        self.steps = keras.layers.RNN(
            self.cell,
            return_sequences=True,
            return_state=True,
            go_backwards=go_backwards,
            dtype=self.dtype_policy,
            name="steps",
        )

    def build(
        self,
        inputs_shape: Shape,
        padding_mask_shape: Shape | None = None,
        state_shape: Shape | None = None,
    ) -> None:
        self.cell.build((inputs_shape[0], inputs_shape[-1]))
        self.steps.build((*inputs_shape[:2], 4 * self.units))

    def call(
        self, inputs: Tensor, padding_mask: Tensor, state: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Reads rows.

        Args:
            inputs: float (B, L, I).
            padding_mask: int or bool (B, L), 0 on padding.
            state: float (B, P + C), the output and the memory before the first step; None for 0.

        Returns:
            (float (B, L, P), the output at each token and 0 on padding; float (B, P + C), the
            state after the last step).
        """
        is_token = ops.cast(padding_mask, "bool")
        if state is None:
            width = self.projection_dim + self.units
            state = ops.zeros((ops.shape(inputs)[0], width), self.compute_dtype)
        first = [state[:, : self.projection_dim], state[:, self.projection_dim :]]
        outputs, *last = self.steps(
            self.cell.multiply_inputs(inputs), initial_state=first, mask=is_token
        )
        if self.go_backwards:
            outputs = ops.flip(outputs, axis=1)
        # `where` also drops the mask of Keras, by which it would weigh the losses of a task.
        return ops.where(is_token[:, :, None], outputs, 0.0), ops.concatenate(last, axis=-1)

    def compute_output_shape(
        self,
        inputs_shape: Shape,
        padding_mask_shape: Shape | None = None,
        state_shape: Shape | None = None,
    ) -> tuple[Shape, Shape]:
        outputs = (*inputs_shape[:2], self.projection_dim)
        return outputs, (inputs_shape[0], self.projection_dim + self.units)


def _clip(x: Tensor, limit: float | None) -> Tensor:
    return x if limit is None else ops.clip(x, -limit, limit)
