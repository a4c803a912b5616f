"""A corpus is the same, and has the same blocks, whatever its shards are."""

import numpy as np
import pytest
from corpus.small_corpus import DividedCorpus, check_same_corpus

from keras_bert_suite.corpus import token_corpus
from keras_bert_suite.corpus.held_out import hold_out
from keras_bert_suite.corpus.token_corpus import TokenCorpus

ENDS = [[40], [1, 2, 40], [0, 13, 13, 39, 40, 40], list(range(1, 41))]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(token_corpus, "SENTENCES_PER_BLOCK", 10)


def make_corpus():
    """40 documents of 1 to 34 sentences, so that some blocks have no document."""
    rng = np.random.default_rng(0)
    counts = np.append(rng.integers(1, 5, 37), [34, 1, 21])
    rows = [[[d] * length for length in rng.integers(1, 9, n)] for d, n in enumerate(counts)]
    return TokenCorpus.from_documents(rows)


@pytest.mark.parametrize("ends", ENDS, ids=len)
def test_blocks_have_the_documents_that_begin_in_them(ends):
    whole = make_corpus()
    corpus = DividedCorpus(whole, ends)
    check_same_corpus(corpus, whole)
    assert corpus.num_blocks == len(corpus.block_sentences) == -(-whole.num_sentences // 10)
    assert corpus.block_sentences.sum() == whole.num_sentences
    sizes = []
    for number in range(corpus.num_blocks):
        block = corpus.read_block(number)
        wanted = np.flatnonzero(whole.document_starts[:-1] // 10 == number)
        sizes.append(len(wanted))
        assert np.diff(block.document_starts).tolist() == [len(whole.sentences(d)) for d in wanted]
        lengths = [whole.sentences(d) for d in wanted]
        assert block.sentence_lengths.tolist() == np.concatenate([[], *lengths]).tolist()
        assert not sizes[-1] or block.first_document == wanted[0]
    assert sum(sizes) == 40 and 0 in sizes
    # The sentences of a block without documents count for the block before it that has some.
    owners = np.maximum.accumulate(np.where(sizes, np.arange(len(sizes)), 0))
    reached = np.append(np.full(len(sizes) - 1, 10), whole.num_sentences % 10 or 10)
    counted = np.bincount(owners, reached, minlength=len(sizes))
    assert corpus.block_sentences.tolist() == counted.tolist()


@pytest.mark.parametrize("ends", ENDS, ids=len)
def test_parts_do_not_depend_on_shards(ends):
    for part, wanted in zip(
        hold_out(DividedCorpus(make_corpus(), ends), 0.4, seed=1),
        hold_out(make_corpus(), 0.4, seed=1),
        strict=True,
    ):
        check_same_corpus(part, wanted)
        assert part.num_blocks == wanted.num_blocks > 2
        for number in range(part.num_blocks):
            block, other = part.read_block(number), wanted.read_block(number)
            assert block.first_document == other.first_document
            assert block.document_starts.tolist() == other.document_starts.tolist()
            assert block.sentence_lengths.tolist() == other.sentence_lengths.tolist()


def test_a_part_is_divided_again():
    training, _ = hold_out(DividedCorpus(make_corpus(), [11, 40]), 0.3)
    parts = hold_out(training, 0.5, seed=7)
    found = [int(part.tokens(d)[0]) for part in parts for d in range(part.num_documents)]
    assert sorted(found) == [int(training.tokens(d)[0]) for d in range(training.num_documents)]
