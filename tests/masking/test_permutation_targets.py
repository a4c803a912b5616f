"""`PermutationTargets`, beside XLNet's data code, transcribed for one row.

The transcriptions get the same random numbers, where the original calls a generator.
"""

import pickle

import keras
import numpy as np
import pytest
from scipy import stats
from small_texts import VOCABULARY, make_reviews

import keras_bert_suite as kbs
from keras_bert_suite.masking.permutations import choose_spaced_spans, order_blocks, rank_part
from keras_bert_suite.masking.token_replacement import draw_uniforms

CLS, SEP = 2, 3


@keras.saving.register_keras_serializable(package="permutation_tests")
class LastSummary(kbs.WordPieceTokenizer):
    """Rows as XLNet's: padding, then `A <sep> B <sep> <cls>`."""

    summary_place = "last"
    summary_segment = 2
    padding_side = "left"


TOKENIZER = LastSummary(VOCABULARY)
ARRAYS = ("query_ranks", "key_ranks", "mask_positions", "mask_ids", "mask_weights")


class Draws:
    """The numbers of a row in [0, 1), in the place of a generator: (L, 3)."""

    def __init__(self, numbers):
        self._spans, self.keys = iter(numbers[:, :2].tolist()), numbers[:, 2]

    def draw_span(self, count_context, most):
        """The n and the left context of the next span. n is at most `most`."""
        gram, place = next(self._spans)
        shares = 1 / np.arange(1, 6)
        shares /= shares.sum()
        n = min(1 + int((gram >= np.cumsum(shares)).sum()), most)
        return n, int(place * count_context(n))

    def order(self):
        return np.argsort(self.keys)


class Generated:
    """The same numbers from a generator of NumPy, as the original draws them."""

    def __init__(self, rng, length):
        self._rng, self._length = rng, length

    def draw_span(self, count_context, most):
        shares = 1 / np.arange(1, 6)
        n = min(int(self._rng.choice(np.arange(1, 6), p=shares / shares.sum())), most)
        return n, int(self._rng.choice(count_context(n)))

    def order(self):
        while True:
            yield self._rng.integers(self._length)


def sample_mask(starts, goal, draws, unit="piece", alpha=6, beta=1):
    """`_sample_mask`. It counts pieces; with "word" its loop looks at the end of the n-gram.

    Then the last span of a part may be too long. It is cut to the whole words that fit, and whole
    words fill the rest.
    """
    size = len(starts)
    mask = [False] * size
    current = 0

    def count_context(n):
        return n * alpha // beta

    while current < size and sum(mask) < goal:
        n, left = draws.draw_span(count_context, goal - sum(mask))
        begin = current + left
        while begin < size and not starts[begin]:
            begin += 1
        if begin >= size:
            break
        end, grams, ends = begin + 1, 1, []
        while end < size:
            if unit == "piece" or starts[end]:
                ends.append(end)
                grams += 1
                if grams > n:
                    break
            end += 1
        if end >= size:
            break
        fitting = [end for end in ends if end - begin <= goal - sum(mask)]
        if not fitting:
            break
        mask[begin : fitting[-1]] = [True] * (fitting[-1] - begin)
        current = fitting[-1] + count_context(n) - left
    for place in draws.order():
        if sum(mask) >= goal:
            break
        end = place + 1
        if unit == "word":
            if place and not starts[place]:
                continue
            while end < size and not starts[end]:
                end += 1
        if not any(mask[place:end]) and sum(mask) + end - place <= goal:
            mask[place:end] = [True] * (end - place)
    return np.array(mask)


def local_perm(is_functional, is_masked, perm_size, places):
    """`_local_perm`, with the shuffled places of a block: (perm_mask (L, L), is_target (L,))."""
    index = np.arange(len(is_masked)).reshape(-1, perm_size).T[places].T.ravel()
    non_mask = ~is_masked & ~is_functional
    rev_index = np.where(non_mask, -1, index)
    is_target = ~non_mask & ~is_functional
    self_rev_index = np.where(is_target, rev_index, rev_index + 1)
    return (self_rev_index[:, None] <= rev_index[None, :]) & ~non_mask[None, :], is_target


def join_halves(first, second):
    """`perm_mask` of a row: the first half sees nothing of the second, which sees all of it."""
    corner = np.ones((len(first), len(second)), bool), np.zeros((len(second), len(first)), bool)
    return np.block([[first, corner[0]], [corner[1], second]])


