"""Which tokens the pretraining instances of an epoch are made of.

Planned from the lengths of the sentences alone; no token is read. Every sentence is
asked where an instance that begins with it would end, all at once, and the answers are
followed from the first sentence on. D documents, S sentences, N instances.
"""

import dataclasses

import numpy as np

from keras_bert_suite.preprocessing.argument_checks import (
    check_choice,
    check_integer,
    check_share,
)
from keras_bert_suite.preprocessing.packing import NUMPY, count_places, kept_lengths

PAIR_MODES = ("pairs", "sop")
MODES = (*PAIR_MODES, "full_sentences", "doc_sentences")

#: About how many sentences are planned at once, with random numbers of their own.
SENTENCES_PER_SLICE = 1 << 20


@dataclasses.dataclass(frozen=True)
class InstancePlan:
    """The instances of one epoch, in the order of the corpus.

    Attributes:
        starts: int64 (N, 2), (N, 1) without pairs; the first token of each segment,
            counted through the corpus from its first document on.
        lengths: int32 (N, 2) or (N, 1), how many tokens each segment has, at least 1.
        labels: int8 (N,), 1 for pairs that do not follow each other; None without pairs.
    """

    starts: np.ndarray
    lengths: np.ndarray
    labels: np.ndarray | None

    def __len__(self):
        return len(self.starts)


