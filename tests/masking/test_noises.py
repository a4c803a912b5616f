"""BART's noises beside fairseq's functions for one row, by the same draws and by draws of its own.

`Fairseq` transcribes `denoising_dataset.py`. Its rows begin and end with special tokens. Where the
original calls a generator, it asks `chance`. This is `Injected`, which has the random numbers of
our row, or `Generated`, with which the distributions of both are compared.
"""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy import stats
from small_byte_pairs import MERGES, make_vocabulary
from small_texts import VOCABULARY

import keras_bert_suite as kbs
from keras_bert_suite.masking import (
    DenoisingCorruption,
    DocumentRotation,
    RaggedRows,
    SentencePermutation,
    TextInfilling,
    TokenDeletion,
    TokenInsertion,
    TokenMasking,
)
from keras_bert_suite.masking.corruption import draw_in_turn
from keras_bert_suite.masking.noise_steps import find_poisson_shares

CLS, SEP, MASK = 2, 3, 4
TOKENIZER = kbs.WordPieceTokenizer(VOCABULARY)
#: Words of one to three tokens have the ids of a token that begins a word, and of "##s" and "##ly".
CONTINUING = [VOCABULARY.index(piece) for piece in ("##s", "##ly")]
BEGINNING = [i for i in range(5, len(VOCABULARY)) if i not in CONTINUING]


@dataclasses.dataclass
class Fairseq:
    chance: object
    words: bool = False
    mean: float = 3.5
    replace_length: int = 1
    spans: bool = True

    def permute_sentences(self, row, ends, rate):
        """`ends`: the place after each sentence. The original finds them by full stops."""
        chosen = self.chance.permute(len(ends))[: math.ceil(len(ends) * 2 * rate / 2)]
        order = list(range(len(ends)))
        for place, other in zip(chosen, self.chance.permute_again(chosen), strict=True):
            order[place] = chosen[other]
        parts = [row[ends[i - 1] if i else 1 : ends[i]] for i in order]
        return [row[0], *itertools.chain(*parts), row[-1]]

    def mask_words(self, row, rate):
        row = list(row)
        starts = [not self.words or token not in CONTINUING for token in row]
        starts[0] = starts[-1] = False
        starts[1] = True  # Our rows may begin within a word.
        budget = math.ceil(sum(starts) * rate)
        if not budget:
            return row
        lengths, inserts = [1] * budget, 0
        if self.spans:
            lengths = []
            while sum(lengths) < budget:
                lengths.append(self.chance.draw_length(self.mean))
            lengths[-1] -= sum(lengths) - budget
            inserts = lengths.count(0)
            lengths = [length for length in lengths if length]
        of_words = [place for place, begins in enumerate(starts) if begins]
        places = [of_words[i] for i in self.chance.permute(len(of_words), of_words)[: len(lengths)]]
        keep = [True] * len(row)
        for place, length in zip(places, lengths, strict=True):
            if self.replace_length:
                row[place] = MASK
            else:
                keep[place] = False
            end = place + 1
            while end < len(row) - 1 and (length := length - starts[end]) > 0:
                if self.replace_length == -1:
                    row[end] = MASK
                else:
                    keep[end] = False
                end += 1
        return self.insert([token for token, kept in zip(row, keep, strict=True) if kept], inserts)

    def insert(self, row, count):
        """`count` is exact here; the original multiplies a quotient, and may round it up."""
        if not count:
            return row
        places = [1 + i for i in self.chance.permute(len(row) + count - 2)[:count]]
        kept = iter(row)
        return [MASK if i in places else next(kept) for i in range(len(row) + count)]

    def rotate(self, row, rate):
        if not self.chance.turns(rate):
            return row
        offset = self.chance.choose_offset(len(row))
        return [row[0], *row[offset:-1], *row[1:offset], row[-1]]


