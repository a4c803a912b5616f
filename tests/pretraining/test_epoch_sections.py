"""Sections share the blocks and the batches of an epoch among them."""

import numpy as np
import pytest

from keras_bert_suite.pretraining import epoch_sections
from keras_bert_suite.pretraining.epoch_sections import (
    EpochSections,
    count_instances,
    divide_blocks,
)


@pytest.mark.parametrize(("num_blocks", "num_sections"), [(1, 1), (7, 1), (7, 3), (64, 8)])
def test_an_epoch_visits_each_block_once(num_blocks, num_sections):
    for epoch in range(3):
        sections = divide_blocks(num_blocks, num_sections, 5, epoch)
        assert len(sections) == num_sections
        assert sorted(np.concatenate(sections)) == list(range(num_blocks))
        assert all((np.diff(blocks) > 0).all() for blocks in sections)
        for blocks in sections:
            parts = blocks // num_sections
            assert parts[: num_blocks // num_sections].tolist() == [
                *range(num_blocks // num_sections)
            ]
            assert len(set(parts)) == len(parts)


def test_the_order_of_blocks_is_drawn_for_each_seed_and_epoch():
    divisions = [
        tuple(map(tuple, divide_blocks(40, 8, seed, epoch))) for seed in (0, 1) for epoch in (0, 1)
    ]
    assert len(set(divisions)) == 4
    # Blocks of two parts may meet. In 400 epochs of 8 sections they meet 50 times.
    met = 0
    for epoch in range(400):
        met += any({3, 12} <= {*blocks.tolist()} for blocks in divide_blocks(40, 8, 0, epoch))
    assert 25 < met < 80


@pytest.mark.parametrize("batch_size", [1, 7, 300])
def test_batches_are_shared_in_proportion_to_instances(batch_size):
    counts = np.random.default_rng(0).integers(0, 100, 20)
    sections = EpochSections(counts, 6, batch_size, seed=3)
    assert sections.num_batches == counts.sum() // batch_size
    for epoch in (0, 4, 0):
        found = [sections.locate(epoch, batch) for batch in range(sections.num_batches)]
        for number, blocks in enumerate(divide_blocks(20, 6, 3, epoch)):
            of_section = [(batch, size) for section, batch, size in found if section == number]
            assert of_section == [(batch, len(of_section)) for batch in range(len(of_section))]
            assert abs(len(of_section) - counts[blocks].sum() / batch_size) < 1


class Counter:
    """A planner whose block k has 10 k + 5 instances, and that remembers the blocks."""

    def __init__(self):
        self.counted = []

    def count(self, block):
        self.counted.append(block)
        return 10 * block + 5


def test_some_blocks_of_a_large_corpus_are_counted(monkeypatch):
    monkeypatch.setattr(epoch_sections, "BLOCKS_COUNTED", 5)
    sentences = np.full(5, 1000)
    assert count_instances(Counter(), sentences).tolist() == [5, 15, 25, 35, 45]
    planner, sentences = Counter(), np.append(np.full(80, 1000), 400)
    counts = count_instances(planner, sentences)
    assert planner.counted == [0, 20, 40, 60, 80] and counts.dtype == "int64"
    # The last block has the share of its sentences, so blocks before it get a share like its own.
    assert counts[:61].tolist() == [10 * block + 5 for block in range(61)]
    assert counts[80] == 805


def test_blocks_without_documents_are_not_counted(monkeypatch):
    monkeypatch.setattr(epoch_sections, "BLOCKS_COUNTED", 3)
    planner, sentences = Counter(), np.array([3000, 0, 0, 1000, 0, 1000, 1000, 0])
    assert count_instances(planner, sentences).tolist() == [5, 0, 0, 35, 0, 55, 65, 0]
    assert planner.counted == [0, 3, 6]
