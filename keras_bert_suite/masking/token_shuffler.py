"""Shuffles some tokens of masked rows. The model then predicts their order."""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.argument_checks import check_integer, check_share
from keras_bert_suite.masking.masking_layer import MaskerWrapper
from keras_bert_suite.masking.token_masker import TokenMasker
from keras_bert_suite.masking.token_replacement import draw_uniforms, list_predictions


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class TokenShuffler(MaskerWrapper):
    """Masks packed rows by a `TokenMasker`, and shuffles some of the other tokens.

    Some groups of neighbouring tokens are put into a random order. The model predicts the original
    token at each of their positions, as for masked tokens. So it also learns the order of words
    (the word structural objective of StructBERT). All orders of a group are equally likely: one of
    the six orders of three tokens leaves them as they are.

    Groups have no masked token, no special token and no padding, and do not overlap. A row of n
    tokens, special tokens included, has `rate * n / group_length` groups on average: this number,
    rounded down or up at random. It has fewer groups if no more fit.

    The result for a row depends only on the masker's seed, the epoch and the id of the row.

    ```python
    masker = TokenShuffler(TokenMasker(tokenizer, max_predictions=20))
    batches = PretrainingBatches(corpus, masker, sequence_length=128, batch_size=256)
    ```

    Args:
        masker: `TokenMasker`.
        rate: float from 0 to 1, the share of tokens in shuffled groups. The paper shuffles 5% of
            the trigrams, and does not say whether trigrams overlap. Here they do not.
        group_length: int, at least 2, how many tokens a group has: K in the paper.

    Source: Wang et al., 2019 (https://arxiv.org/abs/1908.04577), section 2.3.1.
    """

    def __init__(
        self, masker: TokenMasker, rate: float = 0.05, group_length: int = 3, **kwargs: Any
    ) -> None:
        super().__init__(masker, **kwargs)
        check_share("rate", rate)
        check_integer("group_length", group_length, at_least=2)
        self.rate = rate
        self.group_length = group_length

    def call(
        self, inputs: Mapping[str, Tensor], row_ids: Tensor, epoch: Tensor = 0
    ) -> dict[str, Tensor]:
        """Masks and shuffles a batch.

        Args, Raises: as for `TokenMasker.call`.

        Returns:
            dict with the arrays of `TokenMasker.call`. P is the masker's P and `group_length` times
            the maximum number of groups in a row.
        """
        masked = self.masker(inputs, row_ids, epoch)
        token_ids, padding_mask = masked["token_ids"], masked["padding_mask"]
        length, width = token_ids.shape[1], masked["mask_positions"].shape[1]
        epoch = int(epoch) if self.dynamic else 0
        draws = draw_uniforms(self.masker.seed, epoch, row_ids, length, stream=1)
        keys, orders, roundings, _ = np.moveaxis(draws, -1, 0)
        predicted = np.zeros(token_ids.shape, bool)
        rows, slots = np.nonzero(masked["mask_weights"])
        columns = masked["mask_positions"][rows, slots]
        predicted[rows, columns] = True
        originals = token_ids.copy()
        originals[rows, columns] = masked["mask_ids"][rows, slots]

        free = (padding_mask != 0) & ~predicted
        free &= ~np.isin(token_ids, self.tokenizer.special_token_ids)
        most = int(np.ceil(round(length * self.rate / self.group_length, 9)))
        counts = np.count_nonzero(padding_mask, axis=1) * self.rate / self.group_length
        counts = np.minimum(np.floor(counts + roundings[:, 0]).astype("int64"), most)
        group_rows, firsts = choose_windows(free, keys, counts, self.group_length)
        cells = group_rows[:, None], firsts[:, None] + np.arange(self.group_length)
        shuffled = token_ids.copy()
        order = np.argsort(orders[cells], axis=1)
        shuffled[cells] = np.take_along_axis(token_ids[cells], order, axis=1)

        predicted[cells] = True
        rows, columns = np.nonzero(predicted)
        shape = len(token_ids), width + self.group_length * most
        predictions = list_predictions(rows, columns, originals[rows, columns], shape)
        return {**masked, "token_ids": shuffled, **predictions}


def choose_windows(
    free: np.ndarray, keys: np.ndarray, counts: np.ndarray, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """Chooses windows of `width` neighbouring tokens that do not overlap, in random order.

    The possible windows are visited in the order of the random keys, float (B, L), of their first
    tokens. `free`, bool (B, L), are the tokens that a window may hold, and `counts`, int (B,), the
    most windows of each row. The result is int64 (N,) twice: the row of each window, and the column
    of its first token.
    """
    free = free.copy()
    rows, firsts = [np.empty(0, "int64")], [np.empty(0, "int64")]
    length = free.shape[1]
    if length < width:
        return rows[0], firsts[0]
    for turn in range(counts.max(initial=0)):
        windows = np.lib.stride_tricks.sliding_window_view(free, width, axis=1)
        fits = np.asarray(windows.all(axis=-1))
        row = np.flatnonzero(fits.any(axis=1) & (counts > turn))
        if not len(row):
            break
        first = np.where(fits[row], keys[row, : length - width + 1], np.inf).argmin(axis=1)
        free[row[:, None], first[:, None] + np.arange(width)] = False
        rows.append(row)
        firsts.append(first)
    return np.concatenate(rows), np.concatenate(firsts)