class Generated:
    """Draws of a generator, as the original makes them."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def permute(self, size, places=None):
        return self.rng.permutation(size).tolist()

    def permute_again(self, chosen):
        return self.rng.permutation(len(chosen)).tolist()

    def draw_length(self, mean):
        return int(self.rng.poisson(mean))

    def turns(self, rate):
        return self.rng.random() < rate

    def choose_offset(self, size):
        return int(self.rng.integers(1, size - 1))


class Injected:
    """Our random numbers of a row, in the order in which a noise draws them."""

    def __init__(self, row, spans=False):
        draw = draw_in_turn(1, 2, np.array([row]))
        self.draw = lambda: draw(100)[0]
        self.lengths = None
        if spans:
            self.lengths, self.empty = self.draw(), self.draw()

    def permute(self, size, places=None):
        keys = self.draw()
        # Our rows lack the first token.
        keys = keys[:size] if places is None else keys[np.array(places) - 1]
        if places is not None:  # After them, masks are chosen, and their tokens.
            self.draw(), self.draw()
        return np.argsort(keys).tolist()

    def permute_again(self, chosen):
        return np.argsort(np.argsort(chosen)).tolist()

    def draw_length(self, mean):
        """A length above 0 after a geometric number of lengths of 0."""
        if isinstance(self.lengths, np.ndarray):
            shares = find_poisson_shares(mean)
            empty = np.floor(np.log(1 - self.empty) / np.log(shares[0])).astype(int)
            ends = np.cumsum(shares[1:]) / shares[1:].sum()
            filled = 1 + (self.lengths[:, None] >= ends).sum(axis=1)
            parts = zip(empty.tolist(), filled.tolist(), strict=True)
            self.lengths = itertools.chain(*([0] * zeros + [length] for zeros, length in parts))
        return next(self.lengths)

    def turns(self, rate):
        self.chance, self.place = self.draw()[:2]
        return self.chance < rate

    def choose_offset(self, size):
        return 1 + int(self.place * (size - 2))


def find_sentence_ends(row):
    """The places after the sentences of (ids, numbers of sentences), with a token before them."""
    sizes = [len(list(group)) for _, group in itertools.groupby(row[1])]
    return (1 + np.cumsum(sizes)).tolist()


#: Our noise -> whether it draws lengths of spans first, and fairseq's for a row.
RULES = {
    SentencePermutation(1.0): lambda fairseq, row, ends: fairseq.permute_sentences(row, ends, 1.0),
    SentencePermutation(0.4): lambda fairseq, row, ends: fairseq.permute_sentences(row, ends, 0.4),
    TokenMasking(0.3): lambda fairseq, row, _: dataclasses.replace(
        fairseq, spans=False, replace_length=-1
    ).mask_words(row, 0.3),
    TokenDeletion(0.3): lambda fairseq, row, _: dataclasses.replace(
        fairseq, spans=False, replace_length=0
    ).mask_words(row, 0.3),
    TextInfilling(0.3, 3.5, 0.0): lambda fairseq, row, _: fairseq.mask_words(row, 0.3),
    TextInfilling(0.6, 0.7, 0.0): lambda fairseq, row, _: dataclasses.replace(
        fairseq, mean=0.7
    ).mask_words(row, 0.6),
    TokenInsertion(0.2, 0.0): lambda fairseq, row, _: fairseq.insert(
        row, math.ceil(0.2 * (len(row) - 2))
    ),
    DocumentRotation(0.5): lambda fairseq, row, _: fairseq.rotate(row, 0.5),
}


def name_noise(noise):
    return f"{type(noise).__name__}-{noise.rate}"


def draw_rows(num_rows, longest=6, most=4, seed=3):
    """Rows of sentences of random words, as lists (ids, sentences) and as `RaggedRows`."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(num_rows):
        sizes = rng.integers(1, longest + 1, rng.integers(1, most + 1))
        continues = rng.random(sizes.sum()) < 0.3
        ids = np.where(
            continues,
            rng.choice(CONTINUING, sizes.sum()),
            rng.choice(BEGINNING, sizes.sum()),
        )
        rows.append((ids.tolist(), np.repeat(np.arange(len(sizes)), sizes).tolist()))
    arrays = {
        name: np.concatenate([row[i] for row in rows]).astype("int32")
        for i, name in enumerate(("token_ids", "sentences"))
    }
    return rows, RaggedRows(arrays, np.array([len(ids) for ids, _ in rows], "int32"))


