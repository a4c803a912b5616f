"""Rows of a context and a pair, beside the reader of XLNet, transcribed for one stream."""

import pickle

import numpy as np
import pytest
from scipy import stats
from small_texts import VOCABULARY, make_reviews

import keras_bert_suite as kbs
from keras_bert_suite.corpus import ReversedCorpus, hold_out, token_corpus
from keras_bert_suite.corpus.token_corpus import TokenCorpus
from keras_bert_suite.pretraining import ContextLaneBatches, MixedBatches, PretrainingBatches
from keras_bert_suite.pretraining.instance_planner import InstancePlanner

CLS, SEP = 2, 3
L, R = 24, 10


class LastSummary(kbs.WordPieceTokenizer):
    """Rows as XLNet's: padding, then `A <sep> B <sep> <cls>`."""

    summary_place = "last"
    summary_segment = 2
    padding_side = "left"


TOKENIZER = LastSummary(VOCABULARY)


def make_corpus(num_documents=40, longest=9):
    """Documents of numbered tokens from 100 on, no two of which are equal."""
    rng = np.random.default_rng(0)
    sizes = [rng.integers(1, longest, rng.integers(1, 12)) for _ in range(num_documents)]
    numbers = iter(range(100, 1 << 30))
    return TokenCorpus.from_documents(
        [[[next(numbers) for _ in range(size)] for size in document] for document in sizes]
    )


def make_stream(corpus):
    """All tokens, with a separator (0) behind each document, and the sentence ids, 0 or 1."""
    stream, sentences = [], []
    for document in range(corpus.num_documents):
        sizes = corpus.sentences(document).tolist()
        stream += [*corpus.tokens(document).tolist(), 0]
        sizes[-1] += 1
        for size in sizes:
            flipped = 1 - sentences[-1] if sentences else 0
            sentences += [flipped] * size
    return stream, sentences


def split_a_and_b(sentences, begin, total, chance, choice, place):
    """`_split_a_and_b`: the ranges of A and B. The last three are draws.

    The original keeps a token more after each range, for its targets, and leaves out rows without.
    """
    size = len(sentences)
    cuts, end = [], begin + 1
    while end < size:
        if sentences[end] != sentences[end - 1]:
            if end - begin >= total:
                break
            cuts.append(end)
        end += 1
    if not cuts or chance < 0.5:
        a_end = cuts[int(choice * len(cuts))] if cuts else end
        length = max(1, total - (a_end - begin))
        b_begin = int(next(place) * (size - length + 1))
        b_end = b_begin + length
        while b_begin > 0 and sentences[b_begin - 1] == sentences[b_begin]:
            b_begin -= 1
        while b_end < size and sentences[b_end - 1] == sentences[b_end]:
            b_end += 1
    else:
        a_end = cuts[int(choice * len(cuts))]
        b_begin, b_end = a_end, end
    while a_end - begin + b_end - b_begin > total:
        if a_end - begin > b_end - b_begin:
            a_end -= 1
        else:
            b_end -= 1
    return (begin, a_end), (b_begin, b_end)


def make_planner(corpus, **arguments):
    arguments = {"short_seq_prob": 0.0, "context_length": R, **arguments}
    return InstancePlanner(corpus, L, "context_pairs", **arguments)


@pytest.mark.parametrize("longest", [3, 9, 40])
def test_rows_follow_the_rule_of_the_original(longest):
    corpus = make_corpus(longest=longest)
    stream, sentences = make_stream(corpus)
    for epoch in range(3):
        plan = make_planner(corpus, seed=5).plan(epoch)
        rng = np.random.default_rng([5, epoch, 1])
        first = int(rng.integers(R))
        begins = range(first, len(stream) - (L - 3) + 1, R)
        chances, choices, drawn = (rng.random(len(begins)) for _ in range(3))
        places = iter(drawn)  # Of the rows whose B is random, in their order.
        assert len(plan) == len(begins)
        for row, begin in enumerate(begins):
            draws = chances[row], choices[row], places
            a, b = split_a_and_b(sentences, begin + R, L - R - 3, *draws)
            wanted = [(begin, begin + R), a, b]
            got = zip(plan.starts[row], plan.starts[row] + plan.lengths[row], strict=True)
            assert [(int(start), int(end)) for start, end in got] == wanted
    assert plan.labels is None
    assert (plan.starts.dtype, plan.lengths.dtype) == ("int64", "int32")


def test_an_epoch_begins_at_any_token_of_the_first_context():
    planner = make_planner(make_corpus(4), seed=1)
    firsts = [int(planner.plan(epoch).starts[0, 0]) for epoch in range(400)]
    assert stats.chisquare(np.bincount(firsts, minlength=R)).pvalue > 0.001


def make_batches(corpus, backward=False, batch_size=4, **arguments):
    targets = kbs.PermutationTargets(TOKENIZER, backward=backward, reuse_length=R, **arguments)
    return PretrainingBatches(
        corpus, targets, L, batch_size, mode="context_pairs", short_seq_prob=0.0, seed=2
    )


