"""XLNet and Transformer-XL, the encoder without a head."""

from typing import Any, Self

import keras

from keras_bert_suite.annotations import Activation, Dtype, Tensor
from keras_bert_suite.argument_checks import check_choice, check_flag, check_integer
from keras_bert_suite.layers import (
    DifferentSegments,
    NextMemory,
    PermutedTokens,
    RelativeSinusoids,
    VisibleMemory,
    XLNetBlock,
    XLNetEmbeddings,
)
from keras_bert_suite.layers.attention.attention_patterns import ATTENTION_PATTERNS
from keras_bert_suite.layers.dropout import Dropout
from keras_bert_suite.models.bert_backbone import BertBackbone
from keras_bert_suite.models.encoder import EncodedRows
from keras_bert_suite.models.last_block import BlockCall
from keras_bert_suite.models.pruned_encoder import UNITS

#: The attention pattern of two streams, and the inputs that it reads.
PERMUTED = "permuted"
PERMUTED_INPUTS = ("query_ranks", "key_ranks", "mask_positions")


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class XLNetBackbone(BertBackbone):
    """A functional XLNet encoder: relative positions and segments, memory, and two streams.

    Positions and segments are in the scores of the attention layers, see `XLNetAttention`, so rows
    may have any length. The last token stands for its row.

    Inputs and outputs are those of `BertBackbone`. `pooled_output` is the first layer of XLNet's
    heads for texts and choices, a tanh layer over the last token. Any number of segments is told
    apart: two tokens are in one segment or not.

    **Two streams**, with `attention_pattern="permuted"`, for pretraining. Further inputs are
    `query_ranks` and `key_ranks`, int32 (B, L), and `mask_positions`, int32 (B, P), the tokens to
    predict. A token at i sees the token at j if `query_ranks[i] > key_ranks[j]`. In the content
    stream, which makes `sequence_output`, it also sees itself. A further output `query_output`
    (B, P, H) is the query stream at `mask_positions`, which does not know the token itself.
    `backbone.for_texts()` is a copy of one stream, for tasks on texts, with the same weights.

    **Memory**, with `memory_length`. A further input `memory`, float32 (B, num_layers, M, H), has
    the states of the tokens before each row, and a further output `memory` the states for the
    row that continues it. M may be 0, for no memory. The authors start from zeros. All tokens see
    the whole memory, which counts as segment 0. So rows that go into a memory have no padding.
    Tasks on texts take `backbone.for_texts()` here, too, as with `reversed_rows`.

    Transformer-XL is `XLNetBackbone(..., attention_pattern="left_to_right", num_segments=0,
    share_biases=True, activation="relu", memory_length=...)`.

    Args:
        vocabulary_size, num_layers, num_heads, hidden_dim, intermediate_dim: as for
            `BertBackbone`. `hidden_dim` must be even.
        activation: as for `BertBackbone`. The original code has "gelu_tanh", checkpoints of
            Hugging Face "gelu_erf".
        head_dim: int, width of a head. Defaults to `hidden_dim // num_heads`.
        share_biases: bool, whether all blocks share the biases of `RelativeBiases`; the contrary
            of `untie_r` of the original code.
        clamp_length: int, the distance from which on tokens are equally far; None for none.
        memory_length: int, how many states the next memory has; None for a model without memory.
        reuse_length: int, how many tokens of a row, from its first on, go into the memory; None for
            all. In XLNet's pretraining the next row begins at the token after them.
        same_length: bool, whether a token from left to right sees M tokens before itself and no
            more. It needs a memory.
        reversed_rows: bool, whether there is a further input `is_reversed`, int32 (B, 1), 1 for
            rows whose tokens are in reverse order. The original code takes the second half of each
            batch for such rows (`bi_data`), which a batch that several devices share does not keep.
        max_sequence_length: int, the maximum sequence length; None for rows of any length.
        num_segments: int, the largest segment + 1; 0 for a model that knows no segments.
        attention_pattern: as for `BertBackbone`, or "permuted".
        **kwargs: other arguments of `BertBackbone`.

    Raises:
        ValueError: as for `BertBackbone`; if `hidden_dim` is odd, a bool is none, or `reuse_length`
            or `same_length` come without what they need.

    Source: Yang et al., 2019 (https://arxiv.org/abs/1906.08237), Dai et al., 2019
    (https://arxiv.org/abs/1901.02860), and zihangdai/xlnet.
    """

    #: The released sizes. With the vocabulary of 32,000 they have 116.7 and 360.3 million
    #: parameters, without the pooler.
    sizes = {size: BertBackbone.sizes[size] for size in ("base", "large")}
    summary_place = "last"
    sizes_by_layer = (UNITS,)  # A head also has columns and vectors for distances.

    takes_norm_condition = False

    def __init__(
        self,
        *sizes: int,
        activation: Activation = "gelu_tanh",
        head_dim: int | None = None,
        share_biases: bool = False,
        clamp_length: int | None = None,
        memory_length: int | None = None,
        reuse_length: int | None = None,
        same_length: bool = False,
        reversed_rows: bool = False,
        max_sequence_length: int | None = None,
        num_segments: int = 3,
        attention_pattern: str = "bidirectional",
        dropout: float = 0.1,
        dtype: Dtype | None = None,
        **kwargs: Any,
    ) -> None:
        named = {"head_dim": head_dim, "clamp_length": clamp_length}
        named |= {"memory_length": memory_length, "reuse_length": reuse_length}
        for name, value in named.items():
            if value is not None:
                check_integer(name, value, at_least=1)
        check_choice("attention_pattern", attention_pattern, (*ATTENTION_PATTERNS, PERMUTED))
        flags = {"share_biases": share_biases, "same_length": same_length}
        for name, value in {**flags, "reversed_rows": reversed_rows}.items():
            check_flag(name, value)
        self.head_dim = head_dim
        self.share_biases = bool(share_biases)
        self.clamp_length = clamp_length
        self.memory_length = memory_length
        self.reuse_length = reuse_length
        self.same_length = bool(same_length)
        self.reversed_rows = bool(reversed_rows)
        self._check_memory(attention_pattern)
        # These are layers of the model that the constructor of `BertBackbone` makes.
        self.relative_sinusoids = RelativeSinusoids(
            dropout, clamp_length, dtype=dtype, name="relative_sinusoids"
        )
        self.final_dropout = Dropout(dropout, dtype=dtype, name="final_dropout")
        # The head for masked tokens is the product with the token embedding alone.
        self.token_transform = keras.layers.Identity(dtype=dtype, name="token_transform")
        super().__init__(
            *sizes,
            activation=activation,
            max_sequence_length=max_sequence_length,
            num_segments=num_segments,
            attention_pattern=attention_pattern,
            dropout=dropout,
            dtype=dtype,
            **kwargs,
        )

    def _check_memory(self, attention_pattern: str) -> None:
        if self.memory_length is None and (self.reuse_length is not None or self.same_length):
            raise ValueError(
                f"reuse_length={self.reuse_length} and same_length={self.same_length} are about a "
                "memory. Pass `memory_length`, too, or for a model without memory reuse_length="
                "None and same_length=False."
            )
        if self.same_length and attention_pattern != "left_to_right":
            raise ValueError(
                "same_length=True counts the tokens before a token, so attention_pattern must be "
                f"'left_to_right', got {attention_pattern!r}. Pass it, or same_length=False."
            )

    def make_inputs(self) -> dict[str, Any]:
        """Makes the symbolic inputs of the model, by name."""
        inputs = super().make_inputs()
        names = PERMUTED_INPUTS if self.attention_pattern == PERMUTED else ()
        for name in names:
            inputs[name] = keras.Input(shape=(None,), dtype="int32", name=name)
        if self.reversed_rows:
            inputs["is_reversed"] = keras.Input(shape=(1,), dtype="int32", name="is_reversed")
        if self.memory_length is not None:
            shape = (self.num_layers, None, self.hidden_dim)
            inputs["memory"] = keras.Input(shape=shape, dtype="float32", name="memory")
        return inputs

    def for_texts(self) -> Self:
        """A copy whose inputs a packer makes: of one stream, without memory and reversed rows."""
        config: dict[str, Any] = {**self.get_config(), "reversed_rows": False}
        config |= {"memory_length": None, "reuse_length": None, "same_length": False}
        if self.attention_pattern == PERMUTED:
            config["attention_pattern"] = "bidirectional"
        copy = type(self).from_config(config)
        copy.set_weights(self.get_weights())
        return copy

    def encode_rows(
        self, inputs: dict[str, Tensor], positions: Tensor | None = None
    ) -> EncodedRows:
        if self.attention_pattern != PERMUTED or positions is None:
            return super().encode_rows(inputs, positions)
        encoded = self({**inputs, "mask_positions": positions})
        memory = encoded.get("memory")
        return EncodedRows(encoded["query_output"], self._pool(encoded, inputs), memory)

    def encode_tokens_at(self, inputs: dict[str, Tensor], positions: Tensor) -> Tensor:
        if self.attention_pattern != PERMUTED:
            return super().encode_tokens_at(inputs, positions)
        return self.encode_rows(inputs, positions).states

    def make_embeddings(self, **arguments: Any) -> keras.layers.Layer:
        """Makes the layer of embeddings from the arguments of `BertEmbeddings`."""
        if self.hidden_dim % 2:  # Half of a sinusoid is sines.
            raise ValueError(f"hidden_dim must be even, got {self.hidden_dim}.")
        trains_queries = self.attention_pattern == PERMUTED
        return XLNetEmbeddings(trains_queries=trains_queries, **{**arguments, "num_segments": 0})

    def make_block(self, index: int, **arguments: Any) -> keras.layers.Layer:
        """Makes the transformer layer `index` from the arguments of `TransformerBlock`."""
        block = XLNetBlock(head_dim=self.head_dim, has_segments=self.num_segments > 0, **arguments)
        if self.share_biases:
            if index == 0:
                self._shared_biases = block.self_attention.make_biases(self.hidden_dim)
            block.self_attention.biases = self._shared_biases
        return block

    def show_tokens(
        self, inputs: dict[str, Tensor], attention_pattern: str, dtype: Dtype | None
    ) -> dict[str, Any]:
        """What the blocks read beside the states.

        Args: as for `BertBackbone.show_tokens`.

        Returns:
            dict of arguments of `encode`.
        """
        memory = inputs.get("memory")
        shown = {"memory": memory, "is_reversed": inputs.get("is_reversed")}
        differ = DifferentSegments(dtype=dtype, name="different_segments")
        extend = VisibleMemory(self.same_length, dtype=dtype, name="visible_memory")

        def show(mask: Tensor, positions: Tensor | None = None) -> dict[str, Tensor]:
            stream = {"attention_mask": mask if memory is None else extend(mask, memory)}
            if self.num_segments:
                stream["differs"] = differ(inputs["segment_ids"], memory, positions)
            if positions is not None:
                stream["positions"] = positions
            return stream

        if attention_pattern != PERMUTED:
            masks = super().show_tokens(inputs, attention_pattern, dtype)
            return {**shown, **show(masks["attention_mask"])}
        permute = PermutedTokens(dtype=dtype, name="permuted_tokens")
        ranks = (inputs["padding_mask"], inputs["query_ranks"], inputs["key_ranks"])
        positions = inputs["mask_positions"]
        queries = show(permute(*ranks, positions), positions)
        return {**shown, **show(permute(*ranks)), "queries": queries}

    def compare_tokens(self, x: Tensor, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """What the attention of one stream knows of pairs of tokens, without dropout.

        Args:
            x: float (B, L, H), any states.
            inputs: dict of the model's inputs.

        Returns:
            dict of arguments of `XLNetAttention.compute_probabilities`.

        Raises:
            ValueError: if the model has a memory or two streams.
        """
        if self.memory_length is not None or self.attention_pattern == PERMUTED:
            raise ValueError(
                "Attention is shown of rows without a memory, in one stream; got memory_length="
                f"{self.memory_length} and attention_pattern={self.attention_pattern!r}. Build the "
                "backbone without them; its weights are the same."
            )
        pairs = {"sinusoids": self.relative_sinusoids(x, None, inputs.get("is_reversed"))}
        if self.num_segments:
            pairs["differs"] = DifferentSegments()(inputs["segment_ids"])
        return pairs

    def encode(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        is_reversed: Tensor | None = None,
        queries: dict[str, Tensor] | None = None,
        **content: Tensor,
    ) -> list[Tensor]:
        """The hidden states of all layers of the content stream.

        Args:
            x: float (B, L, H), the embeddings.
            memory, is_reversed: the inputs of the model, or None.
            queries: dict of arguments of `XLNetBlock.call` for the query stream; None for a model
                of one stream.
            **content: arguments of `XLNetBlock.call` for the content stream.

        Returns:
            list of num_layers + 1 float (B, L, H), the embeddings first.
        """
        sinusoids = self.relative_sinusoids(x, memory, is_reversed)
        states, arguments = [x], dict(content)
        if queries is not None:
            query = self.embeddings(queries["positions"], is_query=True)
        for i, block in enumerate(self.list_calls()):
            shared = {"sinusoids": sinusoids}
            if memory is not None:
                shared["memory"] = memory[:, i]
            if queries is not None:
                query = block(query, source=states[-1], **queries, **shared)
            arguments = {**content, **shared}
            states.append(block(states[-1], **arguments))
        self.last_call = BlockCall(states[-2], arguments, states[-1])
        outputs = {}
        if queries is not None:
            outputs["query_output"] = self.final_dropout(query)
        if memory is not None:
            assert self.memory_length is not None
            keep = NextMemory(
                self.memory_length,
                self.reuse_length,
                dtype=self.embeddings.dtype_policy,
                name="next_memory",
            )
            outputs["memory"] = keep(memory, *states[:-1])
        self.further_outputs = outputs
        return [*states[:-1], self.final_dropout(states[-1])]
