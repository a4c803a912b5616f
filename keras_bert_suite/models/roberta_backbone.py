"""RoBERTa, the encoder without a head."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers import gelu_erf
from keras_bert_suite.models.bert_backbone import BertBackbone


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class RobertaBackbone(BertBackbone):
    """A functional RoBERTa encoder: BERT's encoder with other positions and without segments.

    The position embedding has two rows before the row of the first token. Padding has the second
    of them. Every token is in segment 0.

    Inputs, a dictionary: `token_ids` and `padding_mask`, each int32 (B, L); the mask is 1 on
    tokens and 0 on padding. It has the outputs of `BertBackbone`. `pooled_output` is the first
    layer of RoBERTa's classification head, or the pooler of transformers' RobertaModel.

    Args:
        vocabulary_size, num_layers, num_heads, hidden_dim, intermediate_dim: as for
            `BertBackbone`.
        activation: as for `BertBackbone`.
        max_sequence_length: int, the maximum sequence length; the `max_position_embeddings` of
            transformers less two.
        num_segments: int, rows of the segment embedding, of which the first is used.
        layer_norm_epsilon: float.
        **kwargs: other arguments of `BertBackbone`.

    Source: Liu et al., 2019 (https://arxiv.org/abs/1907.11692).
    """

    input_names: tuple[str, ...] = ("token_ids", "padding_mask")
    position_offset = 2
    #: The activation of the head for masked tokens, whatever activation the encoder has.
    masked_lm_activation = staticmethod(gelu_erf)

    def __init__(
        self,
        *sizes: int,
        activation: str | Callable = "gelu_erf",
        max_sequence_length: int = 512,
        num_segments: int = 1,
        layer_norm_epsilon: float = 1e-5,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            *sizes,
            activation=activation,
            max_sequence_length=max_sequence_length,
            num_segments=num_segments,
            layer_norm_epsilon=layer_norm_epsilon,
            **kwargs,
        )

    def count_positions(self, padding_mask: Tensor) -> Tensor:
        """int (B, L) -> int (B, L), the row of the position embedding for each token."""
        # Tokens are counted, so that it does not matter where the padding stands.
        counts = ops.cumsum(padding_mask, axis=1) * padding_mask
        return counts + (self.position_offset - 1)
