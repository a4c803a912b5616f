"""The noises of BART: they hide, delete, insert and move the tokens of texts, before packing.

A `DenoisingCorruption` applies them one after the other. Each works on the rows of a batch at once.

Source: Lewis et al., 2020 (https://arxiv.org/abs/1910.13461), section 2.2, and facebookresearch/
fairseq, `denoising_dataset.py`.
"""

import abc
import dataclasses

import numpy as np

from keras_bert_suite.argument_checks import check_positive, check_share
from keras_bert_suite.masking.corruption import Draw
from keras_bert_suite.masking.maskable_units import MaskVocabulary
from keras_bert_suite.masking.noise_steps import (
    choose_words,
    count_share,
    count_words,
    cover,
    draw_masks,
    draw_spans,
    find_ends,
    insert_masks,
)
from keras_bert_suite.masking.ragged_rows import RaggedRows


class Noise(abc.ABC):
    """A change of texts that a decoder is to undo.

    A noise of your own has `apply`. Its result for a row must depend on the row and its random
    numbers alone, as that of a `Corruption`.
    """

    @abc.abstractmethod
    def apply(self, rows: RaggedRows, draw: Draw, vocabulary: MaskVocabulary) -> RaggedRows:
        """Changes the texts of a batch.

        Args:
            rows: `RaggedRows` of `token_ids` int32; `sentences` int32, as for `Corruption.corrupt`;
                and `word_starts` bool, whether a token is the first one of a word. It is true for
                the first token of a row.
            draw: as for `Corruption.corrupt`.
            vocabulary: `MaskVocabulary`, with `mask_token_id` and `random_ids`.

        Returns:
            `RaggedRows` of the same arrays. Sentences may have any numbers and any order then.
        """


@dataclasses.dataclass(frozen=True)
class TokenMasking(Noise):
    """Replaces random tokens, or all tokens of random words, by the mask token.

    Attributes:
        rate: float from 0 to 1, the share of the words of a row, rounded up.
        random_token_rate: float, how often a random token takes the place of the mask token.
    """

    rate: float = 0.15
    random_token_rate: float = 0.0

    def __post_init__(self) -> None:
        check_share("rate", self.rate)
        check_share("random_token_rate", self.random_token_rate)

    def apply(self, rows: RaggedRows, draw: Draw, vocabulary: MaskVocabulary) -> RaggedRows:
        """Args, Returns: as for `Noise.apply`."""
        entries = np.flatnonzero(_choose_tokens(rows, draw, self.rate))
        token_ids = rows["token_ids"].copy()
        token_ids[entries] = draw_masks(rows, draw, entries, vocabulary, self.random_token_rate)
        return rows.change(token_ids=token_ids)


@dataclasses.dataclass(frozen=True)
class TokenDeletion(Noise):
    """Deletes random tokens, or random words. The decoder must also find where they are missing.

    Attributes:
        rate: float from 0 to 1, the share of the words of a row, rounded up.
    """

    rate: float = 0.15

    def __post_init__(self) -> None:
        check_share("rate", self.rate)

    def apply(self, rows: RaggedRows, draw: Draw, vocabulary: MaskVocabulary) -> RaggedRows:
        """Args, Returns: as for `Noise.apply`."""
        return rows.keep(~_choose_tokens(rows, draw, self.rate))


@dataclasses.dataclass(frozen=True)
class TextInfilling(Noise):
    """Replaces spans by one mask token each. The decoder must also find how long they were.

    Lengths are drawn from a Poisson distribution until their sum is the budget of the row, and the
    last one is cut. Spans begin at random words, and end with the row at the latest. They may
    overlap or touch, so that somewhat less than the budget is hidden. For a span of no word, a mask
    token is inserted at a random place.

    With a `random_token_rate`, fairseq rounds the number of random tokens in a row up, so most are
    random where few are inserted. Here each one is random at this rate. And fairseq may
    insert one more token, by rounding up a quotient that is whole. Here it is their number.

    Attributes:
        rate: float from 0 to 1, the budget as a share of the words of the row, rounded up.
        mean_length: float over 0, lambda, in words. The paper says 3, and the run of the published
            models had 3.5.
        random_token_rate: float, how often a random token takes the place of the mask token.
    """

    rate: float = 0.3
    mean_length: float = 3.5
    random_token_rate: float = 0.1

    def __post_init__(self) -> None:
        check_share("rate", self.rate)
        check_share("random_token_rate", self.random_token_rate)
        check_positive("mean_length", self.mean_length)

    def apply(self, rows: RaggedRows, draw: Draw, vocabulary: MaskVocabulary) -> RaggedRows:
        """Args, Returns: as for `Noise.apply`."""
        budgets = count_share(count_words(rows), self.rate)
        lengths, num_empty = draw_spans(draw, budgets, self.mean_length)
        words = choose_words(rows, draw, np.count_nonzero(lengths, axis=1))
        first = words["entries"]
        ends = find_ends(rows, first, lengths[words.numbers, words.places])
        token_ids = rows["token_ids"].copy()
        token_ids[first] = draw_masks(rows, draw, first, vocabulary, self.random_token_rate)
        masked = rows.change(token_ids=token_ids)
        masked = masked.keep(~cover(len(token_ids), first + 1, ends))
        return insert_masks(masked, draw, num_empty, vocabulary, self.random_token_rate)


