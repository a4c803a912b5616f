import pickle
import random

import numpy as np
import pytest
from scipy import stats

from keras_bert_suite.corpus import token_corpus
from keras_bert_suite.corpus.token_corpus import TokenCorpus
from keras_bert_suite.pretraining.instance_planner import MODES, InstancePlanner

PAIRS, SOP, RELATIONS, FULL, DOC = MODES


def make_corpus(*documents):
    """A corpus of sentences of the given lengths, its tokens numbered from 0."""
    numbers = iter(range(1 << 30))
    return TokenCorpus.from_documents(
        [[[next(numbers) for _ in range(length)] for length in document] for document in documents]
    )


def random_corpus(num_documents=60, longest_sentence=12, seed=0):
    rng = random.Random(seed)
    return make_corpus(
        *(
            [rng.randint(1, longest_sentence) for _ in range(rng.randint(1, 25))]
            for _ in range(num_documents)
        )
    )


def spans(plan):
    """list of rows, each a list of (first token, token after the last)."""
    return [
        [(s, s + n) for s, n in zip(starts, lengths, strict=True)]
        for starts, lengths in zip(plan.starts.tolist(), plan.lengths.tolist(), strict=True)
    ]


def follow_google(corpus, sequence_length, short_seq_prob, rng, mode=PAIRS):
    """Yields (A, B, label) by Google's rule, a sentence and a token at a time, on lists.

    Source: `create_instances_from_document` of BERT's `create_pretraining_data.py`; for SOP that of
    ALBERT's, with `random_next_sentence=False`.
    """
    documents, token = [], 0
    for number in range(corpus.num_documents):
        documents.append([])
        for length in corpus.sentences(number).tolist():
            documents[-1].append(list(range(token, token + length)))
            token += length
    limit = sequence_length - 3
    for document in documents:
        target = rng.randint(2, limit) if rng.random() < short_seq_prob else limit
        todo = list(document)
        while todo:
            gathered = []
            while todo and sum(map(len, gathered)) < target:
                gathered.append(todo.pop(0))
            cut = rng.randint(1, len(gathered) - 1) if len(gathered) > 1 else 1
            a, rest = sum(gathered[:cut], []), gathered[cut:]
            is_random = not rest or (mode == PAIRS and rng.random() < 0.5)
            label = int(is_random)
            if is_random:
                todo = rest + todo
                other = rng.choice([d for d in documents if d is not document])
                other = other[rng.randrange(len(other)) :]
                b = list(other[0])
                for sentence in other[1:]:
                    if len(b) >= target - len(a):
                        break
                    b = b + sentence
            else:
                b = sum(rest, [])
                if mode == SOP and rng.random() < 0.5:
                    a, b, label = b, a, 1
            while len(a) + len(b) > limit:
                longer = a if len(a) > len(b) else b
                longer.pop(0 if rng.random() < 0.5 else -1)
            yield (a[0], a[-1] + 1), (b[0], b[-1] + 1), label


def assert_same_distribution(ours, theirs, bins):
    counts = np.array([np.histogram(values, bins)[0] for values in (ours, theirs)])
    counts = counts[:, counts.sum(axis=0) > 20]
    assert stats.chi2_contingency(counts).pvalue > 0.001