def corrupt(ragged, *noises, seed=1, **arguments):
    """The sources of rows, lists of ids."""
    corruption = DenoisingCorruption(TOKENIZER, noises, **arguments)
    draw = draw_in_turn(seed, 2, np.arange(len(ragged)))
    source, _ = corruption.corrupt(ragged, draw)
    return [part.tolist() for part in np.split(source["token_ids"], source.starts[1:])]


def run_fairseq(noise, row, chance, words):
    return RULES[noise](Fairseq(chance, words), [CLS, *row[0], SEP], find_sentence_ends(row))[1:-1]


@pytest.mark.parametrize("unit", ["token", "word"])
@pytest.mark.parametrize("noise", RULES, ids=name_noise)
def test_a_noise_is_that_of_fairseq_by_the_same_draws(noise, unit):
    rows, ragged = draw_rows(80)
    found = corrupt(ragged, noise, unit=unit)
    has_spans = isinstance(noise, TextInfilling)
    expected = [
        run_fairseq(noise, row, Injected(i, has_spans), unit == "word")
        for i, row in enumerate(rows)
    ]
    assert found == expected
    assert sum(ids != row[0] for ids, row in zip(found, rows, strict=True)) > len(rows) / 6
    # The other rows of a batch change nothing.
    (alone,) = corrupt_alone(noise, unit, rows, 7)
    assert alone == found[7]


def corrupt_alone(noise, unit, rows, number):
    ids, sentences = (np.array(column, "int32") for column in rows[number])
    row = RaggedRows({"token_ids": ids, "sentences": sentences}, np.array([len(ids)]))
    corruption = DenoisingCorruption(TOKENIZER, [noise], unit)
    source, _ = corruption.corrupt(row, draw_in_turn(1, 2, np.array([number])))
    return [source["token_ids"].tolist()]


def observe(ids, original):
    """What a noise may change, as small numbers: of a row whose tokens are all different."""
    kept = [original.index(token) for token in ids if token != MASK]
    runs = [len(list(group)) for is_mask, group in itertools.groupby(ids, lambda i: i == MASK)]
    return {
        "length": len(ids),
        "masks": ids.count(MASK),
        "first": kept[0] if kept else -1,
        "last": kept[-1] if kept else -1,
        "first mask": ids.index(MASK) if MASK in ids else -1,
        "kept of the middle": sum(place in range(4, 8) for place in kept),
        "breaks": sum(b != a + 1 for a, b in itertools.pairwise(kept)),
        "runs": len(runs),
    }


@pytest.mark.parametrize("noise", RULES, ids=name_noise)
def test_a_noise_has_the_distributions_of_fairseq(noise):
    """Each observed number, in 2,000 rows of both: no table of counts differs by more than chance.

    The seeds are fixed. The least of the p-values of a noise's numbers is compared.
    """
    original = BEGINNING[:12]
    sentences = [0] * 3 + [1] * 4 + [2] * 2 + [3] * 3
    num_rows = 2000
    ids = np.tile(np.array(original, "int32"), num_rows)
    arrays = {"token_ids": ids, "sentences": np.tile(np.array(sentences, "int32"), num_rows)}
    found = corrupt(RaggedRows(arrays, np.full(num_rows, 12, "int32")), noise)
    chance = Generated(5)
    expected = [run_fairseq(noise, (original, sentences), chance, False) for _ in range(num_rows)]
    ours, theirs = ([observe(row, original) for row in rows] for rows in (found, expected))
    p_values = {}
    for name in ours[0]:
        values = sorted({row[name] for row in (*ours, *theirs)})
        table = np.array(
            [
                [sum(row[name] == value for row in rows) for value in values]
                for rows in (ours, theirs)
            ]
        )
        table = merge_rare(table)
        if table.shape[1] > 1:
            p_values[name] = stats.chi2_contingency(table).pvalue
    assert len(p_values) >= 2 and min(p_values.values()) > 0.001, p_values