@pytest.mark.parametrize("unit", ["piece", "word"])
@pytest.mark.parametrize(("alpha", "beta"), [(6, 1), (5, 2)])
def test_spans_follow_the_rule_of_the_original(unit, alpha, beta):
    rng = np.random.default_rng(0)
    starts = rng.random((300, 64)) < rng.random((300, 1))
    inside = (np.arange(64) < rng.integers(1, 65, (300, 1)))[:, ::-1]
    goals = np.minimum(rng.integers(0, 30, 300), inside.sum(axis=1))
    draws = rng.random((300, 64, 3))
    begins = np.ones_like(starts) if unit == "piece" else starts.copy()
    starts &= inside
    first = inside.argmax(axis=1)
    begins[np.arange(300), first] = begins[:, 0] = True
    chosen = choose_spaced_spans(starts, begins, inside, goals, draws, 5, alpha, beta)
    assert not chosen[~inside].any()
    for row, begin in enumerate(first):
        # The original numbers the spans and the tokens of the part.
        numbers = np.concatenate([draws[row, : 64 - begin, :2], draws[row, begin:, 2:]], axis=1)
        wanted = sample_mask(starts[row, begin:], goals[row], Draws(numbers), unit, alpha, beta)
        np.testing.assert_array_equal(chosen[row, begin:], wanted)
    counts = chosen.sum(axis=1)
    assert (counts == goals).all() if unit == "piece" else (counts <= goals).all()


def find_runs(chosen):
    """The lengths of the runs of chosen tokens, of all rows."""
    steps = np.diff(np.pad(chosen.astype(int), ((0, 0), (1, 1))), axis=1)
    return np.nonzero(steps == -1)[1] - np.nonzero(steps == 1)[1]


