"""Plans which tokens each pretraining instance has.

A plan needs only the lengths of the sentences. No token is read. D documents, S sentences, N
instances.
"""

import dataclasses

import numpy as np

from keras_bert_suite.argument_checks import check_choice, check_integer, check_share
from keras_bert_suite.preprocessing.packing import count_places, count_special_tokens
from keras_bert_suite.pretraining.instance_ranges import (
    plan_context_pairs,
    plan_pairs,
    plan_rows,
)
from keras_bert_suite.pretraining.objectives import CONTEXT_MODE, MODES, PAIR_MODES


@dataclasses.dataclass(frozen=True)
class InstancePlan:
    """The instances of some documents in one epoch, in the order of the documents.

    Attributes:
        documents: int64 (D,), the number of each document in the corpus. The last ones may be
            there for random second texts only.
        document_begins: int64 (D + 1,), the tokens before each document, counted from the first
            token of the first document; then all tokens. In mode "context_pairs" a separator
            after each document is counted, too.
        starts: int64 (N, 2), (N, 1) without pairs, (N, 3) for contexts and pairs; the number of
            the first token of each segment, counted in the same way.
        lengths: int32 (N, 2), (N, 1) or (N, 3), how many tokens each segment has, at least 1.
        labels: int8 (N,), 0 if the second segment of a pair follows the first, 1 if not, and 2 if
            it is the text before the first in mode "relations"; None without pairs.
        sentence_begins: int64 (S + 1,), the tokens before each sentence of the documents, then all
            tokens; None if the planner does not keep them.
    """

    documents: np.ndarray
    document_begins: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    labels: np.ndarray | None
    sentence_begins: np.ndarray | None

    def __len__(self):
        return len(self.starts)


