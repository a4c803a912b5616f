"""An encoder that continues a text: each token sees itself and the tokens before it."""

from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers.attention.attention_patterns import mask_by_ranks, rank_by_place
from keras_bert_suite.models.unilm_decoder import UnilmDecoder


class LeftToRightDecoder(UnilmDecoder):
    """A text and its continuation in one row of an encoder that reads from left to right.

    The text is the source: a row without its last [SEP]. All tokens are in segment 0.

    The encoder has `attention_pattern="left_to_right"`, and the attention of `SelfAttention`. It
    needs no segments, so a `RobertaBackbone` or a `DistilBertBackbone` will do, too. Another one is
    a ValueError.

    Source: Radford et al., 2018, "Improving language understanding by generative pre-training".
    """

    attention_pattern = "left_to_right"
    task = "CausalLM"

    def show_source(self, padding_mask: Tensor) -> Tensor:
        """Which tokens of a source its tokens attend to: int (B, L) -> bool (B, L, L)."""
        is_token = padding_mask[:, None, :] != 0
        return ops.logical_and(mask_by_ranks(rank_by_place(padding_mask)), is_token)

    def find_segments(self, token_ids: Tensor, num_read: Tensor) -> None:
        """None: there is one segment."""
