"""A random choice of the windows of each document, in training."""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers.configured_layer import ConfiguredLayer


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class WindowSampler(ConfiguredLayer):
    """Keeps a random sample of the windows of each document in training, and all otherwise.

    The windows of a sample keep their order. A document with no more than `num_windows` windows
    keeps all its windows.

    Args:
        num_windows: int, the maximum number of windows of a document in training.
        seed: int, or None for a random one.
    """

    def __init__(self, num_windows: int, *, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.num_windows = num_windows
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def call(self, inputs: dict[str, Tensor], training: bool | None = None) -> dict[str, Tensor]:
        """Chooses windows.

        Args:
            inputs: dict of int (B, W, L), with `padding_mask`, 0 on padding. A window without
                tokens is no window of the document. These windows come last.
            training: bool.

        Returns:
            dict of (B, min(W, `num_windows`), L) in training, otherwise `inputs`.
        """
        if not training:
            return inputs
        is_window = find_windows(inputs["padding_mask"])
        num_rows, num_windows = ops.shape(is_window)
        draws = keras.random.uniform((num_rows, num_windows), seed=self.seed_generator)
        order = ops.argsort(ops.where(is_window, draws, 2.0), axis=1)
        chosen = ops.sort(order[:, : self.num_windows], axis=1)
        places = chosen + num_windows * ops.arange(num_rows, dtype=chosen.dtype)[:, None]
        return {
            name: ops.take(ops.reshape(x, (-1, ops.shape(x)[2])), places, axis=0)
            for name, x in inputs.items()
        }


def find_windows(padding_mask: Tensor) -> Tensor:
    """bool (B, W), whether windows have a token, of a mask (B, W, L) that is 0 on padding."""
    return ops.any(ops.cast(padding_mask, "bool"), axis=-1)