@pytest.mark.parametrize(
    ("mode", "short_seq_prob"), [(PAIRS, 0.0), (PAIRS, 0.1), (PAIRS, 1.0), (SOP, 0.1)]
)
def test_pairs_are_distributed_as_googles(mode, short_seq_prob):
    corpus = random_corpus()
    planner = InstancePlanner(corpus, 35, mode, short_seq_prob)
    plans = [planner.plan(epoch) for epoch in range(100)]
    rng = random.Random(1)
    theirs = [list(follow_google(corpus, 35, short_seq_prob, rng, mode)) for _ in range(100)]
    counts = [len(plan) for plan in plans], [len(rows) for rows in theirs]
    assert stats.ks_2samp(*counts).pvalue > 0.001

    starts, lengths, labels = (
        np.concatenate([getattr(plan, name) for plan in plans])
        for name in ("starts", "lengths", "labels")
    )
    rows = np.array([(*a, *b, label) for rows in theirs for a, b, label in rows])
    their_lengths = rows[:, [1, 3]] - rows[:, [0, 2]]
    every = np.arange(34)
    assert_same_distribution(labels, rows[:, 4], [0, 0.5, 1])
    for label in 0, 1:
        ours, google = lengths[labels == label], their_lengths[rows[:, 4] == label]
        assert_same_distribution(ours[:, 0], google[:, 0], every)
        assert_same_distribution(ours[:, 1], google[:, 1], every)
        assert_same_distribution(ours.sum(axis=1), google.sum(axis=1), every)
    # Where in the corpus the segments begin: in which sentences, documents, and how far in.
    places = np.linspace(0, corpus.sentence_lengths.sum(), 40)
    assert_same_distribution(starts[:, 0], rows[:, 0], places)
    assert_same_distribution(starts[labels == 1, 1], rows[rows[:, 4] == 1, 2], places)


def test_documents_of_one_sentence_leave_nothing_to_chance():
    plan = InstancePlanner(make_corpus([2], [1]), 8).plan(0)
    assert spans(plan) == [[(0, 2), (2, 3)], [(2, 3), (0, 2)]]
    assert plan.labels.tolist() == [1, 1]
    assert (plan.starts.dtype, plan.lengths.dtype, plan.labels.dtype) == ("int64", "int32", "int8")


@pytest.mark.parametrize("mode", [PAIRS, SOP])
def test_segments_lie_in_documents_and_fit(mode):
    corpus = random_corpus(longest_sentence=40)
    document = np.repeat(
        np.arange(corpus.num_documents), [corpus.sentences(d).sum() for d in range(60)]
    )
    for epoch in range(20):
        plan = InstancePlanner(corpus, 24, mode).plan(epoch)
        assert plan.lengths.min() >= 1 and plan.lengths.sum(axis=1).max() <= 21
        firsts, lasts = document[plan.starts], document[plan.starts + plan.lengths - 1]
        np.testing.assert_array_equal(firsts, lasts)
        same = firsts[:, 0] == firsts[:, 1]
        if mode == PAIRS:
            np.testing.assert_array_equal(same, plan.labels == 0)
        assert same[plan.labels == 0].all() and len(set(plan.labels)) == 2


def test_sentences_that_were_not_used_are_put_back():
    # Sentences of one token: nothing is truncated, so nothing may be missing or come twice.
    corpus = make_corpus(*([1] * 50 for _ in range(20)))
    plan = InstancePlanner(corpus, 13).plan(0)
    covered = []
    for (a, b), label in zip(spans(plan), plan.labels, strict=True):
        covered += [a] if label else [a, b]
    assert covered[0][0] == 0 and covered[-1][1] == 1000
    assert all(end == begin for (_, end), (begin, _) in zip(covered, covered[1:], strict=False))
    assert 0.4 < plan.labels.mean() < 0.7


def test_tokens_are_cut_from_either_end_by_chance():
    corpus = make_corpus(*([9, 12] for _ in range(2000)))
    plan = InstancePlanner(corpus, 13, SOP, short_seq_prob=0).plan(0)
    assert plan.lengths.tolist() == [[5, 5]] * 2000
    swapped = plan.labels == 1
    np.testing.assert_array_equal(plan.starts[:, 0] > plan.starts[:, 1], swapped)
    assert stats.binomtest(int(swapped.sum()), 2000).pvalue > 0.001
    starts = np.sort(plan.starts, axis=1) - 21 * np.arange(2000)[:, None] - [0, 9]
    for front, cut in zip(starts.T, (4, 7), strict=True):
        expected = 2000 * stats.binom.pmf(range(cut + 1), cut, 0.5)
        assert stats.chisquare(np.bincount(front, minlength=cut + 1), expected).pvalue > 0.001


