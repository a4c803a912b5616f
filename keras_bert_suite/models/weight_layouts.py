"""A table that says how devices share the weights of the models."""

from typing import TypeAlias

import keras

from keras_bert_suite.checkpoints.head_types.records import HEAD_LAYERS

#: The names of mesh axes along the axes of a weight. None is for an axis that is not split.
Axes: TypeAlias = tuple[str | None, ...]

#: The axis of the mesh over which weights are split. `get_layout_map` puts the caller's name here.
MODEL = "model"

#: Each device has the whole weight.
WHOLE: Axes = ()

_BLOCK = r"((generator|decoder)/)?transformer_layer_\d+(_\d+)?"

# The columns of the matrices that read hidden states are split, so a device computes some heads,
# or some inner features. Then the rows of the matrix that writes hidden states are split, and each
# block adds two sums over the devices: Shoeybi et al., 2019 (https://arxiv.org/abs/1909.08053),
# section 3. In ModernBERT one matrix holds queries, keys and values, and one holds both halves of
# the feed-forward network. There the compiler exchanges activations between devices once more.
_PROJECTIONS = r"((global_)?(query|key|value)|query_key_value)"
_READS = rf"{_BLOCK}/((self|cross)_attention/{_PROJECTIONS}|(gated_)?intermediate)"
_WRITES = rf"{_BLOCK}/((self|cross)_attention/output_projection|feedforward_output)"

_TOKENS = r"(decoder/)?embeddings/token_embedding"

#: The layers of the heads that score the vocabulary, and of the others.
_VOCABULARY_HEADS = ("masked_lm", "span_boundary")
_OTHER_HEADS = tuple(layer for layer in HEAD_LAYERS if layer not in _VOCABULARY_HEADS)

# Keras asks the map for the outputs of layers too, as "pooler/output". A rule that matched them
# would bring whole batches to each device.
_REST = r"/.+(?<!/output)"

#: (regular expression of the whole path of a weight, its axes). A path matches one row at most.
#: LoRA's matrices A (I, rank) and B (rank, units) are split as the kernel (I, units) that they
#: change.
WEIGHT_LAYOUTS: tuple[tuple[str, Axes], ...] = (
    (rf"{_READS}/(kernel|lora_kernel_b)", (None, MODEL)),
    (rf"{_READS}/bias", (MODEL,)),
    (rf"{_READS}/lora_kernel_a", WHOLE),
    (rf"{_WRITES}/(kernel|lora_kernel_a)", (MODEL, None)),
    (rf"{_WRITES}/(bias|lora_kernel_b)", WHOLE),
    (rf"{_BLOCK}/((self|cross)_attention|feedforward)_norm{_REST}", WHOLE),
    # A device has some tokens of the vocabulary. It looks them up, and scores them.
    (rf"{_TOKENS}/(embeddings|lora_embeddings_a)", (MODEL, None)),
    (rf"{_TOKENS}/lora_embeddings_b", WHOLE),
    (rf"({'|'.join(_VOCABULARY_HEADS)})/bias", (MODEL,)),
    # What is left of the models is small.
    (rf"((generator|decoder)/)?embeddings(?!/token_embedding/){_REST}", WHOLE),
    (rf"(generator/)?(pooler|final_norm|encoder_projection){_REST}", WHOLE),
    # The heads of the tasks.
    (rf"({'|'.join(_VOCABULARY_HEADS)})/[^/]+{_REST}", WHOLE),
    (rf"({'|'.join(_OTHER_HEADS)}|pooling|window_pooling){_REST}", WHOLE),
)


def make_layout_map(
    device_mesh: keras.distribution.DeviceMesh, model_axis: str
) -> keras.distribution.LayoutMap:
    """Makes the `keras.distribution.LayoutMap` of `WEIGHT_LAYOUTS`."""
    layout_map = keras.distribution.LayoutMap(device_mesh)
    for pattern, axes in WEIGHT_LAYOUTS:
        layout_map[pattern] = tuple(model_axis if axis == MODEL else axis for axis in axes)
    return layout_map