def test_spans_are_distributed_as_those_of_the_original():
    """43 of 256 tokens, in runs of the same lengths, at the same places."""
    rng, rows, length = np.random.default_rng(1), 400, 256
    starts = np.random.default_rng(2).random((rows, length)) < 0.7
    begins = np.ones_like(starts)
    goals = np.full(rows, 43)
    draws = rng.random((rows, length, 3))
    ours = choose_spaced_spans(starts, begins, begins, goals, draws, 5, 6, 1)
    assert (ours.sum(axis=1) == 43).all()
    theirs = np.array([sample_mask(row, 43, Generated(rng, length)) for row in starts])
    for count in (find_runs, lambda chosen: np.nonzero(chosen)[1] // 8):
        values = [count(ours), count(theirs)]
        edges = np.arange(max(map(np.max, values)) + 2) - 0.5
        counts = np.array([np.histogram(of_one, edges)[0] for of_one in values])
        counts = counts[:, counts.sum(axis=0) > 20]
        assert stats.chi2_contingency(counts).pvalue > 0.001


def test_ranks_are_the_permutation_of_the_original():
    rng = np.random.default_rng(3)
    for _ in range(200):
        block, blocks = rng.integers(1, 9), rng.integers(1, 5)
        length = block * blocks
        keys = rng.random((1, length))
        is_masked, is_functional = (rng.random((1, length)) < p for p in (0.4, 0.2))
        order = order_blocks(keys, block)
        query, key = rank_part(order, is_masked, is_functional)
        places = stats.rankdata(keys[0, :block]).astype(int) - 1
        wanted, _ = local_perm(is_functional[0], is_masked[0], block, places)
        np.testing.assert_array_equal(query[0, :, None] <= key[0, None, :], wanted)


def make_rows(num_rows, length, seed=0):
    """Packed rows of two texts without padding, and their functional tokens."""
    rng = np.random.default_rng(seed)
    token_ids = rng.integers(5, len(VOCABULARY), (num_rows, length)).astype("int32")
    token_ids[:, -1], token_ids[:, -2] = CLS, SEP
    middle = rng.integers(length // 2, length - 3, num_rows)
    token_ids[np.arange(num_rows), middle] = SEP
    token_ids[np.arange(num_rows), rng.integers(0, length // 2, num_rows)] = SEP
    return {"token_ids": token_ids, "padding_mask": np.ones_like(token_ids)}


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize(
    ("length", "reused", "perm_size"), [(64, 32, 32), (64, 32, 8), (48, 16, 16), (32, 0, 32)]
)
def test_rows_are_masked_as_those_of_the_original(length, reused, perm_size, backward):
    """Spans, targets and `perm_mask` of both halves, from the same random numbers."""
    targets = kbs.PermutationTargets(
        TOKENIZER, reuse_length=reused, perm_size=perm_size, backward=backward, seed=4
    )
    inputs, row_ids = make_rows(50, length), np.arange(50) + 7
    made = targets(inputs, row_ids, epoch=2)
    num_predict = round(length / 6)
    goals = [num_predict - num_predict // 2, num_predict // 2] if reused else [0, num_predict]
    draws = draw_uniforms(4, 2, row_ids, length)
    continues = TOKENIZER.find_continuations()
    is_lost = 0
    for row, ids in enumerate(inputs["token_ids"]):
        masks, is_target = [], []
        for columns, goal in zip((slice(0, reused), slice(reused, length)), goals, strict=True):
            if columns.stop == 0:
                masks.append(np.zeros((0, 0), bool))
                continue
            part = ids[columns]
            is_functional = np.isin(part, (CLS, SEP))
            text = part[::-1] if backward else part
            starts = ~continues[text] | (np.roll(text, 1) == SEP)
            # A text that begins with a piece of a word: its word begins in the other half.
            whole = ids[::-1] if backward else ids
            before = length - columns.stop if backward else columns.start
            starts[0] = before == 0 or not continues[text[0]] or whole[before - 1] == SEP
            numbers = draws[row, columns]
            is_masked = sample_mask(starts, goal, Draws(numbers))
            assert is_masked.sum() == goal
            is_masked = is_masked[::-1] if backward else is_masked
            places = stats.rankdata(numbers[:perm_size, 3]).astype(int) - 1
            mask, targets_of_part = local_perm(is_functional, is_masked, perm_size, places)
            masks.append(mask)
            is_target.append(targets_of_part)
        seen = made["query_ranks"][row, :, None] > made["key_ranks"][row, None, :]
        np.testing.assert_array_equal(~seen, join_halves(*masks))
        wanted = np.flatnonzero(np.concatenate(is_target))
        count = len(wanted)
        is_lost += num_predict - count
        positions = made["mask_positions"][row]
        assert positions.tolist() == [*wanted, *[0] * (num_predict - count)]
        assert made["mask_weights"][row].tolist() == [1] * count + [0] * (num_predict - count)
        np.testing.assert_array_equal(made["mask_ids"][row, :count], ids[wanted])
    assert is_lost  # [SEP] and [CLS] were chosen, too.
    assert [made[name].dtype.name for name in ARRAYS] == ["int32"] * 4 + ["float32"]
    assert made["token_ids"] is inputs["token_ids"]


def test_a_row_of_512_tokens_has_85_slots():
    targets = kbs.PermutationTargets(TOKENIZER)
    made = targets(make_rows(4, 512), np.arange(4))
    assert made["mask_positions"].shape == (4, 85)
    in_first = ((made["mask_positions"] < 256) & (made["mask_weights"] > 0)).sum(axis=1)
    assert (in_first <= 43).all() and (in_first > 40).all()
    assert (made["mask_weights"].sum(axis=1) - in_first <= 42).all()


@pytest.mark.parametrize("reuse_length", [None, 0])
def test_more_slots_do_not_choose_more_tokens(reuse_length):
    rows = make_rows(4, 60), np.arange(4)
    few, many, less = (
        kbs.PermutationTargets(TOKENIZER, reuse_length=reuse_length, max_predictions=slots)(*rows)
        for slots in (None, 30, 4)
    )
    assert [made["mask_weights"].shape[1] for made in (few, many, less)] == [10, 30, 4]
    np.testing.assert_array_equal(many["query_ranks"], few["query_ranks"])
    np.testing.assert_array_equal(many["mask_ids"][:, :10], few["mask_ids"])
    assert not many["mask_weights"][:, 10:].any() and few["mask_weights"].sum() > 30
    assert (less["query_ranks"] != few["query_ranks"]).any()


@pytest.mark.parametrize("span_unit", ["piece", "word"])
def test_padding_and_special_tokens_are_no_targets(span_unit):
    packer = kbs.SegmentPacker(TOKENIZER, sequence_length=40)
    inputs = packer.pack(*([*make_reviews(20, seed=seed)[0], ""] for seed in (0, 1)))
    made = kbs.PermutationTargets(TOKENIZER, span_unit=span_unit)(inputs, np.arange(21))
    rows, slots = np.nonzero(made["mask_weights"])
    columns = made["mask_positions"][rows, slots]
    assert inputs["padding_mask"][rows, columns].all()
    assert (inputs["token_ids"][rows, columns] > SEP).all()
    lengths = inputs["padding_mask"].sum(axis=1)
    assert (made["mask_weights"].sum(axis=1) <= lengths / 6 + 1).all() and len(rows) > 40


def test_whole_words_are_targets():
    ids = np.array(TOKENIZER.tokenize("goods badly unfine awfuls " * 20), "int32")[None]
    inputs = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    continues = TOKENIZER.find_continuations()[ids[0]]
    words = np.cumsum(~continues)
    assert continues.mean() > 0.3
    halved = {}
    for span_unit in ("piece", "word"):
        targets = kbs.PermutationTargets(TOKENIZER, span_unit=span_unit, reuse_length=0)
        positions = targets({**inputs}, np.arange(1))["mask_positions"][0]
        positions = positions[: np.count_nonzero(positions) + (positions[0] == 0)]
        chosen = np.isin(np.arange(ids.size), positions)
        halved[span_unit] = sum(
            len(set(chosen[words == word].tolist())) == 2 for word in np.unique(words)
        )
    assert halved["word"] == 0 < halved["piece"]


def test_a_row_depends_on_its_id_alone():
    inputs = make_rows(6, 32)
    targets = kbs.PermutationTargets(TOKENIZER, max_gram=3, perm_size=8)
    wanted = targets(inputs, np.arange(6), epoch=1)
    order = [4, 0, 5]
    part = targets({name: x[order] for name, x in inputs.items()}, np.array(order), 1)
    single = targets({name: x[3] for name, x in inputs.items()}, 3, 1)
    sent = pickle.loads(pickle.dumps(targets))
    loaded = keras.layers.deserialize(keras.layers.serialize(targets))
    assert loaded.get_config() == targets.get_config()
    for name in ARRAYS:
        np.testing.assert_array_equal(part[name], wanted[name][order])
        np.testing.assert_array_equal(single[name], wanted[name][3])
        np.testing.assert_array_equal(sent(inputs, np.arange(6), 1)[name], wanted[name])
    assert (targets(inputs, np.arange(6), 2)["query_ranks"] != wanted["query_ranks"]).any()
    static = kbs.PermutationTargets(TOKENIZER, dynamic=False)
    for name in ARRAYS:
        first, later = (static(inputs, np.arange(6), epoch)[name] for epoch in (0, 5))
        np.testing.assert_array_equal(first, later)


def test_tensorflow_equals_numpy():
    tf = pytest.importorskip("tensorflow")
    packer = kbs.SegmentPacker(TOKENIZER, sequence_length=24)
    targets, texts = kbs.PermutationTargets(TOKENIZER), make_reviews(4)[0]
    wanted = targets(packer(texts), np.arange(4), epoch=1)
    dataset = tf.data.Dataset.from_tensor_slices(texts).enumerate().batch(4)
    got = next(iter(dataset.map(lambda rows, texts: targets(packer(texts), rows, epoch=1))))
    for name in ARRAYS:
        np.testing.assert_array_equal(got[name], wanted[name])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rate": 0.0}, "rate must be over 0 and at most 1, got 0.0"),
        ({"span_unit": "token"}, "span_unit must be one of piece, word, got 'token'"),
        ({"max_gram": 0}, "max_gram must be an integer of at least 1, got 0"),
        ({"beta": 0}, "beta must be an integer of at least 1, got 0"),
        ({"perm_size": 0}, "perm_size must be an integer of at least 1, got 0"),
        ({"reuse_length": -1}, "reuse_length must be an integer of at least 0, got -1"),
        ({"reuse_length": 32}, "reuse_length=32 leaves no second part in rows of 32 tokens"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        kbs.PermutationTargets(TOKENIZER, **arguments)(make_rows(2, 32), np.arange(2))


def test_a_model_that_would_see_its_targets_is_refused():
    backbone = kbs.BertBackbone(30, 1, 1, 4, 4)
    with pytest.raises(ValueError, match="A BertBackbone without these inputs would see its"):
        kbs.PermutationTargets(TOKENIZER).check_task(kbs.Pretrainer(backbone, next_sentence=False))
    backbone = kbs.XLNetBackbone(30, 1, 1, 4, 4, attention_pattern="permuted")
    pretrainer = kbs.Pretrainer(backbone, next_sentence=False)
    kbs.PermutationTargets(TOKENIZER).check_task(pretrainer)
    message = "reverse order, which this XLNetBackbone does not know. Build it with reversed_rows"
    with pytest.raises(ValueError, match=message):
        kbs.PermutationTargets(TOKENIZER, backward=True).check_task(pretrainer)