def test_relations_are_drawn_in_thirds():
    # A document of two sentences makes a pair. After a random text it makes a second pair, whose
    # only sentence gets a random text.
    corpus = make_corpus(*([3, 4] for _ in range(3000)))
    plan = InstancePlanner(corpus, 10, RELATIONS, short_seq_prob=0).plan(0)
    counts = np.bincount(plan.labels)
    assert counts[1] == 2 * (3000 - counts[0] - counts[2])
    assert stats.chisquare([counts[0], counts[1] // 2, counts[2]]).pvalue > 0.001
    for (a, b), label in zip(spans(plan), plan.labels.tolist(), strict=True):
        if label == 0:
            assert a[1] == b[0]
        elif label == 2:
            assert b[1] == a[0]
        else:
            assert a[0] // 7 != b[0] // 7
    assert plan.labels.dtype == "int8"


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        # The second row has room for [SEP] and five tokens of the next document.
        (FULL, [(0, 7), (7, 14), (14, 22), (22, 30), (30, 34)]),
        (DOC, [(0, 7), (7, 9), (9, 14), (14, 22), (22, 30), (30, 33), (33, 34)]),
    ],
)
def test_rows_of_whole_sentences(mode, expected):
    corpus = make_corpus([3, 4, 2], [5], [19], [1])
    plan = InstancePlanner(corpus, 10, mode, short_seq_prob=0).plan(0)
    assert [row[0] for row in spans(plan)] == expected
    assert plan.labels is None


@pytest.mark.parametrize("mode", [FULL, DOC])
@pytest.mark.parametrize("short_seq_prob", [0, 0.5])
def test_rows_cover_the_corpus_and_fit(mode, short_seq_prob):
    corpus = random_corpus()
    ends = np.cumsum([corpus.sentences(d).sum() for d in range(corpus.num_documents)])
    sentence_ends = set(np.cumsum(corpus.sentence_lengths).tolist())
    rows = [row[0] for row in spans(InstancePlanner(corpus, 32, mode, short_seq_prob).plan(0))]
    assert rows[0][0] == 0 and rows[-1][1] == ends[-1]
    assert all(end == begin for (_, end), (begin, _) in zip(rows, rows[1:], strict=False))
    assert {end for _, end in rows} <= sentence_ends
    crossed = [np.searchsorted(ends, end) - np.searchsorted(ends, a, "right") for a, end in rows]
    sizes = [end - begin + c for (begin, end), c in zip(rows, crossed, strict=True)]
    assert max(sizes) <= 30 and (max(crossed) > 0) == (mode == FULL)
    if not short_seq_prob and mode == FULL:
        # As many as fit: no row had room for the sentence that begins the next one.
        all_ends = sorted(sentence_ends)
        for (_, end), size in zip(rows[:-1], sizes, strict=False):
            longer = all_ends[all_ends.index(end) + 1] - end + (end in ends)
            assert size + longer > 30


@pytest.mark.parametrize("mode", MODES)
def test_a_plan_is_a_function_of_seed_and_epoch(mode, monkeypatch):
    def same(a, b):
        return all(np.array_equal(a.__dict__[name], b.__dict__[name]) for name in a.__dict__)

    monkeypatch.setattr(token_corpus, "SENTENCES_PER_BLOCK", 100)
    corpus = random_corpus()
    planner = InstancePlanner(corpus, 32, mode, seed=5)
    third = planner.plan(3)
    copy = pickle.loads(pickle.dumps(planner))
    copy.plan(0)
    assert same(copy.plan(3), third)
    assert not same(planner.plan(2), third)
    assert not same(InstancePlanner(corpus, 32, mode, seed=6).plan(3), third)


def test_blocks_leave_no_document_out_and_divide_none(monkeypatch):
    monkeypatch.setattr(token_corpus, "SENTENCES_PER_BLOCK", 4)
    corpus = make_corpus([1] * 30, [1], [1] * 9)
    rows = spans(InstancePlanner(corpus, 52, DOC, short_seq_prob=0).plan(0))
    assert rows == [[(0, 30)], [(30, 31)], [(31, 40)]]