def merge_rare(table):
    """Adds columns of a table of counts with less than 10 to the column beside them."""
    columns = []
    for column in table.T:
        if columns and (columns[-1].sum() < 10 or column.sum() < 10):
            columns[-1] = columns[-1] + column
        else:
            columns.append(column)
    return np.stack(columns, axis=1)


def test_the_mixture_of_the_published_run():
    """All noises in fairseq's order, beside their transcriptions one after the other."""
    noises = (
        SentencePermutation(1.0),
        TextInfilling(0.3, 3.5, 0.0),
        TokenInsertion(0.2, 0.0),
        DocumentRotation(0.5),
    )
    original, num_rows = BEGINNING[:12], 2000
    sentences = [0] * 3 + [1] * 4 + [2] * 2 + [3] * 3
    ids = np.tile(np.array(original, "int32"), num_rows)
    arrays = {"token_ids": ids, "sentences": np.tile(np.array(sentences, "int32"), num_rows)}
    found = corrupt(RaggedRows(arrays, np.full(num_rows, 12, "int32")), *noises)
    fairseq = Fairseq(Generated(9))
    expected = []
    for _ in range(num_rows):
        row = fairseq.permute_sentences(
            [CLS, *original, SEP], find_sentence_ends((original, sentences)), 1.0
        )
        row = fairseq.mask_words(row, 0.3)
        row = fairseq.insert(row, math.ceil(0.2 * (len(row) - 2)))
        expected.append(fairseq.rotate(row, 0.5)[1:-1])
    ours, theirs = ([observe(row, original) for row in rows] for rows in (found, expected))
    for name in ours[0]:
        counts = ([row[name] for row in rows] for rows in (ours, theirs))
        assert stats.ks_2samp(*counts).pvalue > 0.001, name
    defaults = DenoisingCorruption(TOKENIZER).noises
    assert defaults == (SentencePermutation(1.0), TextInfilling(0.3, 3.5, 0.1))


def test_random_tokens_have_their_rate_and_are_ordinary():
    """Also among few insertions, where fairseq rounds up."""
    num_rows = 2000
    ids = np.full(12 * num_rows, BEGINNING[0], "int32")
    arrays = {"token_ids": ids, "sentences": np.zeros_like(ids)}
    ragged = RaggedRows(arrays, np.full(num_rows, 12, "int32"))
    ordinary = set(np.flatnonzero(TOKENIZER.find_ordinary()).tolist())
    for noise in (TokenInsertion(0.05, 0.25), TokenMasking(0.3, 0.25), TextInfilling(0.3, 3, 0.25)):
        rows = corrupt(ragged, noise)
        found = [token for row in rows for token in row if token != BEGINNING[0]]
        others = {*found} - {MASK}
        # A random token may be the one that was there.
        rate = sum(token != MASK for token in found) / len(found)
        share = 0.25 * (1 - 1 / len(ordinary))
        assert abs(rate - share / (1 - 0.25 + share)) < 0.03, noise
        assert others == ordinary - {BEGINNING[0]}


def test_spans_are_those_of_a_poisson_distribution():
    shares = find_poisson_shares(3.5)
    np.testing.assert_allclose(shares, stats.poisson(3.5).pmf(np.arange(len(shares))), rtol=1e-6)
    assert stats.poisson(3.5).pmf(len(shares) - 1) < 1e-7 <= stats.poisson(3.5).pmf(len(shares) - 2)


