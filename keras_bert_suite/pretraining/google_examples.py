"""Reads and writes the files of Google's `create_pretraining_data.py`."""

import mmap
import os
from collections.abc import Iterable, Sequence
from typing import Any

import grain
import numpy as np

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.data.row_orders import find_batch, shuffled
from keras_bert_suite.pretraining.pretraining_batches import name_arrays
from keras_bert_suite.pretraining.tf_example import (
    find_records,
    frame_record,
    parse_example,
    read_record,
    serialize_example,
)

LABELS = "next_sentence_labels"

#: The names of features in the order of Google's files, and our names.
FEATURES = {
    "input_ids": "token_ids",
    "masked_lm_weights": "mask_weights",
    LABELS: "pair_labels",
    "masked_lm_positions": "mask_positions",
    "input_mask": "padding_mask",
    "segment_ids": "segment_ids",
    "masked_lm_ids": "mask_ids",
}


class GoogleExamples(grain.MapDataset):
    """A Grain dataset of the batches in TFRecords of Google's `create_pretraining_data.py`.

    The examples are shuffled again for each epoch. Element i is a pure function of the files, the
    arguments and i. It has the arrays of `PretrainingBatches`, with the masks of the files. The
    rows that do not fill a last batch are left out. Each epoch leaves out other rows.

    Args:
        paths: list of str or paths, the files; or one str or path. Memory holds only the places of
            the records in the files.
        batch_size: int, B.
        seed: int, not negative.

    Raises:
        ValueError: if a file is damaged, or the files do not fill a batch.
        OSError: if a file cannot be read.
    """

    def __init__(
        self, paths: PathLike | Sequence[PathLike], batch_size: int, seed: int = 0
    ) -> None:
        super().__init__()
        check_integer("batch_size", batch_size, at_least=1)
        check_integer("seed", seed)
        self._paths = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
        self._batch_size = batch_size
        self._seed = seed
        places = []
        for number, path in enumerate(self._paths):
            try:
                found = find_records(_map_file(path))
            except ValueError as error:
                raise _damaged(path, error) from error
            places.append(np.insert(found, 0, number, axis=1))
        # int64 (N, 3): file, offset, size.
        self._places = np.concatenate([np.empty((0, 3), "int64"), *places])
        if len(self._places) < batch_size:
            raise ValueError(
                f"batch_size={batch_size} is more than the {len(self._places)} examples of "
                f"{', '.join(map(str, self._paths)) or 'no file'}. Use a smaller batch."
            )
        self._open()

    def _open(self):
        self._files = [_map_file(path) for path in self._paths]
        self._order = shuffled(len(self._places), self._seed)

    def __getstate__(self):
        return {**self.__dict__, "_files": None, "_order": None}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._open()

    def __len__(self) -> int:
        return len(self._places) // self._batch_size

    def __getitem__(self, index: Any) -> Any:
        """One batch, with the arrays of `PretrainingBatches.__getitem__`.

        Raises:
            ValueError: if a record is damaged, or lacks a feature.
        """
        if isinstance(index, slice):
            return self.slice(index)
        epoch, batch = find_batch(index, len(self))
        rows = self._order(epoch)[batch * self._batch_size : (batch + 1) * self._batch_size]
        examples = [self._read(*place) for place in self._places[rows].tolist()]
        # NumPy refuses examples of different lengths, of files with another max_seq_length.
        columns = {name: np.stack([example[name] for example in examples]) for name in FEATURES}
        columns[LABELS] = columns[LABELS][:, 0]
        return name_arrays({ours: columns[name] for name, ours in FEATURES.items()})

    def _read(self, file, offset, size):
        path = self._paths[file]
        try:
            example = parse_example(read_record(self._files[file], offset, size))
        except ValueError as error:
            raise _damaged(path, error) from error
        missing = [name for name in FEATURES if not len(example.get(name, ()))]
        if missing:
            raise ValueError(
                f"{path}: the example at byte {offset} lacks {', '.join(missing)}. Wanted a file "
                "of create_pretraining_data.py."
            )
        return {
            name: example[name].astype("float32" if name == "masked_lm_weights" else "int32")
            for name in FEATURES
        }


def write_google_examples(path: PathLike, batches: Iterable[Any]) -> None:
    """Writes batches as Google's `create_pretraining_data.py` would, field for field.

    Args:
        path: str or path of the file to write.
        batches: iterable of `(x, y, sample_weight)` with pairs, such as `PretrainingBatches`. A
            loop over `PretrainingBatches` gives the batches of one epoch.

    Raises:
        ValueError: if the batches have no pairs of two relations, or other segments than 0 and 1.
    """
    with open(path, "wb") as file:
        for x, y, sample_weight in batches:
            if "nsp" not in y or y["nsp"].max(initial=0) > 1 or "segment_ids" not in x:
                raise ValueError(
                    f"Google's examples have segment_ids, and {LABELS} of 0 and 1. Make the "
                    'batches with mode="pairs" or "sop", and with a WordPieceTokenizer.'
                )
            if x["segment_ids"].max(initial=0) > 1:
                raise ValueError("Google's examples have no segments of a LanguageModelMixture.")
            arrays = {
                **x,
                "mask_ids": y["mlm"],
                "mask_weights": sample_weight["mlm"],
                "pair_labels": y["nsp"][:, None],
            }
            columns = {name: arrays[ours] for name, ours in FEATURES.items()}
            for row in range(len(y["nsp"])):
                example = {name: column[row] for name, column in columns.items()}
                file.write(frame_record(serialize_example(example)))


def _map_file(path):
    """Maps a file into memory. Its bytes are read from the disk when they are used."""
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _damaged(path, error):
    return ValueError(f"{path} cannot be read as TFRecords of examples: {error}.")