def test_blocks_are_planned_together_or_alone(monkeypatch):
    """The blocks that are planned together exchange random second texts, and nothing else."""
    monkeypatch.setattr(token_corpus, "SENTENCES_PER_BLOCK", 100)
    planner = InstancePlanner(random_corpus(longest_sentence=2), 32)

    def find_documents(plan):
        """The documents of the segments, as they are numbered in the corpus."""
        places = np.searchsorted(plan.document_begins, plan.starts, side="right") - 1
        return plan.documents[places]

    alone = {block: planner.plan(2, [block]) for block in (1, 3, 4)}
    together = planner.plan(2, list(alone))
    documents = find_documents(together)
    wanted = np.concatenate([find_documents(plan) for plan in alone.values()])
    labels = np.concatenate([plan.labels for plan in alone.values()])
    np.testing.assert_array_equal(together.labels, labels)
    np.testing.assert_array_equal(documents[:, 0], wanted[:, 0])
    np.testing.assert_array_equal(documents[labels == 0], wanted[labels == 0])
    # A random second text is of another document, which may be of another block.
    assert (documents[labels == 1, 0] != documents[labels == 1, 1]).all()
    blocks = np.array([document in alone[1].documents for document in range(60)])[documents]
    assert (blocks[:, 0] != blocks[:, 1]).any()
    assert [planner.count(block) for block in alone] == [
        len(planner.plan(0, [block])) for block in alone
    ]


@pytest.mark.parametrize("mode", MODES)
def test_a_block_may_have_no_document(mode, monkeypatch):
    monkeypatch.setattr(token_corpus, "SENTENCES_PER_BLOCK", 4)
    planner = InstancePlanner(make_corpus([1] * 10, [1] * 3), 32, mode)
    assert planner.count(1) == len(planner.plan(0, [1])) == 0
    assert len(planner.plan(0, [0, 1])) == len(planner.plan(0, [0])) > 0


@pytest.mark.parametrize(("blocks", "own", "other"), [([0], 0, 1), ([2], 1, 2), ([4, 5], 2, 0)])
def test_a_document_that_is_planned_alone_gets_random_texts_of_the_next(
    blocks, own, other, monkeypatch
):
    monkeypatch.setattr(token_corpus, "SENTENCES_PER_BLOCK", 4)
    # Block 5 is within the last document.
    corpus = make_corpus([1] * 10, [1] * 9, [1] * 8)
    planner, labels = InstancePlanner(corpus, 6), []
    for epoch in range(4):
        plan = planner.plan(epoch, blocks)
        documents = plan.documents[
            np.searchsorted(plan.document_begins, plan.starts, side="right") - 1
        ]
        assert (documents[:, 0] == own).all()
        np.testing.assert_array_equal(documents[:, 1], np.where(plan.labels == 1, other, own))
        labels += plan.labels.tolist()
    assert {0, 1} == {*labels}


def test_a_corpus_of_one_document_is_its_own_random_next():
    plan = InstancePlanner(make_corpus([4]), 16).plan(0)
    assert spans(plan) == [[(0, 4), (0, 4)]] and plan.labels.tolist() == [1]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"mode": "nsp"}, "mode must be one of pairs, sop, .*got 'nsp'"),
        ({"sequence_length": 4}, "sequence_length must be an integer of at least 5, got 4"),
        ({"short_seq_prob": 1.5}, "short_seq_prob must be from 0 to 1, got 1.5"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
        ({"corpus": TokenCorpus.from_documents([[[]], []])}, "no document with a sentence"),
    ],
)
def test_bad_arguments(arguments, error):
    with pytest.raises(ValueError, match=error):
        InstancePlanner(**{"corpus": make_corpus([2]), "sequence_length": 8, **arguments})
