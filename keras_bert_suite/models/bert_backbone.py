"""BERT, the encoder without a head."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

import keras

from keras_bert_suite.annotations import Activation, Config, Dtype, Tensor
from keras_bert_suite.argument_checks import (
    check_below_one,
    check_further_arguments,
    check_integer,
    check_not_negative,
    check_sizes,
    with_article,
)
from keras_bert_suite.layers import (
    BertEmbeddings,
    LshBlock,
    NormCondition,
    TokenHashing,
    TokenPositions,
    TransformerBlock,
    UnpackSequences,
    VisibleTokens,
)
from keras_bert_suite.layers.attention.attention_patterns import ARRAYS_READ, check_segments
from keras_bert_suite.layers.attention.read_tokens import ReadFirst
from keras_bert_suite.layers.norm_condition import read_condition
from keras_bert_suite.layers.poolings.pooling import take_summary
from keras_bert_suite.models.activations import get_activation
from keras_bert_suite.models.decoder import Decoder
from keras_bert_suite.models.frame_inputs import (
    CONDITION,
    FRAMES,
    check_tokens,
    make_inputs,
    name_frame_inputs,
)
from keras_bert_suite.models.last_block import BlockCall, LastBlockReader
from keras_bert_suite.models.left_to_right_decoder import LeftToRightDecoder
from keras_bert_suite.models.pruned_encoder import (
    HEADS,
    UNITS,
    check_layers_differ,
    list_sizes,
    read_sizes,
)
from keras_bert_suite.models.text_encoder import TextEncoder
from keras_bert_suite.models.unilm_decoder import UnilmDecoder

#: Google's released sizes: (num_layers, hidden_dim, num_heads). The feed-forward
#: network is four times as wide as the hidden states in all of them.
BERT_SIZES = {
    "tiny": (2, 128, 2),
    "mini": (4, 256, 4),
    "small": (4, 512, 8),
    "medium": (8, 512, 8),
    "base": (12, 768, 12),
    "large": (24, 1024, 16),
}

#: The patterns that attention by hashing takes.
_HASHED_PATTERNS = ("bidirectional", "left_to_right")


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class BertBackbone(LastBlockReader, TextEncoder):
    """A functional BERT encoder, with an argument for everything in which BERT checkpoints differ.

    Inputs, a dictionary: `token_ids`, `segment_ids` and `padding_mask`, each int32
    (B, L); the mask is 1 on tokens and 0 on padding.

    Outputs, a dictionary: `sequence_output` (B, L, H); `pooled_output` (B, H), a
    tanh layer over the first position; and with `output_hidden_states` also
    `hidden_states`, a list of num_layers + 1 tensors (B, L, H), the embeddings first.

    Args:
        vocabulary_size: int V; None with `frame_dim`.
        num_layers: int, transformer blocks.
        num_heads: int, attention heads per block; must divide `hidden_dim`.
        hidden_dim: int H.
        intermediate_dim: int, inner width of the feed-forward networks.
        activation: "gelu_tanh" (Google's), "gelu_erf" (Hugging Face's default), any
            name of a Hugging Face `hidden_act` listed in `ACTIVATIONS`, or a callable.
        dropout: float, dropout rate of embeddings and sublayer outputs.
        attention_dropout: float, dropout rate of the attention probabilities.
            Defaults to `dropout`.
        max_sequence_length: int, the maximum sequence length. None, for rows of any length, in
            models without a table of positions: RoFormer, NEZHA and ModernBERT.
        num_segments: int, rows of the segment embedding; 0 for no such table.
        embedding_dim: int, width of the embedding tables. Defaults to `hidden_dim`;
            any other width is projected to it.
        layer_norm_epsilon: float.
        initializer_range: float, standard deviation of the truncated normal.
        output_hidden_states: bool, whether to output `hidden_states`.
        attention_pattern: str, which tokens a token attends to: "bidirectional" (all of them),
            "left_to_right" (itself and the tokens before it), "right_to_left", "seq2seq" (a
            token of segment 0 to segment 0; a token of segment 1 to segment 0, to itself and to
            the tokens of segment 1 before it), "unilm" (each row as its segments say, see
            `LanguageModelMixture`; needs `num_segments=6`), or "ranked": a further input `ranks`,
            int32 (B, L), has a rank for each token, and a token attends to the tokens of its rank
            and of lower ranks. So a batch may bring an order, such as a permutation.
        hashing: `keras_bert_suite.layers.TokenHashing`, for attention among tokens with similar
            vectors alone, in memory linear in the length, see `LshAttention`. Each layer hashes
            with another seed. None: attention among all tokens. It needs the pattern
            "bidirectional" or "left_to_right", and takes no packed rows. There is no format of
            checkpoints for it but that of Keras.
        remat: bool, whether a training step computes each block a second time for its gradient.
            Then only the inputs of the blocks stay in memory, and a step takes up to a third
            more time. `backbone.remat = True` switches a loaded model before `compile`.
        frame_dim: int D, for an encoder of frames instead of tokens: vectors of audio, of parts of
            an image, or of another model. The input `frames`, float32 (B, L, D), takes the place of
            `token_ids`. Frames of another width than `embedding_dim` are projected to it. Positions
            and segments are added as to token embeddings. None for token ids.
        part_embeddings: a layer that adds what it knows of tokens to their embeddings, such as
            `PartEmbeddings` of characters or radicals; see `BertEmbeddings`. None for no such
            layer. With `from_preset` of a checkpoint without the layer, it begins anew.
        heads_by_layer: list of int, the heads of each layer, where some were removed. Their width
            stays `hidden_dim / num_heads`. None: `num_heads` in each layer. `keep_heads` sets it.
        intermediate_by_layer: list of int, at most `intermediate_dim`, the inner width of the
            feed-forward network of each layer. None: `intermediate_dim` in each layer.
            `keep_units` sets it.
        embedding_rank: int, the rank of the table of tokens, which then is the product of a table
            of this width and of a matrix; see `FactorizedEmbedding`. None for a whole table.
            `factorize_embeddings` sets it.
        norm_condition: `NormCondition`, for norms whose scale and offset depend on a further input
            `condition`, float32 (B, C), such as the tone in which a text is to be written. The
            model begins with the outputs that it has without. None for no such input.
        dtype: string or `keras.DTypePolicy`. Norms and softmax are computed in
            float32 under every policy.

    Example:
    ```python
    backbone = BertBackbone.from_size("tiny", vocabulary_size=30522)
    outputs = backbone(
        {
            "token_ids": np.ones((1, 12), "int32"),
            "segment_ids": np.zeros((1, 12), "int32"),
            "padding_mask": np.ones((1, 12), "int32"),
        }
    )
    outputs["sequence_output"].shape  # (1, 12, 128)
    ```

    Raises:
        ValueError: if a size is no positive integer, a list by layer has another length or larger
            sizes, `num_heads` does not divide `hidden_dim`, a
            dropout rate is not in [0, 1), `attention_pattern` or `activation` is unknown, the
            pattern needs more segments, the class or the pattern takes no `hashing`, the class or
            its norms take no `norm_condition`, or there are both a `vocabulary_size` and a
            `frame_dim`, or neither.

    Source: Devlin et al., 2018 (https://arxiv.org/abs/1810.04805) and
    google-research/bert.
    """

    #: The named sizes, each with the arguments of the constructor.
    sizes: ClassVar[dict[str, Config]] = {
        size: {
            "num_layers": num_layers,
            "num_heads": num_heads,
            "hidden_dim": hidden_dim,
            "intermediate_dim": 4 * hidden_dim,
        }
        for size, (num_layers, hidden_dim, num_heads) in BERT_SIZES.items()
    }
    summary_place = "first"
    #: The arguments with sizes by layer that the layers take.
    sizes_by_layer: tuple[str, ...] = (HEADS, UNITS)
    #: The names of the model's inputs.
    input_names: tuple[str, ...] = ("token_ids", "segment_ids", "padding_mask")
    #: Whether the norms may depend on a condition.
    takes_norm_condition = True
    #: How many rows the position embedding has before the row of the first token.
    position_offset = 0
    #: Whether the attention layers take the positions of the tokens.
    blocks_take_positions = False
    #: Symbolic outputs by name that `encode` makes beside the states.
    further_outputs: Mapping[str, Any] = MappingProxyType({})
    #: The activation of the layer that makes the pooled output.
    pooler_activation: str | Callable[[Tensor], Tensor] = "tanh"

    def __init__(
        self,
        vocabulary_size: int | None,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        intermediate_dim: int,
        *,
        activation: Activation = "gelu_tanh",
        dropout: float = 0.1,
        attention_dropout: float | None = None,
        max_sequence_length: int | None = 512,
        num_segments: int = 2,
        embedding_dim: int | None = None,
        layer_norm_epsilon: float = 1e-12,
        initializer_range: float = 0.02,
        output_hidden_states: bool = False,
        attention_pattern: str = "bidirectional",
        hashing: TokenHashing | None = None,
        remat: bool = False,
        frame_dim: int | None = None,
        part_embeddings: keras.layers.Layer | None = None,
        heads_by_layer: Sequence[int] | None = None,
        intermediate_by_layer: Sequence[int] | None = None,
        embedding_rank: int | None = None,
        norm_condition: NormCondition | None = None,
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
            embedding_dim=hidden_dim if embedding_dim is None else embedding_dim,
        )
        check_integer("num_segments", num_segments)
        check_segments(attention_pattern, num_segments if "segment_ids" in self.input_names else 0)
        attention_dropout = dropout if attention_dropout is None else attention_dropout
        check_below_one(dropout=dropout, attention_dropout=attention_dropout)
        check_not_negative("initializer_range", initializer_range)
        activation = get_activation(activation)

        # === Config ===
        self.vocabulary_size = vocabulary_size
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.hidden_dim = hidden_dim
        self.intermediate_dim = intermediate_dim
        self.activation = activation
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.max_sequence_length = max_sequence_length
        self.num_segments = num_segments
        self.embedding_dim = embedding_dim or hidden_dim
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_range = initializer_range
        self.output_hidden_states = output_hidden_states
        self.attention_pattern = attention_pattern
        self.frame_dim = frame_dim
        self.part_embeddings = part_embeddings
        self.heads_by_layer = read_sizes(HEADS, heads_by_layer, num_layers, num_heads)
        self.intermediate_by_layer = read_sizes(
            UNITS, intermediate_by_layer, num_layers, intermediate_dim
        )
        self.embedding_rank = embedding_rank
        self.norm_condition = self._read_condition(norm_condition)
        if frame_dim is not None:
            self.input_names = name_frame_inputs(self.input_names)

        self._make_layers(hashing, remat, dtype)
        inputs = self.make_inputs()
        outputs = self._connect_layers(inputs, dtype)
        super().__init__(inputs=inputs, outputs=outputs, dtype=dtype, **kwargs)

    def _make_layers(
        self, hashing: TokenHashing | Config | None, remat: bool, dtype: Dtype | None
    ) -> None:
        """Makes the layers that own weights."""
        self.embeddings = self.make_embeddings(
            vocabulary_size=self.vocabulary_size,
            hidden_dim=self.hidden_dim,
            max_sequence_length=self.max_sequence_length,
            num_segments=self.num_segments,
            embedding_dim=self.embedding_dim,
            dropout=self.dropout,
            layer_norm_epsilon=self.layer_norm_epsilon,
            initializer_range=self.initializer_range,
            position_offset=self.position_offset,
            frame_dim=self.frame_dim,
            part_embeddings=self.part_embeddings,
            embedding_rank=self.embedding_rank,
            norm_condition=self.norm_condition,
            dtype=dtype,
            name="embeddings",
        )
        self.token_embedding = self.embeddings.token_embedding
        # The embeddings have refused a `max_sequence_length` of None, which fits no hash.
        self.hashing = self._read_hashing(hashing)
        check_layers_differ(self)
        self.transformer_layers = [
            self.make_block(
                i,
                **list_sizes(self, i),
                activation=self.activation,
                dropout=self.dropout,
                attention_dropout=self.attention_dropout,
                layer_norm_epsilon=self.layer_norm_epsilon,
                initializer_range=self.initializer_range,
                remat=remat,
                norm_condition=self.norm_condition,
                dtype=dtype,
                name=block_name,
            )
            for i, block_name in enumerate(self.name_blocks(self.num_layers))
        ]
        self.pooler = keras.layers.Dense(
            self.hidden_dim,
            activation=self.pooler_activation,
            kernel_initializer=keras.initializers.TruncatedNormal(stddev=self.initializer_range),
            dtype=dtype,
            name="pooler",
        )

    def _connect_layers(self, inputs: dict[str, Any], dtype: Dtype | None) -> dict[str, Any]:
        """dict of the outputs of the functional model, from dict of its symbolic inputs."""
        padding_mask = inputs["padding_mask"]
        attention = self.show_tokens(inputs, self.attention_pattern, dtype)
        if self.norm_condition is not None:
            attention["condition"] = inputs[CONDITION]
        hidden_states = self.encode(self.embed(inputs), **attention)
        call = self.last_call
        self.ends_with_block = call is not None and hidden_states[-1] is call.outputs
        unpack = UnpackSequences(dtype=dtype, name="unpack_sequences")
        x = unpack(hidden_states[-1], padding_mask)
        self.hidden_states = [*hidden_states[:-1], x]
        summary = self._take_summary(hidden_states[-1], x, padding_mask, dtype)
        outputs = {"sequence_output": x, "pooled_output": self.pooler(summary)}
        if self.output_hidden_states:
            inner = [unpack(state, padding_mask) for state in hidden_states[:-1]]
            outputs["hidden_states"] = [*inner, x]
        return {**outputs, **self.further_outputs}

    def _take_summary(self, hidden: Any, x: Any, padding_mask: Any, dtype: Any) -> Any:
        """The states (B, H) that stand for rows, of states (B, L, H) before and after unpacking."""
        if self.summary_place == "first":
            return ReadFirst(dtype=dtype, name="read_first")(hidden, x, padding_mask)
        return take_summary(x, padding_mask, self.summary_place)

    def make_inputs(self) -> dict[str, Any]:
        """Makes the symbolic inputs of the model, by name."""
        names = (*self.input_names, *(("ranks",) if self.attention_pattern == "ranked" else ()))
        inputs = make_inputs(names, self.frame_dim)
        if self.norm_condition is not None:
            inputs[CONDITION] = keras.Input((self.norm_condition.dim,), name=CONDITION)
        return inputs

    def make_embeddings(self, **arguments: Any) -> keras.layers.Layer:
        """Makes the layer of embeddings from the arguments of `BertEmbeddings`."""
        return BertEmbeddings(**arguments)

    def make_block(self, index: int, **arguments: Any) -> keras.layers.Layer:
        """Makes the transformer layer `index` from the arguments of `TransformerBlock`."""
        if self.hashing is None:
            return TransformerBlock(**arguments)
        return LshBlock(
            hashing=dataclasses.replace(self.hashing, seed=self.hashing.seed + index),
            is_causal=self.attention_pattern == "left_to_right",
            **arguments,
        )

    def _read_hashing(self, hashing: TokenHashing | Config | None) -> TokenHashing | None:
        """The settings of the hash, for the longest row. In a saved configuration they are JSON."""
        if hashing is None:
            return None
        if type(self).make_block is not BertBackbone.make_block:
            raise ValueError(
                f"{with_article(self, 'A')} has attention layers of another kind, so it takes no "
                "`hashing`. Use a BertBackbone."
            )
        if self.attention_pattern not in _HASHED_PATTERNS:
            raise ValueError(
                f"Attention by hashing takes the patterns {', '.join(_HASHED_PATTERNS)}, got "
                f"attention_pattern={self.attention_pattern!r}. Drop `hashing`, or the pattern."
            )
        if isinstance(hashing, dict):
            hashing = keras.saving.deserialize_keras_object(hashing)
        if not isinstance(hashing, TokenHashing):
            raise ValueError(f"hashing must be a TokenHashing or None, got {hashing!r}.")
        return hashing.fit_length(self.max_sequence_length)

    def _read_condition(self, norm_condition: Any) -> NormCondition | None:
        norm_condition = read_condition(norm_condition)
        if norm_condition is not None and not self.takes_norm_condition:
            raise ValueError(
                f"The norms of {with_article(self)} take no norm_condition. Use a BertBackbone, or "
                "another encoder with its blocks, such as a RoFormerBackbone."
            )
        return norm_condition

    def name_blocks(self, num_layers: int) -> list[str]:
        """The names of the transformer layers that own weights."""
        return [f"transformer_layer_{i}" for i in range(num_layers)]

    def list_calls(self) -> list[keras.layers.Layer]:
        """The transformer layers in the order in which they are called."""
        return self.transformer_layers

    def make_decoder(self, head: keras.layers.Layer) -> Decoder:
        """The decoder of a `Seq2Seq` whose head is `head`, by the mask of UniLM."""
        return UnilmDecoder(self, head)

    def make_causal_decoder(self, head: keras.layers.Layer) -> Decoder:
        """The decoder of a `CausalLM` whose head is `head`, which continues a row."""
        return LeftToRightDecoder(self, head)

    @property
    def packs_sequences(self) -> bool:
        """Whether the layers tell the rows of a packed row apart."""
        return self.hashing is None and super().packs_sequences

    def takes_buckets(self) -> bool:
        """Whether the attention of this model takes buckets of packed rows."""
        attentions = (block.self_attention for block in self.transformer_layers)
        sees_all = self.attention_pattern == "bidirectional"
        return sees_all and all(attention.takes_buckets for attention in attentions)

    def embed(self, inputs: dict[str, Tensor]) -> Tensor:
        """The embeddings (B, L, H) of the model's inputs."""
        positions = self.count_positions(inputs["padding_mask"])
        tokens = inputs["token_ids" if self.frame_dim is None else FRAMES]
        given = {} if self.norm_condition is None else {"condition": inputs[CONDITION]}
        return self.embeddings(tokens, inputs.get("segment_ids"), positions, **given)

    def count_positions(self, padding_mask: Tensor) -> Tensor | None:
        """int (B, L), the row of the position embedding for each token. None: their order."""
        return None

    def show_tokens(
        self, inputs: dict[str, Tensor], attention_pattern: str, dtype: Dtype | None
    ) -> dict[str, Tensor]:
        """The mask of the tokens that a token may attend to, for the attention layers.

        Args:
            inputs: dict of int32 (B, L), the model's inputs.
            attention_pattern: str, one of `ATTENTION_PATTERNS`.
            dtype: as for the constructor.

        Returns:
            dict of arguments of `TransformerBlock.call` for its attention layer.
        """
        padding_mask = inputs["padding_mask"]
        if self.hashing is not None:
            # Its layers know the pattern, because a mask of pairs would be quadratic.
            attention_pattern = "bidirectional"
        visible = VisibleTokens(attention_pattern, dtype=dtype, name="visible_tokens")
        ranked_by = inputs.get(ARRAYS_READ.get(attention_pattern, ""))
        return {"attention_mask": visible(padding_mask, ranked_by)}

    def encode(self, x: Tensor, **attention: Tensor) -> list[Tensor]:
        """The hidden states of all layers.

        Args:
            x: float (B, L, H), the embeddings.
            **attention: further arguments of `TransformerBlock.call`.

        Returns:
            list of num_layers + 1 float (B, L, H), the embeddings first.
        """
        if self.blocks_take_positions:
            positions = TokenPositions(dtype=self.embeddings.dtype_policy, name="token_positions")
            attention["positions"] = positions(x)
        hidden_states = [x]
        for block in self.list_calls():
            hidden_states.append(block(hidden_states[-1], **attention))
        self.last_call = BlockCall(hidden_states[-2], attention, hidden_states[-1])
        return hidden_states
