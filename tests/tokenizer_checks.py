"""Checks of both engines of a tokenizer."""

import itertools
import random

import pytest

from keras_bert_suite.tokenizers.unicode_rules import parse_ranges

#: A short test takes every so manieth text; the long one takes all of them.
SAMPLES = [
    pytest.param(37, id="sample"),
    pytest.param(1, id="all", marks=pytest.mark.long("texts")),
]


def in_graph(tokenizer, texts):
    tf = pytest.importorskip("tensorflow")
    return [part.to_list() for part in tokenizer.tokenize_with_offsets(tf.constant(texts))]


def check_engines(tokenizer, texts, expected):
    """Both engines give the ids, and agree about offsets and word starts."""
    eager = tokenizer.tokenize(texts)
    assert eager == expected
    flat, lengths = tokenizer.tokenize_flat(texts)
    assert flat.tolist() == list(itertools.chain.from_iterable(eager))
    assert lengths.tolist() == [len(row) for row in eager]
    rows = tokenizer.tokenize_with_offsets(texts)
    for text, row, *graph_row in zip(texts, rows, *in_graph(tokenizer, texts), strict=True):
        ids, offsets, word_starts = row
        bytes_before = [0, *itertools.accumulate(len(c.encode()) for c in text)]
        starts = [bytes_before[start] for start, _ in offsets]
        ends = [bytes_before[end] for _, end in offsets]
        assert [ids, starts, ends, word_starts] == graph_row
    assert [row[0] for row in rows] == expected


def list_edges(*tables):
    """set of int, the code points at the ends of the ranges of tables, and beside them."""
    edges = {code for table in tables for r in parse_ranges(table) for code in r}
    codes = {code + step for code in edges for step in (-1, 0, 1)}
    return {code for code in codes if 0 <= code < 0x110000 and not 0xD800 <= code < 0xE000}


def random_texts(number, units, seed=0, batch_size=5000):
    """Batches of texts of 0 to 40 random units, `number` texts in all."""
    rng = random.Random(seed)
    for _ in range(number // batch_size):
        yield ["".join(rng.choices(units, k=rng.randrange(40))) for _ in range(batch_size)]
