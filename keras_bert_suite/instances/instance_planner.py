"""Plans the token ranges of the pretraining instances of an epoch.

A plan needs only the lengths of the sentences. No token is read. D documents, S sentences, N
instances.
"""

import dataclasses

import numpy as np

from keras_bert_suite.argument_checks import (
    check_choice,
    check_integer,
    check_share,
)
from keras_bert_suite.instances.instance_ranges import PAIR_MODES, ROW_MODES, plan_pairs, plan_rows
from keras_bert_suite.preprocessing.packing import count_places, count_special_tokens

MODES = (*PAIR_MODES, *ROW_MODES)

#: About how many sentences are planned at once. Such a part of the corpus is called a slice here,
#: and has a random generator of its own.
SENTENCES_PER_SLICE = 1 << 20


@dataclasses.dataclass(frozen=True)
class InstancePlan:
    """The instances of one epoch, in the order of the corpus.

    Attributes:
        starts: int64 (N, 2), (N, 1) without pairs; the number of the first token of each
            segment, counted from the first token of the corpus.
        lengths: int32 (N, 2) or (N, 1), how many tokens each segment has, at least 1.
        labels: int8 (N,), 0 if the second segment of a pair follows the first, 1 if not, and 2 if
            it is the text before the first in mode "relations"; None without pairs.
    """

    starts: np.ndarray
    lengths: np.ndarray
    labels: np.ndarray | None

    def __len__(self):
        return len(self.starts)


class InstancePlanner:
    """Plans the instances of any epoch, as a pure function of (seed, epoch).

    Modes:
        "pairs": Google's `create_pretraining_data.py`. A gathering is consecutive sentences of a
            document, up to `target` tokens or the end of the document. It is cut into A and B at a
            random border of two sentences, and the label is 0. A gathering of one sentence always
            gets a random B, and other gatherings get it with probability 1/2: sentences of another
            document, from a random place on, until A and B have `target` tokens. The label is then
            1, and the next gathering begins with the sentences that would have been B. If a pair is
            too long, the longer segment loses tokens, or B if both are equally long. Each token is
            lost at the front or at the back with probability 1/2. `target` is drawn for each
            document: with probability `short_seq_prob` it is an even draw from 2 to the room in a
            row, otherwise it is the room.
        "sop": sentence order (ALBERT's `create_pretraining_data.py`). This is "pairs", but B
            follows A. With probability 1/2 A and B change places, and the label is 1. A gathering
            of one sentence gets a random B with label 1, as in Google's code.
        "relations": next, previous or random text (StructBERT, Wang et al., 2019,
            https://arxiv.org/abs/1908.04577, section 2.3.2). This is "pairs", but with probability
            1/3 B follows A (label 0), with 1/3 it is a random B (label 1), and with 1/3 A and B
            change places, so that B is the text before A (label 2). A gathering of one sentence
            gets a random B, so label 1 is the most frequent. The paper does not say what such a
            text gets.
        "full_sentences": one segment (RoBERTa, Liu et al., 2019, https://arxiv.org/abs/1907.11692)
            of as many consecutive sentences as fit into `target` tokens. It goes on over the end
            of a document, with an extra [SEP] there.
        "doc_sentences": as "full_sentences", but the segment ends where its document ends.

    In the last two modes `target` is drawn for each row (RoBERTa has `short_seq_prob=0`). A row has
    at least one sentence, but a sentence that is longer than a row is divided.

    Google's code tries ten times to find another document for a random B, and then takes the same
    document. This class always takes another document, unless the corpus has a single document.

    Args:
        corpus: `TokenCorpus`.
        sequence_length: int, the most tokens in a row, special ones included.
        mode: one of `MODES`.
        short_seq_prob: float from 0 to 1.
        seed: int, not negative.
        num_separators: int, how many [SEP]s stand between the segments of a pair.

    Raises:
        ValueError: if an argument is out of its range, or the corpus is empty.
    """

    def __init__(
        self,
        corpus,
        sequence_length,
        mode="pairs",
        short_seq_prob=0.1,
        seed=0,
        num_separators=1,
    ):
        check_choice("mode", mode, MODES)
        check_share("short_seq_prob", short_seq_prob)
        check_integer("seed", seed)
        num_segments = 2 if mode in PAIR_MODES else 1
        special_tokens = count_special_tokens(num_segments, num_separators)
        check_integer("sequence_length", sequence_length, at_least=2 + special_tokens)
        if not corpus.num_documents:
            raise ValueError("The corpus has no document with a sentence; there is nothing to cut.")
        self.mode = mode
        self.short_seq_prob = short_seq_prob
        self.seed = seed
        self._budget = count_places(sequence_length, num_segments, num_separators)
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
        plan_slice = plan_pairs if self.mode in PAIR_MODES else plan_rows
        parts = []
        for number, documents in enumerate(self._cut_documents(), start=1):
            # Slices are counted from 1. NumPy pads a seed with zeros, so slice 0 would have the
            # seed [seed, epoch], which orders the instances.
            rng = np.random.default_rng([self.seed, epoch, number])
            parts.append(
                plan_slice(
                    rng,
                    self._tokens_before,
                    self._document_starts,
                    documents,
                    self._budget,
                    self.short_seq_prob,
                    self.mode,
                )
            )
        starts, lengths, *labels = zip(*parts, strict=True)
        return InstancePlan(
            np.concatenate(starts),
            np.concatenate(lengths).astype("int32"),
            np.concatenate(labels[0]) if labels else None,
        )

    def _cut_documents(self):
        """Yields `(first, end)`, the documents of each slice."""
        sentences = np.arange(0, self._document_starts[-1], SENTENCES_PER_SLICE)
        firsts = np.unique(np.searchsorted(self._document_starts, sentences))
        num_documents = len(self._document_starts) - 1
        firsts = firsts[firsts < num_documents].tolist()
        return zip(firsts, [*firsts[1:], num_documents], strict=True)
