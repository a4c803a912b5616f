"""Batches of rows of frames, some of which are hidden, for a `FramePretrainer`."""

from collections.abc import Sequence
from typing import Any

import grain
import keras
import numpy as np

from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.data.row_orders import find_batch, shuffled_by_length
from keras_bert_suite.masking.frame_masker import FrameMasker
from keras_bert_suite.preprocessing import FramePacker
from keras_bert_suite.pretraining.pretraining_batches import name_arrays


class FrameBatches(grain.MapDataset):
    """A Grain dataset of batches of frames with hidden spans.

    Rows of similar length share a batch. Every epoch has them in another order, and with other
    spans. Element i is a pure function of the arguments and i, so a training resumes at any batch.
    Rows that fill no batch at the end of an epoch are left out of it.

    Args:
        rows: N arrays (n, D), as `FramePacker.read_rows` takes them. They stay in memory.
        masker: `FrameMasker`.
        packer: `FramePacker`.
        batch_size: int, B.
        codes: None for the prediction of the frames themselves; or N arrays int (n,), the code of
            each frame, for the prediction of codes, see `find_codes`.
        seed: int, not negative, of the order. The masker has another seed.

    Raises:
        ValueError: as `FramePacker.read_rows`; if there are fewer rows than `batch_size`, or the
            codes of a row are not as many as its frames, or no integers from 0.

    Example:
    ```python
    codebook = kbs.learn_codebook(rows, num_codes=64)
    codes = kbs.find_codes(rows, codebook)
    batches = FrameBatches(rows, FrameMasker(), packer, batch_size=32, codes=codes)
    ```
    """

    def __init__(
        self,
        rows: Sequence[Any],
        masker: FrameMasker,
        packer: FramePacker,
        batch_size: int,
        codes: Sequence[Any] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        check_integer("batch_size", batch_size, at_least=1)
        check_integer("seed", seed)
        self._rows = packer.read_rows(rows)
        self._codes = None if codes is None else _read_codes(codes, self._rows)
        self._masker = masker
        self._packer = packer
        self.batch_size = batch_size
        if not len(self):
            raise ValueError(
                f"batch_size={batch_size} is more than the {len(self._rows)} rows. Use a smaller "
                "batch, or more rows."
            )
        lengths = np.fromiter(map(len, self._rows), "int64", len(self._rows))
        self._order = shuffled_by_length(lengths, batch_size, seed)

    def __len__(self) -> int:
        return len(self._rows) // self.batch_size

    def __getitem__(self, index: Any) -> Any:
        """One batch.

        Returns:
            `(x, y, sample_weight)`, NumPy arrays in dicts.
            x: `frames` float32 (B, L, D), `segment_ids` and `padding_mask` int32 (B, L),
            `mask_positions` int32 (B, P). y: `mfm` float32 (B, P, D), or codes int32 (B, P).
            sample_weight: `mfm` float32 (B, P), 0 in unused slots.
        """
        if isinstance(index, slice):
            return self.slice(index)
        epoch, batch = find_batch(index, len(self))
        numbers = self._order(epoch)[batch * self.batch_size : (batch + 1) * self.batch_size]
        arrays = self._packer.pack(self._rows[numbers])
        if self._codes is not None:
            arrays["codes"] = np.zeros_like(arrays["padding_mask"])
            for row, codes in zip(arrays["codes"], self._codes[numbers], strict=True):
                row[: len(codes)] = codes
        return name_arrays(self._masker(arrays, numbers, epoch), self._masker.labels)

    def check_task(self, task: keras.Model) -> None:
        """Raises a ValueError if a task predicts frames where there are codes, or the contrary."""
        num_codes = getattr(task, "num_codes", None)
        largest = None if self._codes is None else max(int(row.max()) for row in self._codes)
        if (num_codes is None) != (largest is None) or (largest or 0) >= (num_codes or 1):
            batches = "frames" if largest is None else f"codes up to {largest}"
            raise ValueError(
                f"The batches have {batches} to predict, and the {type(task).__name__} has "
                f"num_codes={num_codes}. Pass FrameBatches `codes` below the num_codes of the "
                "task, or neither of them."
            )


def _read_codes(codes, rows):
    """Object array (N,) of int32 (n,), a code for each frame."""
    column = np.empty(len(rows), dtype=object)
    if len(codes) != len(rows):
        raise ValueError(f"Wanted the codes of {len(rows)} rows, got those of {len(codes)}.")
    for number, (own, row) in enumerate(zip(codes, rows, strict=True)):
        own = np.asarray(own)
        if own.shape != row.shape[:1] or own.dtype.kind not in "iu" or own.min() < 0:
            raise ValueError(
                f"Row {number} has {len(row)} frames, wanted as many codes, integers from 0; got "
                f"{own.dtype} of shape {own.shape}: {str(own)[:40]}."
            )
        column[number] = own.astype("int32")
    return column
