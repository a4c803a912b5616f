"""Mixes rows of several corpora in each batch."""

import math
from collections.abc import Sequence
from typing import Any

import grain
import numpy as np


class MixedBatches(grain.MapDataset):
    """A Grain dataset of batches whose rows come from several datasets of batches.

    Element i has the rows of element i of each dataset, one dataset after the other. So it is a
    pure function of i if the elements of the datasets are. After a resume, each dataset continues
    where it was. The batch size of a dataset is its share of the rows.

    An epoch of the mixture is as long as the longest epoch of a dataset. The other datasets begin
    their next epochs meanwhile.

    Args:
        datasets: `PretrainingBatches` with the same masker, mode and sequence length. `share_rows`
            finds their batch sizes.

    Raises:
        ValueError: when an element is read, if the datasets have different arrays.

    Example:
    ```python
    sizes = share_rows(256, [0.7, 0.3])  # [179, 77]
    batches = MixedBatches(
        [
            PretrainingBatches(corpus, masker, sequence_length=128, batch_size=size)
            for corpus, size in zip([wikipedia, books], sizes)
        ]
    )
    ```
    """

    def __init__(self, datasets: Sequence[grain.MapDataset]) -> None:
        super().__init__(datasets)
        self._datasets = tuple(datasets)

    def __len__(self) -> int:
        return max(map(len, self._datasets))

    def __getitem__(self, index: Any) -> Any:
        """One batch, with the arrays of `PretrainingBatches`."""
        if isinstance(index, slice):
            return self.slice(index)
        batches = [dataset[index] for dataset in self._datasets]
        return tuple(_join_arrays(parts) for parts in zip(*batches, strict=True))


def share_rows(batch_size: int, shares: Sequence[float]) -> list[int]:
    """Divides the rows of a batch.

    >>> share_rows(32, [0.7, 0.2, 0.1])
    [23, 6, 3]

    Args:
        batch_size: int.
        shares: floats over 0, whose sum is 1.

    Returns:
        list of int, at least 1, whose sum is `batch_size`. Each differs from its share of
        `batch_size` by less than 1.

    Raises:
        ValueError: if the sum of `shares` is not 1, or a share is too small for a row.
    """
    if not all(0 < share <= 1 for share in shares) or not math.isclose(sum(shares), 1):
        raise ValueError(f"Shares must be over 0 and sum to 1, got {', '.join(map(str, shares))}.")
    exact = batch_size * np.asarray(shares)
    rows = np.floor(exact + 1e-9).astype(int)
    # The largest remainders get the rows that are left.
    rows[np.argsort(rows - exact, kind="stable")[: batch_size - rows.sum()]] += 1
    if not rows.all():
        raise ValueError(f"A share of {min(shares)} is less than a row of a batch of {batch_size}.")
    return rows.tolist()


def _join_arrays(parts):
    """Joins dicts of arrays along their rows."""
    if any(part.keys() != parts[0].keys() for part in parts):
        names = " and ".join(", ".join(part) for part in parts)
        raise ValueError(f"A mixture needs datasets of the same masker and mode, got {names}.")
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