class InstancePlanner:
    """Plans the instances of any epoch, as a pure function of (seed, epoch).

    Modes:
        "pairs": Google's `create_pretraining_data.py`. Sentences of a document are
            gathered until they have `target` tokens or the document ends, and cut
            between two of them, drawn evenly, into A and B. If there is only one, or
            else with probability 1/2, B is replaced by as many sentences as reach the
            target from a random place of another document, label 1, and the sentences
            that were to be B are used again. A pair that is too long loses tokens of the
            longer segment, of B if they are equal, each from its front or its back with
            probability 1/2. `target` is what the row holds; for a document in
            `short_seq_prob` of all, evenly from 2 to that.
        "sop": sentence order (ALBERT's `create_pretraining_data.py`). The same, but B
            follows A, and with probability 1/2 they change places, label 1. A gathering
            of one sentence gets a random B, label 1, as in Google's code.
        "full_sentences": one segment (RoBERTa, Liu et al., 2019,
            https://arxiv.org/abs/1907.11692) of as many whole sentences in a row as fit.
            It goes on over the end of a document, with an extra [SEP] there.
        "doc_sentences": the same, but it ends with its document.

    In the last two the target is drawn for each row (RoBERTa has `short_seq_prob=0`), a
    row has at least one sentence, and a sentence that no row can hold is divided.

    Google's code tries ten times for another document and then takes the same; here it is
    always another, unless the corpus has only one.

    Args:
        corpus: `TokenCorpus`.
        sequence_length: int, the most tokens in a row, special ones included.
        mode: one of `MODES`.
        short_seq_prob: float from 0 to 1.
        seed: int, not negative.

    Raises:
        ValueError: if an argument is out of its range, or the corpus is empty.
    """

    def __init__(self, corpus, sequence_length, mode="pairs", short_seq_prob=0.1, seed=0):
        check_choice("mode", mode, MODES)
        check_share("short_seq_prob", short_seq_prob)
        check_integer("seed", seed)
        num_segments = 2 if mode in PAIR_MODES else 1
        check_integer("sequence_length", sequence_length, at_least=3 + num_segments)
        if not corpus.num_documents:
            raise ValueError("The corpus has no document with a sentence; there is nothing to cut.")
        self.mode = mode
        self.short_seq_prob = short_seq_prob
        self.seed = seed
        self._budget = count_places(sequence_length, num_segments)
        self._sentence_lengths = corpus.sentence_lengths
        self._document_starts = np.asarray(corpus.document_starts)
        # int64 (S + 1,): the tokens before each sentence.
        self._tokens_before = np.zeros(len(corpus.sentence_lengths) + 1, "int64")
        np.cumsum(corpus.sentence_lengths, out=self._tokens_before[1:])

    def plan(self, epoch):
        """Plans an epoch.

        Args:
            epoch: int, not negative.

        Returns:
            `InstancePlan`.
        """
        plan_slice = self._plan_pairs if self.mode in PAIR_MODES else self._plan_rows
        cuts = np.arange(0, len(self._sentence_lengths), SENTENCES_PER_SLICE)
        cuts = np.unique([*np.searchsorted(self._document_starts, cuts), self.num_documents])
        parts = []
        for number, documents in enumerate(zip(cuts[:-1], cuts[1:], strict=True), start=1):
            # From 1: NumPy fills a seed up with zeros, and [seed, epoch] is taken.
            rng = np.random.default_rng([self.seed, epoch, number])
            parts.append(plan_slice(rng, *documents))
        starts, lengths, labels = zip(*parts, strict=True)
        return InstancePlan(
            np.concatenate(starts),
            np.concatenate(lengths).astype("int32"),
            np.concatenate(labels).astype("int8") if self.mode in PAIR_MODES else None,
        )

    @property
    def num_documents(self):
        """int D."""
        return len(self._document_starts) - 1

    def _draw_targets(self, rng, count):
        """int64 (count,), how many tokens to aim at."""
        short = rng.random(count) < self.short_seq_prob
        return np.where(short, rng.integers(2, self._budget, count, endpoint=True), self._budget)

    def _plan_pairs(self, rng, first_document, end_document):
        """The instances of consecutive documents: starts, lengths (N, 2) and labels (N,)."""
        bounds = self._document_starts[first_document : end_document + 1]
        first, end = bounds[0], bounds[-1]
        num_sentences = np.diff(bounds)
        before = self._tokens_before
        targets = np.repeat(self._draw_targets(rng, len(num_sentences)), num_sentences)
        begins = np.arange(first, end)
        # A gathering is the sentences from `begins` to `ends`, A those to `a_ends`.
        ends = first + np.searchsorted(before[first : end + 1], before[begins] + targets)
        ends = np.minimum(ends, np.repeat(bounds[1:], num_sentences))
        sizes = ends - begins
        a_ends = begins + 1 + (rng.random(len(begins)) * (sizes - 1)).astype("int64")
        turned = rng.random(len(begins)) < 0.5
        random_next = (sizes == 1) | turned if self.mode == "pairs" else sizes == 1
        labels = (sizes == 1) | turned
        begins = follow(np.where(random_next, a_ends, ends) - first)

        ends, a_ends, targets = ends[begins], a_ends[begins], targets[begins]
        random_next, labels = random_next[begins], labels[begins]
        begins += first
        b_begins, b_ends = a_ends.copy(), ends
        a_lengths = before[a_ends] - before[begins]
        b_begins[random_next], b_ends[random_next] = self._draw_next(
            rng, begins[random_next], (targets - a_lengths)[random_next]
        )
        starts = np.stack([before[begins], before[b_begins]], axis=1)
        lengths = np.stack([a_lengths, before[b_ends] - before[b_begins]], axis=1)
        swapped = labels & ~random_next
        starts[swapped] = starts[swapped, ::-1]
        lengths[swapped] = lengths[swapped, ::-1]

        kept = np.stack(kept_lengths(NUMPY, list(lengths.T), self._budget, "longest_first"), axis=1)
        starts += rng.binomial(lengths - kept, 0.5)  # as many were taken from the front
        return starts, kept, labels

    def _draw_next(self, rng, begins, targets):
        """The sentences of a random B for instances that begin with `begins`.

        Returns:
            int64 (n,) twice: the first sentence and the one after the last.
        """
        documents = np.searchsorted(self._document_starts, begins, side="right") - 1
        if self.num_documents > 1:
            others = rng.integers(0, self.num_documents - 1, len(begins))
            documents = others + (others >= documents)
        document_ends = self._document_starts[documents + 1]
        first = rng.integers(self._document_starts[documents], document_ends)
        before = self._tokens_before
        ends = np.searchsorted(before, before[first] + np.maximum(targets, 1))
        return first, np.minimum(ends, document_ends)

    def _plan_rows(self, rng, first_document, end_document):
        """The same for instances of one segment; without labels."""
        bounds = self._document_starts[first_document : end_document + 1]
        lengths = self._sentence_lengths[bounds[0] : bounds[-1]].astype("int64")
        # Pieces are sentences, and the parts of sentences that no row can hold.
        num_pieces = -(-lengths // self._budget)
        last_pieces = np.cumsum(num_pieces)
        pieces = np.full(last_pieces[-1], self._budget)
        pieces[last_pieces - 1] = lengths - (num_pieces - 1) * self._budget
        document_begins = np.append(0, last_pieces)[bounds - bounds[0]]
        # The [SEP] between documents is counted with the piece after it.
        separators = np.zeros_like(pieces)
        if self.mode == "full_sentences":
            separators[document_begins[:-1]] = 1
        places = np.append(0, np.cumsum(pieces + separators))
        room = places[:-1] + separators + self._draw_targets(rng, len(pieces))
        ends = np.searchsorted(places, room, side="right") - 1
        ends = np.maximum(ends, np.arange(len(pieces)) + 1)
        if self.mode == "doc_sentences":
            ends = np.minimum(ends, np.repeat(document_begins[1:], np.diff(document_begins)))

        begins = follow(ends)
        before = self._tokens_before[bounds[0]] + np.append(0, np.cumsum(pieces))
        starts = before[begins]
        return starts[:, None], (before[ends[begins]] - starts)[:, None], None


def follow(successors):
    """The numbers met on the way from 0 along `successors` to its end.

    >>> follow(np.array([2, 2, 3, 5, 5]))
    array([0, 2, 3])

    Args:
        successors: int (n,), for each number a greater one, at most n.

    Returns:
        int64 array.
    """
    successors = successors.tolist()
    met, number = [], 0
    while number < len(successors):
        met.append(number)
        number = successors[number]
    return np.array(met, "int64")
