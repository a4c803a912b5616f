"""Gives the batches of a `fit` a layout in which several rows share a packed row."""

from functools import partial

import keras
import numpy as np

from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.layers import LAYOUT_ARGUMENT
from keras_bert_suite.layers.attention.attention_kernels import is_jax_on_cpu
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.preprocessing.padding_lengths import compiles_each_length
from keras_bert_suite.preprocessing.sequence_packing import (
    NUM_BUCKETS,
    lay_out_buckets,
    lay_out_sequences,
)
from keras_bert_suite.replicas import count_replicas

#: Inputs of a backbone that are about the places of a row, or about the rows before it.
ROW_INPUTS = ("query_ranks", "is_reversed", "memory", "condition")

#: The buckets of a batch under TensorFlow. Each adds operations to the graph of each layer, and so
#: time before the first step.
GRAPH_BUCKETS = 8


def check_can_pack_sequences(task):
    """Checks that a task computes the same on packed rows as on the rows of the batch."""
    if not Encoder.of(task.backbone).packs_sequences:
        raise ValueError(
            f"The layers of {with_article(task.backbone)} cannot hide the rows of a packed row "
            "from each other. Drop sequence_packing, or load the checkpoint with an encoder of "
            "this package."
        )
    names = [name for name in ROW_INPUTS if name in task.backbone.input]
    if names:
        raise ValueError(
            f"sequence_packing puts several rows of a batch into one, and "
            f"{with_article(task.backbone)} with {' and '.join(names)} reads these of each row. "
            "Leave sequence_packing out. (A row of PermutationTargets or with a memory has no "
            "padding to save.)"
        )
    check_encodes_whole_batches(task, "a batch cannot be packed as a whole", "sequence_packing")


def check_encodes_whole_batches(model, problem, option):
    """Raises a ValueError if the encoder of a model sees only some rows of a batch at once.

    The message has the `problem` and the `option` to drop.
    """
    if argument := model.splits_batches:
        raise ValueError(
            f"{argument}={getattr(model, argument)} encodes only some rows of a batch at once, so "
            f"{problem}. Drop {option} or {argument}."
        )


def check_rows(padding_mask, summary_place="first"):
    """Checks that each row begins with a token, because poolings read the first hidden state.

    If the summary token is last, it may begin with padding. The mask is int (..., L). A window of
    documents (B, W, L) may be empty.
    """
    begins = padding_mask[..., :1] != 0
    if summary_place == "last":
        begins = padding_mask.any(axis=-1, keepdims=True)
    if padding_mask.ndim > 2:
        begins |= ~padding_mask.any(axis=-1, keepdims=True)
    if not begins.all():
        raise ValueError(
            f"Row {int(np.argwhere(~begins[..., 0])[0][0])} of a batch begins with padding. With "
            "sequence_packing a row must begin with a token. Pad on the right, and leave out rows "
            "without tokens, or drop sequence_packing."
        )


def choose_layout(backbone, prompt_length=0):
    """Makes a function from a preprocessed batch to the same batch with a layout of packed rows.

    Each row takes `prompt_length` places more than it has tokens.
    """
    lay_out = _choose_kind(backbone)
    summary_place = Encoder.of(backbone).summary_place

    def add_layout(batch):
        # A `tf.data` dataset yields tensors of TensorFlow under every backend.
        batch = keras.tree.map_structure(np.asarray, batch)
        x, y, weights = keras.utils.unpack_x_y_sample_weight(batch)
        check_rows(x["padding_mask"], summary_place)
        widths = [(0, 0)] * (x["padding_mask"].ndim - 1) + [(prompt_length, 0)]
        layout = lay_out(np.pad(x["padding_mask"], widths, constant_values=1))
        return keras.utils.pack_x_y_sample_weight({**x, LAYOUT_ARGUMENT: layout}, y, weights)

    return add_layout


def _choose_kind(backbone):
    """The function that lays out packed rows for the model, the device and the backend."""
    compiled = compiles_each_length()
    if keras.distribution.distribution() is not None:
        return partial(_lay_out_shares, compiled=compiled, num_devices=count_replicas())
    if not backbone.takes_buckets() or not _trains_on_cpu():
        # Kernels of a GPU skip hidden tokens, and one large bucket keeps the GPU busy.
        return partial(lay_out_sequences, compiled=compiled)
    num_buckets = GRAPH_BUCKETS if keras.config.backend() == "tensorflow" else NUM_BUCKETS
    return partial(lay_out_buckets, num_buckets=num_buckets, compiled=compiled)


def _lay_out_shares(padding_mask, compiled, num_devices):
    """Packs the rows of each device of JAX by themselves, if the devices divide the batch.

    Otherwise each device computes the whole batch, which is one share.
    """
    num_shares = 1 if len(padding_mask) % num_devices else num_devices
    layout = lay_out_sequences(padding_mask, compiled, num_shares)
    # Keras expects the rank of the first batch from all others.
    return layout.reshape(num_shares, -1, layout.shape[-1])


def _trains_on_cpu():
    backend = keras.config.backend()
    if backend == "torch":
        return keras.ops.zeros(()).device.type == "cpu"
    return is_jax_on_cpu() if backend == "jax" else not compiles_each_length()