def make_small_corpus():
    ids = TOKENIZER.tokenize(make_reviews(150)[0])
    return TokenCorpus.from_documents([ids[i : i + 5] for i in range(0, len(ids), 5)])


def test_rows_have_the_form_of_the_original():
    """The context, A <sep> B <sep> <cls>, without padding; [SEP] between documents."""
    corpus = make_small_corpus()
    stream, _ = make_stream(corpus)
    text = [token or SEP for token in stream]
    pieces = {tuple(text[i : i + R]) for i in range(len(text))}
    batches, is_random = make_batches(corpus), []
    for i in range(len(batches)):
        x, y, weights = batches[i]
        assert x["padding_mask"].all() and set(y) == set(weights) == {"mlm"}
        assert not x["is_reversed"].any() and x["is_reversed"].shape == (4, 1)
        for ids, segments in zip(x["token_ids"].tolist(), x["segment_ids"].tolist(), strict=True):
            assert ids[-2:] == [SEP, CLS] and segments[-1] == 2
            assert segments == sorted(segments) and segments[:R] == [0] * R
            assert tuple(ids[:R]) in pieces
            end = segments.index(1) - 1
            assert ids[end] == SEP and R < end < L - 3
            joined = tuple(ids[:end])
            place = next(j for j in range(len(text)) if tuple(text[j : j + end]) == joined)
            behind = ids[end + 1 : -2]
            is_random.append(text[place + end : place + end + len(behind)] != behind)
        np.testing.assert_array_equal(weights["mlm"].sum(axis=1) >= 2, True)
    assert 0.3 < np.mean(is_random) < 0.7


def test_a_corpus_is_read_from_its_end(monkeypatch):
    monkeypatch.setattr(token_corpus, "SENTENCES_PER_BLOCK", 7)
    corpus = make_corpus(9)
    part, _ = hold_out(corpus, 0.3)
    for given in (corpus, part):
        turned = ReversedCorpus(given)
        documents = [given.tokens(i) for i in range(given.num_documents)]
        tokens = np.concatenate([turned.tokens(i) for i in range(turned.num_documents)])
        np.testing.assert_array_equal(tokens, np.concatenate(documents)[::-1])
        for i in range(turned.num_documents):
            lengths = given.sentences(given.num_documents - 1 - i)[::-1]
            np.testing.assert_array_equal(turned.sentences(i), lengths)
        read = [turned.read_block(block) for block in range(turned.num_blocks)]
        lengths = np.concatenate([block.sentence_lengths for block in read])
        np.testing.assert_array_equal(lengths[::-1], np.concatenate(
            [given.sentences(i) for i in range(given.num_documents)]
        ))  # fmt: skip
        assert turned.vocabulary is given.vocabulary


def test_half_of_a_batch_is_read_backward():
    corpus = make_small_corpus()
    stream, _ = make_stream(corpus)
    text = [token or SEP for token in stream]
    backward = make_batches(ReversedCorpus(corpus), backward=True)
    batches = MixedBatches([make_batches(corpus), backward])
    x, _, _ = batches[0]
    assert x["is_reversed"].tolist() == [[0]] * 4 + [[1]] * 4
    contexts = {tuple(text[i : i + R]) for i in range(len(text))}
    assert all(tuple(ids) in contexts for ids in x["token_ids"][:4, :R].tolist())
    turned = [
        tuple(token or SEP for token in piece)
        for piece in zip(
            *(make_stream(ReversedCorpus(corpus))[0][i:] for i in range(R)), strict=False
        )
    ]
    assert all(tuple(ids) in {*turned} for ids in x["token_ids"][4:, :R].tolist())


def test_batches_are_a_function_of_their_index(monkeypatch):
    monkeypatch.setattr(token_corpus, "SENTENCES_PER_BLOCK", 40)
    corpus = make_small_corpus()

    def make():
        return MixedBatches([make_batches(corpus), make_batches(ReversedCorpus(corpus), True)])

    batches = make()
    expected = [batches[i] for i in range(2 * len(batches))]
    copy = pickle.loads(pickle.dumps(make()))
    for i in reversed(range(len(expected))):
        np.testing.assert_equal(copy[i], expected[i])
    assert (expected[0][0]["token_ids"] != expected[len(batches)][0]["token_ids"]).any()


def make_lanes(corpus, batch_size=3, backward=False, **arguments):
    targets = kbs.PermutationTargets(
        TOKENIZER, backward=backward, **{"reuse_length": R, **arguments}
    )
    return ContextLaneBatches(corpus, targets, L, batch_size, seed=5)


def test_a_slice_has_these_batches():
    lanes = make_lanes(make_small_corpus())
    for found, wanted in zip(lanes[1:3], (lanes[1], lanes[2]), strict=True):
        np.testing.assert_equal(found, wanted)


