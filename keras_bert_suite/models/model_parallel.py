"""Model parallelism under JAX: which weights devices share, and a check of each when it is made."""

from typing import Any, TypeAlias

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
_PROJECTIONS = r"((global_|relative_)?(query|key|value)|query_key(_value)?)"
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
    # Vectors of XLNet for each head: (heads, D), and (2, heads, D).
    (rf"{_BLOCK}/self_attention/relative_biases/\w+_bias", (MODEL, None)),
    # Of an `LshAttention`: (heads, D, rounds, K).
    (rf"{_BLOCK}/self_attention/rotations", (MODEL, None, None, None)),
    (rf"{_BLOCK}/self_attention/segment_embedding", (None, MODEL, None)),
    (rf"{_WRITES}/(kernel|lora_kernel_a)", (MODEL, None)),
    (rf"{_WRITES}/(bias|lora_kernel_b)", WHOLE),
    (rf"{_BLOCK}/\w+_norm{_REST}", WHOLE),
    # A device has some tokens of the vocabulary. It looks them up, and scores them.
    (rf"{_TOKENS}/(table/)?(embeddings|lora_embeddings_a)", (MODEL, None)),
    (rf"{_TOKENS}/((table/)?lora_embeddings_b|factor)", WHOLE),
    (rf"({'|'.join(_VOCABULARY_HEADS)})/bias", (MODEL,)),
    # The rest of the models is small.
    (rf"((generator|decoder)/)?embeddings(?!/token_embedding/){_REST}", WHOLE),
    (rf"((generator|decoder)/)?(pooler|final_norm|encoder_projection){_REST}", WHOLE),
    # An ELMo is a loop over the tokens, in which devices would wait for each other.
    (rf"(token_embedding|character_embeddings|(forward|backward)_lstm_\d+){_REST}", WHOLE),
    (rf"frame_projection{_REST}", WHOLE),
    # The heads of the tasks.
    (rf"({'|'.join(_VOCABULARY_HEADS)})/[^/]+{_REST}", WHOLE),
    (rf"({'|'.join(_OTHER_HEADS)}|exit_\d+|exit_\d+_pooler){_REST}", WHOLE),
    (rf"(pooling|window_pooling){_REST}", WHOLE),
)


class ModelParallel(keras.distribution.ModelParallel):
    """`keras.distribution.ModelParallel` in which each weight needs a rule that fits it.

    If no rule of the map matches a weight, Keras puts the whole weight on each device. So a
    misspelt rule wastes memory without a warning. If the number of devices does not divide a
    weight, JAX raises an error that does not name the weight. This class raises an error that names
    the weight in both cases.

    `auto_shard_dataset` is False, because the tasks of this package split their batches themselves.

    ```python
    mesh = keras.distribution.DeviceMesh((2, 4), ("batch", "model"))
    layout_map = BertBackbone.get_layout_map(mesh)
    keras.distribution.set_distribution(ModelParallel(layout_map=layout_map))
    ```

    Args:
        layout_map: `keras.distribution.LayoutMap`, such as `BertBackbone.get_layout_map` makes.
        batch_dim_name: str, the axis of the mesh over which batches are split. None is the first.

    Raises:
        ValueError: when a trainable variable is made that no rule matches, or that the devices of
            its rule do not divide.
    """

    def __init__(
        self, *, layout_map: keras.distribution.LayoutMap, batch_dim_name: str | None = None
    ) -> None:
        super().__init__(
            layout_map=layout_map, batch_dim_name=batch_dim_name, auto_shard_dataset=False
        )

    def get_variable_layout(self, variable: Any) -> keras.distribution.TensorLayout:
        """The layout of a new variable. Variables of metrics and optimizers need no rule."""
        layout = super().get_variable_layout(variable)
        path, shape = variable.path, tuple(variable.shape)
        if variable.trainable and self.get_tensor_layout(path) is None:
            whole = ("None",) * len(shape)
            raise ValueError(
                f"No rule of the layout map matches the weight {path!r} {shape}. To keep it whole "
                f"on each device, add layout_map[{path!r}] = ({', '.join(whole)},) before the "
                "model is built."
            )
        sizes = dict(zip(self.device_mesh.axis_names, self.device_mesh.shape, strict=True))
        for position, (axis, size) in enumerate(zip(layout.axes, shape, strict=False)):
            if axis is None or size % sizes[axis] == 0:
                continue
            raise ValueError(
                f"The axis {axis!r} of {sizes[axis]} devices does not divide the weight {path!r} "
                f"{shape}, which is split along its axis {position}. Take a number of devices that "
                f"divides {size}, or set layout_map[{path!r}] to other axes before the model is "
                "built."
            )
        return layout
