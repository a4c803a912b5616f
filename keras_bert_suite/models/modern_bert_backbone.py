"""ModernBERT, the encoder without a head."""

from collections.abc import Sequence
from typing import Any, ClassVar

import keras

from keras_bert_suite.annotations import Activation, Config, Dtype
from keras_bert_suite.argument_checks import (
    check_below_one,
    check_choice,
    check_further_arguments,
    check_integer,
    check_not_negative,
    check_sizes,
)
from keras_bert_suite.layers import (
    FirstTokenPooling,
    MeanPooling,
    ModernBertBlock,
    PredictionHead,
    SequenceNumbers,
    TokenEmbeddings,
    TokenPositions,
    UnpackSequences,
    VisibleTokens,
)
from keras_bert_suite.models.activations import get_activation
from keras_bert_suite.models.frame_inputs import (
    FRAMES,
    check_tokens,
    make_inputs,
    name_frame_inputs,
)
from keras_bert_suite.models.text_encoder import TextEncoder

#: The names of the two kinds of layers.
GLOBAL, LOCAL = "full_attention", "sliding_attention"

_POOLINGS: dict[str, type[keras.layers.Layer]] = {"cls": FirstTokenPooling, "mean": MeanPooling}


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ModernBertBackbone(TextEncoder):
    """A functional ModernBERT encoder.

    Norms come before the sublayers, positions are rotary, feed-forward networks are gated, and most
    layers attend within a window. Sequence packing replaces the "unpadding" of its original code.

    Inputs, a dictionary: `token_ids` and `padding_mask`, each int32 (B, L); the mask is 1 on
    tokens and 0 on padding.

    Outputs, a dictionary: `sequence_output` (B, L, H); `pooled_output` (B, H), the prediction head
    over the pooled sequence output; and with `output_hidden_states` also `hidden_states`, a list of
    num_layers + 1 tensors (B, L, H), the embeddings first.

    The prediction head is a layer of this model, `pooler`, because all heads of ModernBERT contain
    it: heads for texts after the pooling, heads for tokens and for masked tokens on each token. So
    fine-tuning starts with its pretrained weights.

    Args:
        vocabulary_size: int V; None with `frame_dim`.
        num_layers: int, transformer blocks.
        num_heads: int, attention heads per block; must divide `hidden_dim` into even widths.
        hidden_dim: int H.
        intermediate_dim: int, inner width of the feed-forward networks.
        activation: as for `BertBackbone`, of the feed-forward networks.
        head_activation: as for `BertBackbone`, of the prediction head.
        pooling: "cls" for the first token, or "mean" over the tokens. In a local layer the first
            token does not see all others.
        layer_types: list of "full_attention" or "sliding_attention", one for each layer. None is
            every third layer "full_attention", from the first on.
        local_attention: int, the width of the window of "sliding_attention". A token attends to
            `local_attention // 2` tokens to each side.
        global_rotary_base, local_rotary_base: float, see `rotate_positions`.
        max_sequence_length: int, the maximum sequence length; None for rows of any length.
        embedding_dropout: float, dropout rate of the embeddings.
        attention_dropout: float, dropout rate of the attention probabilities and of the output of
            the attention.
        mlp_dropout: float, dropout rate within the feed-forward networks.
        attention_bias, mlp_bias, norm_bias, head_bias: bool, whether these layers have biases.
        layer_norm_epsilon: float.
        initializer_range: float, standard deviation of the truncated normal. It is divided by the
            square root of 2 `num_layers` for layers that write hidden states, and for the
            prediction head. Values beyond two standard deviations are drawn again.
        output_hidden_states: bool, whether to output `hidden_states`.
        remat: bool, as for `BertBackbone`.
        frame_dim, part_embeddings: as for `BertBackbone`. `embedding_dim` is `hidden_dim`.
        dtype: as for `BertBackbone`. Norms, softmax and rotations are computed in float32.

    Example:
    ```python
    backbone = ModernBertBackbone.from_size("base", vocabulary_size=50368)
    ```

    Raises:
        ValueError: if a size is no positive integer, `num_heads` does not divide `hidden_dim` into
            even widths, a dropout rate is not in [0, 1), `local_attention` is less than 2, or a
            name is unknown.

    Source: Warner et al., 2024 (https://arxiv.org/abs/2412.13663), and `modeling_modernbert.py` of
    transformers.
    """

    #: The released sizes. With the vocabulary of 50,368 they have 149 and 395 million parameters,
    #: with the prediction head 149.6 and 395.8.
    sizes: ClassVar[dict[str, Config]] = {
        "base": {
            "num_layers": 22,
            "num_heads": 12,
            "hidden_dim": 768,
            "intermediate_dim": 1152,
        },
        "large": {
            "num_layers": 28,
            "num_heads": 16,
            "hidden_dim": 1024,
            "intermediate_dim": 2624,
        },
    }
    summary_place = "first"
    #: The names of the model's inputs.
    input_names: tuple[str, ...] = ("token_ids", "padding_mask")
    #: There is no position embedding.
    position_offset = 0

    def __init__(
        self,
        vocabulary_size: int | None,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        intermediate_dim: int,
        activation: Activation = "gelu_erf",
        head_activation: Activation = "gelu_erf",
        pooling: str = "cls",
        layer_types: Sequence[str] | None = None,
        local_attention: int = 128,
        global_rotary_base: float = 160000.0,
        local_rotary_base: float = 10000.0,
        max_sequence_length: int | None = 8192,
        embedding_dropout: float = 0.0,
        attention_dropout: float = 0.0,
        mlp_dropout: float = 0.0,
        attention_bias: bool = False,
        mlp_bias: bool = False,
        norm_bias: bool = False,
        head_bias: bool = False,
        layer_norm_epsilon: float = 1e-5,
        initializer_range: float = 0.02,
        output_hidden_states: bool = False,
        remat: bool = False,
        frame_dim: int | None = None,
        part_embeddings: keras.layers.Layer | None = None,
        dtype: Dtype | None = None,
        **kwargs: Any,
    ) -> None:
        check_further_arguments(type(self), kwargs, ("name", "trainable"))
        check_sizes(
            num_heads,
            hidden_dim,
            **check_tokens(vocabulary_size=vocabulary_size, frame_dim=frame_dim),
            num_layers=num_layers,
            intermediate_dim=intermediate_dim,
            max_sequence_length=max_sequence_length,
        )
        check_integer("local_attention", local_attention, at_least=2)
        check_choice("pooling", pooling, tuple(_POOLINGS))
        check_below_one(
            embedding_dropout=embedding_dropout,
            attention_dropout=attention_dropout,
            mlp_dropout=mlp_dropout,
        )
        check_not_negative("initializer_range", initializer_range)

        # === Config ===
        self.vocabulary_size = vocabulary_size
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.hidden_dim = hidden_dim
        self.intermediate_dim = intermediate_dim
        self.activation = get_activation(activation)
        self.head_activation = get_activation(head_activation, "head_activation")
        self.pooling = pooling
        self.layer_types = _check_layer_types(layer_types, num_layers)
        self.local_attention = local_attention
        self.global_rotary_base = global_rotary_base
        self.local_rotary_base = local_rotary_base
        self.max_sequence_length = max_sequence_length
        self.embedding_dropout = embedding_dropout
        self.attention_dropout = attention_dropout
        self.mlp_dropout = mlp_dropout
        self.attention_bias = attention_bias
        self.mlp_bias = mlp_bias
        self.norm_bias = norm_bias
        self.head_bias = head_bias
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_range = initializer_range
        self.output_hidden_states = output_hidden_states
        self.frame_dim = frame_dim
        self.part_embeddings = part_embeddings
        if frame_dim is not None:
            self.input_names = name_frame_inputs(self.input_names)

        self._make_layers(remat, dtype)
        inputs = make_inputs(self.input_names, frame_dim)
        outputs = self._connect_layers(inputs, dtype)
        super().__init__(inputs=inputs, outputs=outputs, dtype=dtype, **kwargs)

    def _make_layers(self, remat: bool, dtype: Dtype | None) -> None:
        """Makes the layers that own weights."""
        output_range = self.initializer_range / (2.0 * self.num_layers) ** 0.5
        norms: Config = {
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "norm_bias": self.norm_bias,
        }
        self.embeddings = TokenEmbeddings(
            self.vocabulary_size,
            self.hidden_dim,
            max_sequence_length=self.max_sequence_length,
            dropout=self.embedding_dropout,
            initializer_range=self.initializer_range,
            frame_dim=self.frame_dim,
            part_embeddings=self.part_embeddings,
            **norms,
            dtype=dtype,
            name="embeddings",
        )
        self.token_embedding = self.embeddings.token_embedding
        reaches = {GLOBAL: None, LOCAL: self.local_attention // 2}
        rotary_bases = {GLOBAL: self.global_rotary_base, LOCAL: self.local_rotary_base}
        self.transformer_layers = [
            ModernBertBlock(
                self.num_heads,
                self.intermediate_dim,
                activation=self.activation,
                reach=reaches[layer_type],
                rotary_base=rotary_bases[layer_type],
                # The embeddings are normalised.
                has_attention_norm=i > 0,
                attention_dropout=self.attention_dropout,
                mlp_dropout=self.mlp_dropout,
                attention_bias=self.attention_bias,
                mlp_bias=self.mlp_bias,
                initializer_range=self.initializer_range,
                output_range=output_range,
                remat=remat,
                **norms,
                dtype=dtype,
                name=f"transformer_layer_{i}",
            )
            for i, layer_type in enumerate(self.layer_types)
        ]
        self.final_norm = keras.layers.LayerNormalization(
            epsilon=self.layer_norm_epsilon, center=self.norm_bias, dtype=dtype, name="final_norm"
        )
        self.pooler = PredictionHead(
            self.head_activation,
            use_bias=self.head_bias,
            initializer_range=output_range,
            **norms,
            dtype=dtype,
            name="pooler",
        )

    def _connect_layers(self, inputs: dict[str, Any], dtype: Dtype | None) -> dict[str, Any]:
        """dict of the outputs of the functional model, from dict of its symbolic inputs."""
        padding_mask = inputs["padding_mask"]
        visible = VisibleTokens(dtype=dtype, name="visible_tokens")(padding_mask)
        numbers = SequenceNumbers(dtype=dtype, name="sequence_numbers")(padding_mask)
        masks = {GLOBAL: visible, LOCAL: numbers}
        x = self.embeddings(inputs["token_ids" if self.frame_dim is None else FRAMES])
        positions = TokenPositions(dtype=dtype, name="token_positions")(x)
        hidden_states = [x]
        for block, layer_type in zip(self.transformer_layers, self.layer_types, strict=True):
            x = block(x, masks[layer_type], positions)
            hidden_states.append(x)
        hidden_states[-1] = self.final_norm(x)
        unpack = UnpackSequences(dtype=dtype, name="unpack_sequences")
        x = unpack(hidden_states[-1], padding_mask)
        self.hidden_states = [*hidden_states[:-1], x]
        pooled = _POOLINGS[self.pooling](dtype=dtype, name="pooling")(x, padding_mask)
        outputs = {"sequence_output": x, "pooled_output": self.pooler(pooled)}
        if self.output_hidden_states:
            inner = [unpack(state, padding_mask) for state in hidden_states[:-1]]
            outputs["hidden_states"] = [*inner, x]
        return outputs

    @property
    def token_transform(self) -> PredictionHead:
        """The layer between the sequence output and a head on tokens."""
        return self.pooler


def _check_layer_types(layer_types: Sequence[str] | None, num_layers: int) -> list[str]:
    if layer_types is None:
        return [LOCAL if i % 3 else GLOBAL for i in range(num_layers)]
    if len(layer_types) != num_layers or not set(layer_types) <= {GLOBAL, LOCAL}:
        raise ValueError(
            f"layer_types must be {num_layers} names, each {GLOBAL!r} or {LOCAL!r}, got "
            f"{list(layer_types)}."
        )
    return list(layer_types)