@pytest.mark.parametrize("longest", [1, 5])
def test_lanes_are_those_of_the_original(longest):
    """`batchify` and the loop of `create_tfrecords`, around a ring that is cut anywhere."""
    ids = TOKENIZER.tokenize(make_reviews(150)[0])
    corpus = TokenCorpus.from_documents([ids[i : i + longest] for i in range(0, 150, longest)])
    stream, flips = make_stream(corpus)
    ring = [token or SEP for token in stream]
    # Sentences by their number, so that the last one differs from the first one, too.
    numbers = np.cumsum(np.append(0, np.abs(np.diff(flips)))).tolist()
    lanes, rows = make_lanes(corpus), 3
    size = len(ring) // rows
    assert len(lanes) == len(range(0, size - (L - 3) + 1, R))
    offsets = set()
    for epoch in range(3):
        offset = int(np.random.default_rng([5, epoch]).integers(len(ring)))
        offsets.add(offset)
        texts = np.roll(ring, -offset)[: rows * size].reshape(rows, size)
        sentences = np.roll(numbers, -offset)[: rows * size].reshape(rows, size)
        for batch in range(len(lanes)):
            x, y, _ = lanes[epoch * len(lanes) + batch]
            assert x["continues"].tolist() == [[int(batch > 0)]] * rows
            assert x["padding_mask"].all() and set(y) == {"mlm"}
            rng = np.random.default_rng([5, epoch, batch + 1])
            chances, choices, places = rng.random(rows), rng.random(rows), iter(rng.random(rows))
            for row, text in enumerate(texts.tolist()):
                draws = chances[row], choices[row], places
                begin = batch * R
                a, b = split_a_and_b(sentences[row].tolist(), begin + R, L - R - 3, *draws)
                pair = [*text[slice(*a)], SEP, *text[slice(*b)], SEP, CLS]
                assert x["token_ids"][row].tolist() == [*text[begin : begin + R], *pair]
                split = R + a[1] - a[0] + 1
                assert x["segment_ids"][row].tolist() == [0] * split + [1] * (L - split - 1) + [2]
    assert len(offsets) > 1


def test_lanes_are_a_function_of_their_index():
    corpus = make_small_corpus()

    def make(**arguments):
        parts = (corpus, False), (ReversedCorpus(corpus), True)
        return MixedBatches([make_lanes(part, 2, turned, **arguments) for part, turned in parts])

    lanes = make()
    expected = [lanes[i] for i in range(len(lanes) + 2)]
    assert expected[1][0]["is_reversed"].tolist() == [[0]] * 2 + [[1]] * 2
    copy = pickle.loads(pickle.dumps(make()))
    for i in reversed(range(len(expected))):
        np.testing.assert_equal(copy[i], expected[i])
    assert (expected[0][0]["token_ids"] != expected[-2][0]["token_ids"]).any()
    static = make(dynamic=False)
    np.testing.assert_equal(static[len(static) + 1], static[1])


@pytest.mark.parametrize(
    ("masker", "arguments", "message"),
    [
        (kbs.TokenMasker(TOKENIZER), {}, "begins with a context, and this TokenMasker has none"),
        (kbs.PermutationTargets(TOKENIZER, reuse_length=20), {}, "at least 25, got 24"),
        (kbs.PermutationTargets(TOKENIZER), {"batch_size": 99}, "makes lanes of .* shorter than"),
        (kbs.PermutationTargets(TOKENIZER), {"batch_size": 0}, "at least 1, got 0"),
    ],
    ids=["masker", "reuse_length", "lanes", "batch_size"],
)
def test_bad_lanes(masker, arguments, message):
    with pytest.raises(ValueError, match=message):
        ContextLaneBatches(make_small_corpus(), masker, L, **{"batch_size": 2, **arguments})


@pytest.mark.parametrize(
    ("masker", "arguments", "message"),
    [
        (kbs.TokenMasker(TOKENIZER), {}, "rows that begin with a context, and this TokenMasker"),
        (kbs.PermutationTargets(TOKENIZER, reuse_length=0), {}, "with a reuse_length over 0"),
        (kbs.PermutationTargets(TOKENIZER), {"short_seq_prob": 0.1}, "got short_seq_prob=0.1"),
        (kbs.PermutationTargets(TOKENIZER, reuse_length=20), {}, "at least 25, got 24"),
        (kbs.PermutationTargets(TOKENIZER), {"batch_size": 999}, "is more than the .* instances"),
    ],
    ids=["masker", "reuse_length", "short_seq_prob", "sequence_length", "batch_size"],
)
def test_bad_arguments(masker, arguments, message):
    arguments = {"batch_size": 2, "short_seq_prob": 0.0, "mode": "context_pairs", **arguments}
    with pytest.raises(ValueError, match=message):
        PretrainingBatches(make_small_corpus(), masker, L, **arguments)
