"""Where sequences stand in the rows of a batch, for kernels of GPUs that need no mask.

`cudnn_attention.py` has the kernels of JAX, and `nested_attention.py` has those of PyTorch. Without
a GPU there are none, and everything here says so.
"""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers.attention import cudnn_attention, nested_attention
from keras_bert_suite.layers.attention.grouped_layout import GroupedLayout
from keras_bert_suite.layers.attention.sequence_layout import LAYOUT_ARGUMENT, Layout
from keras_bert_suite.layers.configured_layer import ConfiguredLayer


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class SequenceOffsets(ConfiguredLayer):
    """Where the sequences of packed rows stand, for kernels that take this instead of a mask."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._register_call_context_args(LAYOUT_ARGUMENT)

    def call(self, padding_mask: Tensor, sequence_layout: Layout | None = None) -> Tensor:
        """int (B, L) -> the `sequence_offsets` of `SelfAttention`, empty if no kernel takes them.

        Args:
            padding_mask: int (B, L), of which the shape is read.
            sequence_layout: `SequenceLayout`, `GroupedLayout` or None.
        """
        offsets = None
        if sequence_layout is None or isinstance(sequence_layout, GroupedLayout):
            pass
        elif sequence_layout.lengths is not None:
            offsets = sequence_layout.lengths
        # Offsets count the places of the packed rows before, which other devices may have.
        elif keras.distribution.distribution() is None:
            offsets = _locate_sequences(sequence_layout.rows, padding_mask.shape[0])
        return ops.zeros((0,), dtype="int32") if offsets is None else offsets

    def compute_output_spec(self, padding_mask: Tensor) -> keras.KerasTensor:
        return keras.KerasTensor((None,), dtype="int32")


def _locate_sequences(rows: Tensor, num_rows: int) -> Tensor | None:
    """Finds where the sequences of packed rows begin; None if no kernel of this device takes it.

    Args:
        rows: int (R, W), the row of the batch at each place, and -1 where there is no token.
        num_rows: int B, rows of the batch.
    """
    backend = keras.config.backend()
    if backend == "torch" and rows.is_cuda:
        import torch

        # PyTorch's compiler would leave its graph to count the sequences.
        return None if torch.compiler.is_compiling() else nested_attention.locate_sequences(rows)
    if backend == "jax" and cudnn_attention.is_on_gpu():
        return cudnn_attention.locate_sequences(rows, num_rows)
    return None


def takes_lengths(head_dim: int, dtype: str) -> bool:
    """Whether there is a kernel that takes the lengths of rows instead of a padding mask.

    Args:
        head_dim: int, features of a head.
        dtype: string, the compute dtype.
    """
    return keras.config.backend() == "jax" and cudnn_attention.takes_heads(head_dim, dtype)