def test_a_span_may_be_longer_than_any_row():
    """Also with a mean of which exp(-mean) is 0."""
    _, ragged = draw_rows(5)
    for row in corrupt(ragged, TextInfilling(1.0, mean_length=1000.0, random_token_rate=0.0)):
        assert row.count(MASK) == 1


@pytest.mark.parametrize("noise", [TokenDeletion(1.0), TokenMasking(1.0), TextInfilling(1.0)])
def test_whole_rows(noise):
    """All words of a row may go, and noises after that find nothing."""
    _, ragged = draw_rows(5)
    noises = (noise, SentencePermutation(), DocumentRotation(), TextInfilling(), TokenInsertion())
    rows = corrupt(ragged, *noises)
    assert len(rows) == 5
    if isinstance(noise, TokenDeletion):
        assert rows == [[]] * 5
    arrays = DenoisingCorruption(TOKENIZER, noises).make_arrays([ragged], 32, np.arange(5), 0)
    assert (arrays["padding_mask"].sum(axis=1) >= 2).all()


def test_words_of_a_segmenter():
    tokenizer = kbs.WordPieceTokenizer(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"天地人山水火"]
    )
    ids = np.array([tokenizer.tokenize("天地人山水火")] * 50, "int32").ravel()
    ragged = RaggedRows({"token_ids": ids, "sentences": ids * 0}, np.full(50, 6, "int32"))
    corruption = DenoisingCorruption(tokenizer, [TokenDeletion(0.4)], "word", split_in_pairs)
    source, _ = corruption.corrupt(ragged, draw_in_turn(0, 0, np.arange(50)))
    rows = {tuple(part.tolist()) for part in np.split(source["token_ids"], source.starts[1:])}
    assert rows == {(5, 6), (7, 8), (9, 10)}


def split_in_pairs(text):
    return [text[i : i + 2] for i in range(0, len(text), 2)]


@pytest.mark.parametrize("starts_with_end", [False, True])
def test_the_decoder_writes_the_whole_text(starts_with_end):
    """As `SeparateRows` packs it for a fine-tuning; BART's begins with its end token."""
    rows, ragged = draw_rows(6)
    corruption = DenoisingCorruption(TOKENIZER, starts_with_end=starts_with_end)
    arrays = corruption.make_arrays([ragged], 30, np.arange(6), 0)
    marks = [SEP, CLS] if starts_with_end else [CLS]
    width = 29 + starts_with_end
    for i, (ids, _) in enumerate(rows):
        whole = [*marks, *ids, SEP]
        padding = [0] * (width - len(whole) + 1)
        assert arrays["decoder_token_ids"][i].tolist() == whole[:-1] + padding
        assert arrays["target_ids"][i].tolist() == whole[1:] + padding
        for name in ("decoder_padding_mask", "target_weights"):
            assert arrays[name][i].tolist() == [1] * (len(whole) - 1) + padding


BYTE_PAIRS = kbs.BytePairTokenizer(make_vocabulary(), MERGES)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TokenMasking(1.5), "rate must be from 0 to 1, got 1.5"),
        (lambda: TextInfilling(random_token_rate=-1), "random_token_rate must be from 0 to 1, got"),
        (lambda: TextInfilling(mean_length=0), "mean_length must be a number above 0, got 0"),
        (lambda: TextInfilling(mean_length=math.inf), "a number above 0, got inf"),
        (lambda: DenoisingCorruption(TOKENIZER, ["infilling"]), "as TextInfilling.*'infilling"),
        (lambda: DenoisingCorruption(TOKENIZER, TokenDeletion()), "must be a list of noises"),
        (lambda: DenoisingCorruption(TOKENIZER, unit="span"), "unit must be one of token, word"),
        (lambda: DenoisingCorruption(TOKENIZER, word_segmenter="jieba"), 'choose unit="word"'),
        (lambda: DenoisingCorruption(BYTE_PAIRS, unit="word", word_segmenter="jieba"),
         "a BytePairTokenizer has none. Leave the segmenter out"),
    ],
)  # fmt: skip
def test_wrong_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()
