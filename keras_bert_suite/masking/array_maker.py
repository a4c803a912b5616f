"""What `PretrainingBatches` asks of a masker and of a corruption alike."""

from collections.abc import Mapping
from typing import Any

import keras


class ArrayMaker:
    """Makes arrays of the texts of rows. It is the base of `MaskingLayer` and `Corruption`.

    A subclass has a `tokenizer`, `dynamic`, and `make_arrays(texts, sequence_length, row_ids,
    epoch)`.
    """

    tokenizer: Any
    dynamic: bool

    #: Output of a model -> its labels and their weights, names of two arrays.
    labels: Mapping[str, tuple[str, str]]

    #: Whether a row is one text, with its sentences.
    reads_sentences = False

    @property
    def separator_id(self) -> int:
        """int, the token between two documents in a row: [SEP]."""
        return self.tokenizer.end_token_id

    def count_context(self, sequence_length: int) -> int:
        """int, how many tokens of a row are the context of a pair; 0 without such rows."""
        return 0

    def check_documents(self, num_documents: int, num_single: int) -> None:
        """Raises a ValueError, or warns, if rows that are parts of documents teach nothing.

        `num_single` of the documents have a single sentence.
        """

    def check_task(self, task: keras.Model) -> None:
        """Raises a ValueError if a task cannot learn from the arrays, whatever their names are."""
