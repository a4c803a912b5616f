"""Hides spans of frames, and lists the frames that are to be predicted."""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.argument_checks import check_integer, check_share
from keras_bert_suite.masking.masking_layer import MaskingLayer, check_rows
from keras_bert_suite.masking.token_replacement import draw_uniforms, list_predictions


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class FrameMasker(MaskingLayer):
    """Hides spans of frames of packed rows, for a `FramePretrainer`.

    A row of n frames is cut into spans of C = min(span_length, n) frames, from a random frame
    before the C-th on. Of them max(1, floor(n rate / C)) random spans are predicted. All spans of a
    row are changed in one way: they become 0, or each of their frames becomes a random frame of the
    row, or they stay.

    The result is a pure function of the seed, the epoch, the number of the row and its frames. So
    it does not depend on the batch, on the padding, or on a resume.

    Args:
        rate: float over 0 and at most 1, the share of the frames of a row to predict.
        span_length: int, the frames of a span.
        zero_rate: float, the share of the rows whose spans become 0.
        random_frame_rate: float, the share of the rows whose spans become random frames. The spans
            of all other rows stay.
        seed: int, not negative.
        dynamic: bool, whether each epoch hides other spans.

    Raises:
        ValueError: if an argument is out of its range, or the two rates are over 1 together.

    Source: Liu et al., 2020, Mockingjay (https://arxiv.org/abs/1910.12638), section 2.2, and
    s3prl/s3prl, utils/mam.py. That code draws the length of the spans of each row, from 1 to a
    maximum.
    """

    tokenizer = None
    labels = {"mfm": ("mask_targets", "mask_weights")}

    def __init__(
        self,
        rate: float = 0.15,
        span_length: int = 7,
        zero_rate: float = 0.8,
        random_frame_rate: float = 0.1,
        seed: int = 0,
        dynamic: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_share("rate", rate, positive=True)
        check_integer("span_length", span_length, at_least=1)
        check_share("zero_rate", zero_rate)
        check_share("random_frame_rate", random_frame_rate)
        check_integer("seed", seed)
        if zero_rate + random_frame_rate > 1:
            raise ValueError(
                "zero_rate and random_frame_rate are shares of the rows, and at most 1 together, "
                f"got {zero_rate} and {random_frame_rate}."
            )
        self.rate = rate
        self.span_length = span_length
        self.zero_rate = zero_rate
        self.random_frame_rate = random_frame_rate
        self.seed = seed
        self.dynamic = dynamic

    def __call__(
        self, inputs: Mapping[str, Tensor], row_ids: Any = None, epoch: int = 0
    ) -> dict[str, np.ndarray]:
        # Keras' own `__call__` would convert the arrays to tensors of the backend.
        if not {"frames", "padding_mask"} <= inputs.keys():
            raise ValueError(
                f"FrameMasker needs the keys frames and padding_mask, got {sorted(inputs)}. Pass "
                "the dict that FramePacker returns."
            )
        arrays = {name: np.asarray(array) for name, array in inputs.items()}
        return self.call(arrays, None if row_ids is None else np.asarray(row_ids), epoch)

    def call(
        self, inputs: dict[str, np.ndarray], row_ids: Any, epoch: int = 0
    ) -> dict[str, np.ndarray]:
        """Hides spans of a batch.

        Args:
            inputs: dict of NumPy arrays: `frames` float32 (B, L, D), `padding_mask` int32 (B, L),
                and for codes `codes` int32 (B, L), the code of each frame.
            row_ids: int (B,), the numbers of the rows in the data.
            epoch: int, not negative.

        Returns:
            dict of the inputs without `codes`, with the changed `frames`; `mask_positions` int32
            (B, P); `mask_targets`, the codes int32 (B, P), or the frames float32 (B, P, D) as they
            were; and `mask_weights` float32 (B, P), 0 in unused slots.

        Raises:
            ValueError: if a row has no frames, or `row_ids` are no numbers of the rows.
        """
        frames, mask = inputs["frames"], inputs["padding_mask"] != 0
        check_rows(mask, row_ids, epoch)
        lengths, begins = mask.sum(axis=1), mask.argmax(axis=1)
        if not lengths.all():
            raise ValueError(f"Row {int(lengths.argmin())} of the batch has no frames to hide.")
        draws = draw_uniforms(self.seed, epoch if self.dynamic else 0, row_ids, mask.shape[1])
        hidden = self._choose(draws, lengths, begins)
        rows, columns = np.nonzero(hidden)
        shape = len(frames), self.count_slots(mask.shape[1])
        codes = inputs.get("codes")
        listed = list_predictions(
            rows, columns, 0 if codes is None else codes[rows, columns], shape
        )
        targets = listed.pop("mask_ids")
        if codes is None:
            targets = np.zeros((*shape, frames.shape[2]), "float32")
            slots = np.arange(len(rows)) - np.searchsorted(rows, rows)
            targets[rows, slots] = frames[rows, columns]
        changed = self._change(frames, draws, rows, columns, lengths, begins)
        kept = {name: array for name, array in inputs.items() if name != "codes"}
        return {**kept, "frames": changed, **listed, "mask_targets": targets}

    def count_slots(self, length: int) -> int:
        """int, P: no row of `length` frames has more frames to predict."""
        return max(min(self.span_length, length), int(length * self.rate))

    def _choose(self, draws, lengths, begins):
        """bool (B, L), whether a frame is predicted."""
        keys, starts = draws[:, :, 0], draws[:, 0, 1]
        sizes = np.minimum(self.span_length, lengths)
        offsets = (starts * sizes).astype("int64")
        offsets = np.where(lengths - offsets < sizes, 0, offsets)
        num_spans = (lengths - offsets) // sizes
        counts = np.maximum(1, (lengths * self.rate // sizes).astype("int64"))
        numbers = np.arange(draws.shape[1])
        keys = np.where(numbers < num_spans[:, None], keys, 2.0)  # No key is over 1.
        ranks = keys.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
        is_chosen = (ranks < counts[:, None]) & (keys < 2.0)
        places = numbers - (begins + offsets)[:, None]
        spans = np.where(places >= 0, places // sizes[:, None], 0)
        inside = (places >= 0) & (spans < num_spans[:, None])
        return inside & np.take_along_axis(is_chosen, spans, axis=1)

    def _change(self, frames, draws, rows, columns, lengths, begins):
        """A copy of the frames (B, L, D), with the chosen frames changed."""
        changed, kinds = frames.copy(), draws[rows, 0, 2]
        others = begins[rows] + (draws[rows, columns, 3] * lengths[rows]).astype("int64")
        is_zero = kinds < self.zero_rate
        is_random = ~is_zero & (kinds < self.zero_rate + self.random_frame_rate)
        changed[rows[is_zero], columns[is_zero]] = 0.0
        changed[rows[is_random], columns[is_random]] = frames[rows[is_random], others[is_random]]
        return changed
