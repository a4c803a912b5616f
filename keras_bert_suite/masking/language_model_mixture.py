"""Mixes examples of several language models in a batch, as in UniLM."""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.masking.masking_layer import MaskerWrapper
from keras_bert_suite.masking.token_masker import TokenMasker
from keras_bert_suite.masking.token_replacement import draw_uniforms
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.models.mixture_segments import MIXTURE_SEGMENTS

#: The shares of UniLM, section 2.3 of the paper.
UNILM_SHARES = {
    "bidirectional": 1 / 3,
    "seq2seq": 1 / 3,
    "left_to_right": 1 / 6,
    "right_to_left": 1 / 6,
}

#: The stream of `draw_uniforms` for kinds of rows.
_STREAM = 2


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class LanguageModelMixture(MaskerWrapper):
    """A `TokenMasker` that also draws an attention pattern, the kind, for each row.

    All rows are masked in the same way. The kind of a row says which tokens a token may attend to.
    Kinds differ in their segment ids. So the backbone, with `attention_pattern="unilm"` and
    `num_segments=6`, knows the kind of each row from its segments.

    | kind | segments | which tokens a token attends to |
    | --- | --- | --- |
    | "bidirectional" | 0 and 1 | all |
    | "left_to_right" | 2 | itself and the tokens before it |
    | "right_to_left" | 3 | itself and the tokens after it |
    | "seq2seq" | 4 and 5 | of the source: the source; of the target: the source, and the target \
up to itself |

    The kind of a row depends only on the seed of the masker, the epoch and the id of the row.

    ```python
    mixture = LanguageModelMixture(TokenMasker(tokenizer, unit="ngram"))
    batches = PretrainingBatches(corpus, mixture, sequence_length=128, batch_size=256)
    backbone = change_pattern(BertBackbone.from_preset("path/to/checkpoint"), "unilm")
    pretrainer = Pretrainer(backbone)
    pretrainer.fit(batches)
    writer = Seq2Seq(change_pattern(pretrainer.backbone, "seq2seq"), preprocessor=packer)
    ```

    Rows must have two texts where "seq2seq" has a share. Only bidirectional rows count for the
    next-sentence loss, as in UniLM. With `mode="pairs"` half of the targets do not follow their
    sources; with `mode="sop"` source and target are neighbours, in either order.

    Args:
        masker: `TokenMasker`.
        shares: dict of kind -> share of the rows. The shares sum to 1. None is UniLM's: a third of
            the rows is bidirectional, a third is sequence to sequence, a sixth is left to right,
            and a sixth is right to left.

    Source: Dong et al., 2019, UniLM (https://arxiv.org/abs/1905.03197), section 2, and
    microsoft/unilm for the segments.
    """

    def __init__(
        self, masker: TokenMasker, shares: Mapping[str, float] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(masker, **kwargs)
        if masker.rate == 0:
            raise ValueError(
                "The language models of a mixture learn masked tokens, and TokenMasker(rate=0) "
                "masks none. Set a `rate` above 0."
            )
        shares = dict(UNILM_SHARES if shares is None else shares)
        known = shares.keys() <= MIXTURE_SEGMENTS.keys() and min(shares.values()) >= 0
        if not known or abs(sum(shares.values()) - 1) > 1e-6:
            raise ValueError(
                f"The shares of the kinds {', '.join(MIXTURE_SEGMENTS)} must be from 0 to 1 and "
                f"sum to 1, got {shares}."
            )
        self.shares = shares

    def call(
        self, inputs: Mapping[str, Tensor], row_ids: Tensor, epoch: Tensor = 0
    ) -> dict[str, Tensor]:
        """Masks a batch, and draws the kinds of its rows.

        Args:
            inputs: dict from `SegmentPacker`: `token_ids`, `segment_ids` and `padding_mask`, int
                (B, L), or (L,) for a row without a batch. The segments are 0 and 1.
            row_ids, epoch: as for `TokenMasker`.

        Returns:
            dict as from `TokenMasker`, with the segments of the kinds, int32, and with
            `pair_weights` float32 (B,), or () without a batch: 1 for the rows whose pair counts for
            the next-sentence loss.

        Raises:
            ValueError: as `TokenMasker`, or if the inputs have no segments, or a row of the kind
                "seq2seq" has one text only. Inside a TensorFlow graph the ValueError is a
                `tf.errors.InvalidArgumentError`.
        """
        if "segment_ids" not in inputs:
            raise ValueError(
                "LanguageModelMixture needs segment_ids. Pack with a tokenizer of BERT."
            )
        masked = self.masker(inputs, row_ids, epoch)
        segment_ids, is_token = inputs["segment_ids"], inputs["padding_mask"] != 0
        kinds = self.draw_kinds(row_ids, epoch)
        names = np.array(list(self.shares))[kinds]
        has_target = np.any((segment_ids == 1) & is_token, axis=-1)
        lacks_target = (names == "seq2seq") & ~has_target
        if np.any(lacks_target):
            raise ValueError(
                f"Row {row_ids[np.argmax(lacks_target)]} is to be a source and its target, and has "
                "one text only. Use mode='pairs' or 'sop', or leave 'seq2seq' out of the shares."
            )
        table = np.array([MIXTURE_SEGMENTS[name] for name in self.shares], "int32")
        # Padding has segment 0 in all rows, as the packer leaves it.
        shifted = np.where(is_token, table[kinds[:, None], segment_ids], 0)
        pair_weights = (names == "bidirectional").astype("float32")
        return {**masked, "segment_ids": shifted.astype("int32"), "pair_weights": pair_weights}

    def draw_kinds(self, row_ids: np.ndarray, epoch: int = 0) -> np.ndarray:
        """int64 (B,), the kinds of rows, as indices into `shares`.

        Args:
            row_ids: int (B,).
            epoch: int.
        """
        epoch = int(epoch) if self.dynamic else 0
        drawn = draw_uniforms(self.masker.seed, epoch, row_ids, 1, stream=_STREAM)[:, 0, 0]
        ends = np.cumsum(list(self.shares.values()))
        return np.searchsorted(ends / ends[-1], drawn, side="right")

    def check_task(self, task: keras.Model) -> None:
        """Raises a ValueError if the backbone of a task does not tell the kinds of rows apart."""
        super().check_task(task)
        backbone = task.backbone
        pattern = Encoder.of(backbone).attention_pattern
        if pattern != "unilm":
            raise ValueError(
                f"For a LanguageModelMixture {with_article(backbone)} needs attention_pattern="
                f"'unilm', got {pattern!r}. `keras_bert_suite.models.change_pattern(backbone, "
                "'unilm')` makes a copy."
            )
