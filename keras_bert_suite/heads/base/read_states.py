"""Encodes rows for heads that read a few tokens: the last layer computes these tokens alone.

It still computes the keys and values of all tokens, so the states are the same. Queries, output
product, norms and feed-forward network are left out for all other tokens.
"""

from typing import Any

import keras
import keras_hub

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.heads.base.hidden_states import list_layer_calls, pool_summary
from keras_bert_suite.heads.base.token_states import encode_tokens
from keras_bert_suite.layers import MaskedLMHead
from keras_bert_suite.layers.attention.read_tokens import ReadPackedTokens, ReadTokens
from keras_bert_suite.models import BertBackbone


def encode_summary(backbone: keras_hub.models.Backbone, inputs: dict[str, Tensor]) -> Tensor:
    """Symbolic float (B, H), the vectors of rows that a backbone makes of symbolic inputs (B, L).

    If its last layer cannot compute the summary token alone, the outputs of the whole backbone are
    pooled by `pool_summary`.
    """
    if not reads_few_tokens(backbone) or backbone.summary_place != "first":
        return pool_summary(backbone, backbone(inputs), inputs)
    return backbone.pooler(encode_read_tokens(backbone, inputs)[:, 0])


def score_masked_tokens(
    head: MaskedLMHead,
    backbone: keras_hub.models.Backbone,
    inputs: dict[str, Tensor],
    mask_positions: Tensor,
) -> Tensor:
    """Symbolic float (B, P, V), the logits of a `MaskedLMHead` for tokens at int32 (B, P)."""
    if reads_few_tokens(backbone):
        return head(encode_read_tokens(backbone, inputs, mask_positions))
    return head(encode_tokens(backbone, inputs), mask_positions)


def encode_tokens_at(
    backbone: keras_hub.models.Backbone, inputs: dict[str, Tensor], positions: Tensor
) -> Tensor:
    """Symbolic float (B, Q, H), the states of the tokens at int32 (B, Q) of each row."""
    if reads_few_tokens(backbone):
        return encode_read_tokens(backbone, inputs, positions)
    encoded = encode_tokens(backbone, inputs)
    return keras.ops.take_along_axis(encoded, positions[:, :, None], axis=1)


def encode_summary_and_tokens(
    backbone: keras_hub.models.Backbone,
    inputs: dict[str, Tensor],
    mask_positions: Tensor,
    all_tokens: bool = False,
) -> tuple[Tensor, Tensor | None, Tensor]:
    """What the heads of a pretraining read.

    `all_tokens` says whether another head reads the states of all tokens. The result is (symbolic
    float (B, L, H), the states of all tokens; `mask_positions`; float (B, H), the vectors of rows).
    If the last layer computes masked tokens alone, the states are (B, P, H), and the positions
    None.
    """
    if all_tokens or not reads_few_tokens(backbone):
        encoded = backbone(inputs)
        states = encoded["sequence_output"] if isinstance(encoded, dict) else encoded
        return states, mask_positions, pool_summary(backbone, encoded, inputs)
    positions = keras.ops.pad(mask_positions, [[0, 0], [1, 0]])
    states = encode_read_tokens(backbone, inputs, positions)
    return states[:, 1:], None, backbone.pooler(states[:, 0])


def encode_read_tokens(
    backbone: BertBackbone, inputs: dict[str, Tensor], positions: Tensor | None = None
) -> Tensor:
    """Symbolic float (B, Q, H), the sequence output of the tokens at int32 (B, Q) of each row.

    The backbone `reads_few_tokens`. Without positions it is the first token of each row.
    """
    own = {}
    if positions is not None:
        own["read_positions"] = keras.Input((None,), dtype="int32", name="read_positions")
    model = keras.Model(
        {**backbone.input, **own},
        _call_last_block(backbone, own.get("read_positions")),
        name="read_states",
    )
    # A weight that no output depends on, such as the pooler's, is a weight of the task, too.
    model.backbone = backbone
    return model(inputs if positions is None else {**inputs, "read_positions": positions})


def reads_few_tokens(backbone: keras_hub.models.Backbone) -> bool:
    """Whether the last layer of a backbone can compute some tokens alone.

    So it is if its tokens see each other, and if nothing but a pooler follows it.
    """
    if not isinstance(backbone, BertBackbone) or backbone.attention_pattern != "bidirectional":
        return False
    block, node = list_layer_calls(backbone)[-1]
    unpack = backbone.get_layer("unpack_sequences")._inbound_nodes[0]
    pool = backbone.pooler._inbound_nodes[0]
    return (
        block.self_attention.takes_source
        and unpack.input_tensors[0] is node.outputs[0]
        and unpack.outputs[0] is backbone.output["sequence_output"]
        and pool.outputs[0] is backbone.output["pooled_output"]
    )


def _call_last_block(backbone: BertBackbone, positions: Tensor | None) -> Tensor:
    """The last block of a backbone, called once more, for the tokens that are read alone."""
    block, node = list_layer_calls(backbone)[-1]
    (hidden,) = node.arguments.args
    arguments: dict[str, Any] = dict(node.arguments.kwargs)
    dtype = block.dtype_policy
    read = ReadTokens(dtype=dtype, name="read_tokens")
    if "positions" in arguments:
        arguments["source_positions"] = arguments["positions"]
        arguments["positions"] = ReadTokens(dtype=dtype, name="query_positions")(
            arguments["positions"], positions
        )
    states = block(read(hidden, positions), source=hidden, **arguments)
    unpack = ReadPackedTokens(dtype=dtype, name="read_packed_tokens")
    return unpack(states, backbone.input["padding_mask"], positions)
