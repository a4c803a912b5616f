"""Corruptions: a pretraining that changes the number or the order of the tokens of a row.

A masker hides tokens of packed rows, so that each token keeps its place. A corruption comes before
the packer. It may delete, insert and move tokens and whole sentences:

    text of a row ──> corrupt ──> source ──> packed: token_ids, segment_ids, padding_mask (B, L)
                         └──────> target ──> padded: arrays (B, T), by the names that it gives them

`PretrainingBatches` takes a corruption in the place of a masker. A model takes the arrays by their
names, as its inputs and as the labels of its outputs.
"""

import abc
import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.masking.array_maker import ArrayMaker
from keras_bert_suite.masking.ragged_rows import RaggedRows, pack_rows
from keras_bert_suite.masking.token_replacement import draw_uniforms
from keras_bert_suite.tokenizers.text_tokenizer import TextTokenizer

Draw = Callable[[int], np.ndarray]


class Corruption(ArrayMaker, abc.ABC):
    """Makes of texts a source, which an encoder reads, and a target, which is learned from it.

    A subclass has `corrupt` and `labels`. Its result for a row must depend on the row and its
    random numbers alone. So it is a pure function of (seed, epoch, number of the row): the same for
    any number of workers, and after a resume.

    This one deletes tokens at random. A decoder learns to write the text:

    ```python
    class Deletion(Corruption):
        labels = {"written": ("target_ids", "target_weights")}

        def corrupt(self, rows, draw):
            drawn = draw(rows.lengths.max(initial=0))
            source = rows.keep(drawn[rows.numbers, rows.places] >= 0.15)
            ids = rows["token_ids"]
            before = np.where(rows.places == 0, self.tokenizer.start_token_id, np.roll(ids, 1))
            target = RaggedRows(
                {
                    "decoder_token_ids": before,
                    "decoder_padding_mask": np.ones_like(ids),
                    "target_ids": ids,
                },
                rows.lengths,
            )
            return source, target


    batches = PretrainingBatches(corpus, Deletion(tokenizer), 128, 32, mode="doc_sentences")
    ```

    Args:
        tokenizer: a tokenizer of this package. Sources are packed with its special tokens.
        seed: int, not negative.
        dynamic: bool. False gives a row the same random numbers in every epoch.
    """

    #: Output of a model -> its labels and their weights, names of two arrays. A target without such
    #: weights has 1, and 0 in its padding. All other arrays are inputs of a model.
    labels: Mapping[str, tuple[str, str]]

    reads_sentences = True

    def __init__(self, tokenizer: TextTokenizer, seed: int = 0, dynamic: bool = True) -> None:
        check_integer("seed", seed)
        self.tokenizer = tokenizer
        self.seed = seed
        self.dynamic = dynamic

    @abc.abstractmethod
    def corrupt(self, rows: RaggedRows, draw: Draw) -> tuple[RaggedRows, RaggedRows]:
        """Corrupts the texts of a batch.

        Args:
            rows: `RaggedRows` of B texts without the special tokens around them: `token_ids` int32,
                and `sentences` int32, the number of each token's sentence, which ascends from 0 in
                each row. The separator between two documents is the last token of a sentence.
            draw: function from a width W to random numbers, float64 (B, W) in [0, 1). Each call
                gives new numbers. A larger W only adds columns, so column i of a row is the same
                in any batch if the number of calls is.

        Returns:
            `(source, target)`: `RaggedRows` with `token_ids`, of which a row loses its last tokens
            if it is longer than `sequence_length` allows; and `RaggedRows` of any arrays for the
            decoder and the loss.
        """

    def count_target(self, sequence_length: int) -> int:
        """int, T, the length that targets are padded to. By default it is `sequence_length`."""
        return sequence_length

    def make_arrays(
        self, texts: Sequence[RaggedRows], sequence_length: int, row_ids: np.ndarray, epoch: int
    ) -> dict[str, np.ndarray]:
        """The arrays of a batch, int32 and float32: the packed sources and the padded targets.

        Args:
            texts: list of one `RaggedRows`, see `corrupt`.
            sequence_length: int, L.
            row_ids: int (B,), the numbers of the rows.
            epoch: int.
        """
        (rows,) = texts
        draw = draw_in_turn(self.seed, epoch if self.dynamic else 0, row_ids)
        source, target = self.corrupt(rows, draw)
        entries = np.ones(target.lengths.sum(), "float32")
        weights = {name: entries for _, name in self.labels.values() if name not in target.arrays}
        padded = target.change(**weights).pad(self.count_target(sequence_length))
        return {**pack_rows(self.tokenizer, [source], sequence_length), **padded}


def draw_in_turn(seed: int, epoch: int, row_ids: np.ndarray) -> Draw:
    """The function `draw` of `Corruption.corrupt`. Call n takes stream n of `draw_uniforms`."""
    streams = itertools.count()

    def draw(width: int) -> np.ndarray:
        uniforms = draw_uniforms(seed, epoch, row_ids, -(-width // 4), next(streams))
        return uniforms.reshape(len(row_ids), -1)[:, :width]

    return draw
