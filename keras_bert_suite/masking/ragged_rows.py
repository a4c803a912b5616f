"""Rows of different lengths, as arrays in which one row follows the other."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from keras_bert_suite.preprocessing.packing import NUMPY, pack_segments


@dataclasses.dataclass(frozen=True)
class RaggedRows:
    """B rows, T entries in all. An entry has a value in each of some arrays, such as `token_ids`.

    Attributes:
        arrays: dict of name -> (T,), the values of all rows, one row after the other.
        lengths: int (B,), how many entries each row has.

    Example:
    ```python
    rows = RaggedRows({"token_ids": np.array([7, 8, 9])}, np.array([2, 1]))
    rows.places                                     # array([0, 1, 0])
    rows.take(np.array([1, 0, 2]), rows.lengths)    # the first row is turned round
    rows.pad(3)["token_ids"]                        # array([[7, 8, 0], [9, 0, 0]])
    ```
    """

    arrays: Mapping[str, np.ndarray]
    lengths: np.ndarray

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.arrays[name]

    @property
    def starts(self) -> np.ndarray:
        """int (B,), the first entry of each row."""
        return np.cumsum(self.lengths, dtype=self.lengths.dtype) - self.lengths

    @property
    def numbers(self) -> np.ndarray:
        """int64 (T,), the row of each entry."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @property
    def places(self) -> np.ndarray:
        """int64 (T,), the place of each entry in its row."""
        return np.arange(self.lengths.sum()) - np.repeat(self.starts, self.lengths)

    def take(self, entries: np.ndarray, lengths: np.ndarray) -> "RaggedRows":
        """Rows of some entries, in any order.

        Args:
            entries: int (T',), numbers of entries; or bool (T,), which entries stay.
            lengths: int (B,), how many entries each row has then.
        """
        arrays = {name: array[entries] for name, array in self.arrays.items()}
        return RaggedRows(arrays, lengths)

    def keep(self, stays: np.ndarray) -> "RaggedRows":
        """The rows without some entries. `stays`, bool (T,), says which entries stay."""
        lengths = np.bincount(self.numbers[stays], minlength=len(self))
        return self.take(stays, lengths.astype(self.lengths.dtype))

    def change(self, **arrays: np.ndarray) -> "RaggedRows":
        """The rows with other arrays (T,), or with further ones, by their names."""
        return RaggedRows({**self.arrays, **arrays}, self.lengths)

    def pad(self, width: int) -> dict[str, np.ndarray]:
        """The arrays as int32 or float32 (B, `width`), with 0 after the end of a row.

        Entries at the end of rows that are longer are left out.
        """
        fits = self.places < width
        cells = self.numbers[fits], self.places[fits]
        padded = {}
        for name, array in self.arrays.items():
            dtype = "float32" if array.dtype.kind == "f" else "int32"
            padded[name] = np.zeros((len(self), width), dtype)
            padded[name][cells] = array[fits]
        return padded


def pack_rows(tokenizer, texts, sequence_length):
    """Packs B rows of one or several texts, `RaggedRows` with `token_ids`, and pads them.

    Returns:
        dict of int32 (B, L), as `pack_segments` makes it, L = `sequence_length`.
    """
    segments = [
        tuple(array.astype("int32") for array in (text["token_ids"], text.starts, text.lengths))
        for text in texts
    ]
    return pack_segments(
        NUMPY,
        segments,
        template=tokenizer.row_template,
        sequence_length=sequence_length,
        allowed_lengths=(sequence_length,),
    )