@dataclasses.dataclass(frozen=True)
class TokenInsertion(Noise):
    """Inserts mask tokens at random places. The decoder leaves them out.

    fairseq counts the two special tokens of a row, too, and rounds up the number of random tokens.

    Attributes:
        rate: float from 0 to 1, how many are inserted, as a share of the tokens of a row, rounded
            up.
        random_token_rate: float, how often a random token is inserted instead.
    """

    rate: float = 0.1
    random_token_rate: float = 0.1

    def __post_init__(self) -> None:
        check_share("rate", self.rate)
        check_share("random_token_rate", self.random_token_rate)

    def apply(self, rows: RaggedRows, draw: Draw, vocabulary: MaskVocabulary) -> RaggedRows:
        """Args, Returns: as for `Noise.apply`."""
        counts = count_share(rows.lengths, self.rate)
        return insert_masks(rows, draw, counts, vocabulary, self.random_token_rate)


@dataclasses.dataclass(frozen=True)
class SentencePermutation(Noise):
    """Puts sentences into a random order.

    The sentences are those of the corpus. fairseq ends a sentence at each full stop.

    Attributes:
        rate: float from 0 to 1, the share of the sentences of a row, rounded up, that change places
            among themselves. The others stay.
    """

    rate: float = 1.0

    def __post_init__(self) -> None:
        check_share("rate", self.rate)

    def apply(self, rows: RaggedRows, draw: Draw, vocabulary: MaskVocabulary) -> RaggedRows:
        """Args, Returns: as for `Noise.apply`."""
        firsts = np.ones(len(rows["sentences"]), bool)
        firsts[1:] = (np.diff(rows["sentences"]) != 0) | (np.diff(rows.numbers) != 0)
        sentences = RaggedRows({"word_starts": firsts}, rows.lengths)
        counts = count_words(sentences)
        numbered = RaggedRows({"word_starts": np.ones(counts.sum(), bool)}, counts)
        chosen = choose_words(numbered, draw, count_share(counts, self.rate))["entries"]
        # The n-th place of a chosen sentence goes to the n-th one in the random order.
        ranks = np.arange(counts.sum())
        ranks[chosen] = np.sort(chosen)
        of_tokens = ranks[np.cumsum(firsts) - 1]
        return rows.take(np.argsort(of_tokens, kind="stable"), rows.lengths)


@dataclasses.dataclass(frozen=True)
class DocumentRotation(Noise):
    """Turns a row round, so that it begins with a random token. All its tokens are equally likely.

    fairseq draws one place more, so that two of them leave the row as it is.

    Attributes:
        rate: float from 0 to 1, the probability that a row is rotated.
    """

    rate: float = 1.0

    def __post_init__(self) -> None:
        check_share("rate", self.rate)

    def apply(self, rows: RaggedRows, draw: Draw, vocabulary: MaskVocabulary) -> RaggedRows:
        """Args, Returns: as for `Noise.apply`."""
        chances, places = draw(2).T
        offsets = np.where(chances < self.rate, (places * rows.lengths).astype("int64"), 0)
        places = (rows.places + offsets[rows.numbers]) % rows.lengths[rows.numbers]
        rotated = rows.take(rows.starts[rows.numbers] + places, rows.lengths)
        # A row may begin in the middle of a word.
        rotated["word_starts"][rows.places == 0] = True
        return rotated


def _choose_tokens(rows: RaggedRows, draw: Draw, rate: float) -> np.ndarray:
    """bool (T,), the tokens of random words, a share of the words of each row."""
    first = choose_words(rows, draw, count_share(count_words(rows), rate))["entries"]
    return cover(len(rows["word_starts"]), first, find_ends(rows, first, 1))