class InstancePlanner:
    """Plans the instances of blocks of a corpus, as a pure function of (seed, epoch, blocks).

    Each block has a random generator. The blocks that are planned together exchange random second
    texts, which are drawn from all of their documents. So only the lengths of these blocks are
    needed. Blocks that are drawn from the whole corpus give second texts from the whole corpus. If
    the blocks have a single document, the next block with a document lends its documents for second
    texts.

    Modes:
        "pairs": Google's `create_pretraining_data.py`. A gathering is consecutive sentences of a
            document, up to `target` tokens or the end of the document. It is cut into A and B
            between two random sentences, and the label is 0. With probability 1/2, and always if
            the gathering has one sentence, B is random and the label is 1. A random B is sentences
            of another document, from a random sentence on, until A and B have `target` tokens. The
            next gathering then begins with the sentences that would have been B. If a pair is too
            long, the longer segment loses tokens, or B if both are equally long. Each token is lost
            at the front or at the back with probability 1/2. `target` is drawn for each document:
            with probability `short_seq_prob` it is an even draw from 2 to the room in a row,
            otherwise it is the room.
        "sop": sentence order (ALBERT's `create_pretraining_data.py`). This is "pairs", but B
            follows A. With probability 1/2 A and B change places, and the label is 1. A gathering
            of one sentence gets a random B with label 1, as in Google's code.
        "relations": next, previous or random text (StructBERT, Wang et al., 2019,
            https://arxiv.org/abs/1908.04577, section 2.3.2). This is "pairs" with three labels,
            each with probability 1/3: B follows A (label 0), B is random (label 1), or A and B
            change places, so that B is the text before A (label 2). A gathering of one sentence
            gets a random B, so label 1 is the most frequent. The paper does not say the result for
            such a text.
        "full_sentences": one segment (RoBERTa, Liu et al., 2019, https://arxiv.org/abs/1907.11692)
            of as many consecutive sentences as fit into `target` tokens. It continues over the end
            of a document, with an extra [SEP] there.
        "doc_sentences": as "full_sentences", but the segment ends where its document ends.
        "context_pairs": a context, A and B (XLNet's `data_utils.py`). The documents, with a
            separator after each, are one text. A context is the next `context_length` tokens of
            the text. A begins behind it, and B behind A, so that each token is in a context once,
            and in a pair before. A ends at random at one of the sentence ends in the room for
            both. With probability 1/2, and always if no sentence ends there, B is whole sentences
            at a random place, as many as A leaves room for. The pair then loses tokens at the end
            of the longer text, or of B if both are equally long. It always fills the row. The
            relation is not kept, since no loss of XLNet depends on it.

    XLNet's code joins the files in a random order, and cuts the text into as many streams as a
    batch has rows. Its batches must follow each other, because its model remembers the context of
    the row before. Here the documents of a block are in their order, a plan begins at a random
    token of the first `context_length`, and the rows are shuffled. A separator ends the last
    sentence of its document, and <eod> is a sentence by itself there.

    In "full_sentences" and "doc_sentences" `target` is drawn for each row (RoBERTa has
    `short_seq_prob=0`). A row has at least one sentence, but a sentence that is longer than a row
    is divided.

    Google's code tries ten times to find another document for a random B, and then takes the same
    document. This class always takes another document, unless the corpus has a single document.

    Args:
        corpus: `TokenCorpus`.
        sequence_length: int, the maximum sequence length, with special tokens.
        mode: one of `MODES`.
        short_seq_prob: float from 0 to 1.
        seed: int, not negative.
        num_separators: int, how many [SEP]s stand between the segments of a pair.
        keeps_sentences: bool, whether plans have `sentence_begins`, 8 bytes for each sentence.
        context_length: int, the tokens of a context, for "context_pairs".

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
        keeps_sentences=False,
        context_length=0,
    ):
        check_choice("mode", mode, (*MODES, CONTEXT_MODE))
        check_share("short_seq_prob", short_seq_prob)
        check_integer("seed", seed)
        self._has_context = mode == CONTEXT_MODE
        if self._has_context and short_seq_prob:
            raise ValueError(
                f"mode={mode!r} fills all rows, got short_seq_prob={short_seq_prob}. Pass "
                "short_seq_prob=0.0."
            )
        num_segments = 2 if mode in PAIR_MODES or self._has_context else 1
        special_tokens = count_special_tokens(num_segments, num_separators)
        check_integer(
            "sequence_length", sequence_length, at_least=context_length + 2 + special_tokens
        )
        if not corpus.num_documents:
            raise ValueError("The corpus has no document with a sentence; there is nothing to cut.")
        self.mode = mode
        self.short_seq_prob = short_seq_prob
        self.seed = seed
        self._budget = count_places(sequence_length - context_length, num_segments, num_separators)
        self._context_length = context_length
        self._keeps_sentences = keeps_sentences
        self.corpus = corpus

    def plan(self, epoch, blocks=None):
        """The `InstancePlan` of some blocks together, sorted ints; None for all blocks."""
        if blocks is None:
            blocks = range(self.corpus.num_blocks)
        documents, document_starts, tokens_before, parts = self._plan_blocks(epoch, blocks)
        starts, lengths, *labels = map(np.concatenate, zip(*parts, strict=True))
        return InstancePlan(
            documents,
            tokens_before[document_starts],
            starts,
            lengths,
            labels[0] if labels else None,
            tokens_before if self._keeps_sentences else None,
        )

    def _plan_blocks(self, epoch, numbers):
        """The result of `_join`, and a list of the starts, lengths and labels of each block."""
        blocks = [self.corpus.read_block(number) for number in numbers]
        if self.mode in PAIR_MODES and sum(map(_count_documents, blocks)) == 1:
            blocks += self._borrow_block(numbers)
        documents, document_starts, tokens_before = _join(blocks, int(self._has_context))
        plan_block = plan_pairs if self.mode in PAIR_MODES else plan_rows
        settings = self._budget, self.short_seq_prob, self.mode
        if self._has_context:
            plan_block, settings = plan_context_pairs, (self._budget, self._context_length)
        parts, first = [], 0
        for number, block in zip(numbers, blocks, strict=False):
            end = first + _count_documents(block)
            # Blocks are counted from 1 here. NumPy pads a seed with zeros, so block 0 would have
            # the seed [seed, epoch], which orders the instances.
            rng = np.random.default_rng([self.seed, epoch, int(number) + 1])
            lengths = tokens_before, document_starts, (first, end)
            planned = plan_block(rng, *lengths, *settings)
            parts.append((planned[0], planned[1].astype("int32"), *planned[2:]))
            first = end
        return documents, document_starts, tokens_before, parts

    def _borrow_block(self, numbers):
        """A list of the next block that has a document, after `numbers` and from the beginning on.

        It is empty if there is no other document.
        """
        filled = np.flatnonzero(self.corpus.block_sentences)
        others = filled[~np.isin(filled, numbers)]
        if not len(others):
            return []
        later = others[others > max(numbers)]
        return [self.corpus.read_block(int((later if len(later) else others)[0]))]

    def count(self, block):
        """Counts the instances of a block in epoch 0."""
        return len(self.plan(0, [block]))


def _count_documents(block):
    return len(block.document_starts) - 1


def _join(blocks, num_separators):
    """Joins the lengths of `CorpusBlock`s as if their documents followed each other.

    The last sentence of each document has `num_separators` tokens more. It is int64 (D,), the
    numbers of the documents in the corpus; int64 (D + 1,), the first sentence of each document,
    then S; int64 (S + 1,), the tokens before each sentence, then all tokens.
    """
    counts = [np.diff(block.document_starts) for block in blocks]
    numbers = [
        block.first_document + np.arange(len(of_block))
        for block, of_block in zip(blocks, counts, strict=True)
    ]
    lengths = np.concatenate([block.sentence_lengths for block in blocks])
    document_starts = np.append(0, np.cumsum(np.concatenate(counts)))
    tokens_before = np.zeros(len(lengths) + 1, "int64")
    tokens_before[1:] = lengths
    tokens_before[document_starts[1:]] += num_separators
    np.cumsum(tokens_before, out=tokens_before)
    return np.concatenate(numbers), document_starts, tokens_before
