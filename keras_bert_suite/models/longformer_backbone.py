"""Longformer, the encoder without a head."""

import numbers
from collections.abc import Sequence
from typing import Any, Self

import keras
import numpy as np
from keras import ops

from keras_bert_suite.annotations import Dtype, Tensor
from keras_bert_suite.argument_checks import check_integer, with_article
from keras_bert_suite.layers import BertEmbeddings, GlobalTokens, LongformerBlock, SelfAttention
from keras_bert_suite.models.bert_backbone import BertBackbone
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.models.pruned_encoder import UNITS
from keras_bert_suite.models.roberta_backbone import RobertaBackbone
from keras_bert_suite.models.weight_copies import copy_weight, list_by_path

#: The arguments that a Longformer has from the encoder that it continues.
_INHERITED = (
    *("vocabulary_size", "num_layers", "num_heads", "hidden_dim", "intermediate_dim"),
    *("activation", "dropout", "attention_dropout", "num_segments", "embedding_dim"),
    *("layer_norm_epsilon", "initializer_range", "frame_dim", "part_embeddings", "dtype"),
    *("intermediate_by_layer", "embedding_rank", "norm_condition"),
)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class LongformerBackbone(RobertaBackbone):
    """A functional Longformer encoder: RoBERTa's encoder, whose memory is linear in the length.

    A token attends to the tokens within a window around it, and to the global tokens of its row.
    Global tokens attend to the whole row, see `LongformerAttention`. `global_tokens` names a rule
    for them, which holds in tasks and exports too. `from_preset` of a task sets the rule that
    transformers has for its head: "first_text", the question, for a `QuestionAnswerer`;
    "later_texts", the ending, for a `MultipleChoice`; "none" for tasks on tokens and on masked
    tokens, and for a `TextEmbedder`; and "first_token" for others. (LongformerModel itself has none
    by default.)
    To change the rule, set `backbone.global_tokens` before `compile`.

    Inputs, a dictionary: `token_ids` and `padding_mask`, each int32 (B, L), and `segment_ids` with
    `takes_segments`. It may have `global_attention_mask` too, int32 (B, L), 1 on global tokens and
    0 on others. It replaces the rule, also in the inputs of a task. With packed rows it has
    the shape of the batch, as the other inputs. It has the outputs of `RobertaBackbone`.

    Rows need not be padded to a multiple of the window.

    Args:
        vocabulary_size, num_layers, num_heads, hidden_dim, intermediate_dim: as for
            `BertBackbone`.
        attention_window: int, or a list of an int for each layer: the width of the window, an even
            number. A token attends to half as many tokens to each side.
        global_tokens: str, which tokens of a row are global:
            "first_token": the first token;
            "first_text": the tokens before the first separator, such as a question;
            "later_texts": the tokens after the first text;
            "none". Then the global projections are not trained.
        max_global_tokens: int, the maximum number of global tokens of a row. Of "first_text" and
            "later_texts" the first ones are global. A `global_attention_mask` with more is an
            error.
        separator_id: int, the token that ends a text of a row, for "first_text" and "later_texts".
        takes_segments: bool, whether `segment_ids` are an input. Without, every token is in segment
            0, as in RoBERTa.
        max_sequence_length: as for `RobertaBackbone`.
        **kwargs: other arguments of `RobertaBackbone`.

    Raises:
        ValueError: as `RobertaBackbone`; or if a window is no even number, `global_tokens` is
            unknown, or the rule needs a `separator_id` that is not in [0, vocabulary_size).

    Source: Beltagy et al., 2020 (https://arxiv.org/abs/2004.05150), and `modeling_longformer.py` of
    transformers.
    """

    #: The released sizes. With the vocabulary of 50,265 they have 148.7 and 434.6 million
    #: parameters.
    sizes = {size: BertBackbone.sizes[size] for size in ("base", "large")}
    sizes_by_layer = (UNITS,)  # A head also has columns for global tokens.

    def __init__(
        self,
        *sizes: int,
        attention_window: int | Sequence[int] = 512,
        global_tokens: str = "first_token",
        max_global_tokens: int = 128,
        separator_id: int = 2,
        takes_segments: bool = False,
        max_sequence_length: int = 4096,
        **kwargs: Any,
    ) -> None:
        check_integer("max_global_tokens", max_global_tokens, at_least=1)
        self._given_window = attention_window
        self.takes_segments = takes_segments
        if takes_segments:
            self.input_names = ("token_ids", "segment_ids", "padding_mask")
        self.global_token_marker = GlobalTokens(
            global_tokens,
            separator_id=separator_id,
            max_tokens=max_global_tokens,
            dtype=kwargs.get("dtype"),
            name="global_tokens",
        )
        super().__init__(*sizes, max_sequence_length=max_sequence_length, **kwargs)
        check_integer("separator_id", separator_id)
        self._check_separator(global_tokens)
        self._train_projections(global_tokens != "none")

    @property
    def global_tokens(self) -> str:
        """str, the rule for the global tokens of a row."""
        return self.global_token_marker.pattern

    @global_tokens.setter
    def global_tokens(self, value: str) -> None:
        had_none = self.global_tokens == "none"
        self._check_separator(value)
        self.global_token_marker.pattern = value
        if had_none != (value == "none"):
            self._train_projections(had_none)

    def _check_separator(self, global_tokens: str) -> None:
        """Checks that a rule that looks for separators can find one."""
        if global_tokens in ("first_text", "later_texts") and self.frame_dim is not None:
            raise ValueError(
                f"global_tokens={global_tokens!r} looks for separators, and frames have none. Use "
                "'first_token' or 'none', or pass `global_attention_mask`."
            )
        if global_tokens in ("first_text", "later_texts") and (
            self.separator_id >= self.vocabulary_size
        ):
            raise ValueError(
                f"global_tokens={global_tokens!r} needs a separator_id below vocabulary_size="
                f"{self.vocabulary_size}, got {self.separator_id}. Pass the `end_token_id` of the "
                "tokenizer."
            )

    def _train_projections(self, trainable: bool) -> None:
        """Thaws or freezes the global projections, which have no gradient with "none"."""
        for block in self.transformer_layers:
            attention = block.self_attention
            for layer in (attention.global_query, attention.global_key, attention.global_value):
                layer.trainable = trainable

    @property
    def max_global_tokens(self) -> int:
        """int, the maximum number of global tokens of a row."""
        return self.global_token_marker.max_tokens

    @property
    def separator_id(self) -> int:
        """int, the token that ends a text of a row."""
        return self.global_token_marker.separator_id

    def make_block(self, index: int, **arguments: Any) -> keras.layers.Layer:
        """Makes the transformer layer `index` from the arguments of `TransformerBlock`."""
        if index == 0:
            self.attention_window = _check_windows(self._given_window, self.num_layers)
        return LongformerBlock(reach=self.attention_window[index] // 2, **arguments)

    def show_tokens(
        self, inputs: dict[str, Tensor], attention_pattern: str, dtype: Dtype | None
    ) -> dict[str, Tensor]:
        """See `BertBackbone.show_tokens`."""
        if attention_pattern != "bidirectional":
            raise ValueError(
                "The windows of a Longformer look to both sides, so attention_pattern must be "
                f"'bidirectional', got {attention_pattern!r}. Use a BertBackbone."
            )
        # Without separators to look for, the ids of the tokens do not matter.
        mask = inputs["padding_mask"]
        rows = self.global_token_marker(inputs.get("token_ids", mask), mask)
        return {"attention_mask": rows}

    @classmethod
    def from_encoder(
        cls,
        encoder: BertBackbone,
        separator_id: int,
        max_sequence_length: int = 4096,
        **kwargs: Any,
    ) -> Self:
        """Makes a Longformer that continues a BERT or a RoBERTa.

        Its position embedding repeats the encoder's, again and again. Its global projections are
        copies of the projections of the encoder. All other weights are the encoder's. So a row
        within the window has the outputs of the encoder. Train the Longformer on masked tokens of
        long texts for some thousand steps before you fine-tune it. The head of a `Pretrainer`
        continues too: `new.masked_lm.set_weights(old.masked_lm.get_weights())`.

        ```python
        roberta = RobertaBackbone.from_preset("path/to/roberta")
        longformer = LongformerBackbone.from_encoder(roberta, separator_id=tokenizer.end_token_id)
        ```

        Args:
            encoder: `BertBackbone` or `RobertaBackbone`. With the segments of a BERT the Longformer
                `takes_segments`.
            separator_id: int, the id of [SEP] or </s> in the tokenizer of the encoder.
            max_sequence_length: int, the maximum sequence length.
            **kwargs: other arguments of the constructor, which override the encoder's.

        Raises:
            ValueError: if the encoder has other layers than a BERT or RoBERTa.

        Source: `scripts/convert_model_to_long.ipynb` of allenai/longformer, and section 5 of the
        paper.
        """
        _check_encoder(encoder)
        config = encoder.get_config()
        longformer = cls.from_config(
            {
                **{name: config[name] for name in _INHERITED},
                "separator_id": separator_id,
                "takes_segments": "segment_ids" in encoder.input,
                "max_sequence_length": max_sequence_length,
                **kwargs,
            }
        )
        weights = list_by_path(encoder)
        for weight in longformer.weights:
            if weight.path == "embeddings/position_embedding/embeddings":
                weight.assign(
                    _repeat_positions(
                        ops.convert_to_numpy(ops.cast(weights[weight.path], "float32")),
                        encoder.position_offset,
                        max_sequence_length,
                    )
                )
            else:
                copy_weight(weight, weights[weight.path.replace("/global_", "/")])
        return longformer


def _check_windows(windows: int | Sequence[int], num_layers: int) -> tuple[int, ...]:
    """The window of each layer."""
    is_one = isinstance(windows, (str, numbers.Number))
    each: tuple[Any, ...] = (windows,) * num_layers if is_one else tuple(windows)  # type: ignore[arg-type]
    are_whole = all(isinstance(window, numbers.Integral) for window in each)
    if len(each) != num_layers or not are_whole or any(w < 2 or w % 2 for w in each):
        raise ValueError(
            f"attention_window must be an even number of at least 2, or {num_layers} of them, one "
            f"for each layer, got {windows!r}."
        )
    return tuple(map(int, each))


def _check_encoder(encoder: BertBackbone) -> None:
    known = isinstance(encoder, BertBackbone) and type(encoder.embeddings) is BertEmbeddings
    pattern = Encoder.of(encoder).attention_pattern
    if known:
        blocks = encoder.transformer_layers
        known = all(type(block.self_attention) is SelfAttention for block in blocks)
    if not known or pattern != "bidirectional":
        raise ValueError(
            "A Longformer continues a BertBackbone or a RobertaBackbone, whose layers it has, with "
            f"attention_pattern='bidirectional', got {with_article(encoder)} with {pattern!r}. "
            "For another pattern pass keras_bert_suite.change_pattern(encoder, 'bidirectional')."
        )
    if encoder.heads_by_layer is not None:
        raise ValueError(
            "The layers of a Longformer have as many heads each, got an encoder with "
            f"heads_by_layer={encoder.heads_by_layer}. Pass `encoder.to_full_size()`."
        )


def _repeat_positions(table: np.ndarray, offset: int, length: int) -> np.ndarray:
    """Repeats the rows of a table of positions, (offset + N, H), to `length` positions.

    The first `offset` rows, before the first token's, are 0 if the table lacks them.
    """
    wanted = LongformerBackbone.position_offset
    before = np.zeros((wanted, table.shape[1]), table.dtype)
    before[wanted - offset :] = table[:offset]
    rows = table[offset:]
    return np.concatenate([before, rows[np.arange(length) % len(rows)]])
