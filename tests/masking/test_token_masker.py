import json
import pickle
import random
import subprocess
import sys

import keras
import numpy as np
import pytest
from scipy import stats
from small_texts import VOCABULARY, make_reviews

from keras_bert_suite import (
    AlbertTokenizer,
    BytePairTokenizer,
    SegmentPacker,
    TokenMasker,
    WordPieceTokenizer,
)
from keras_bert_suite.masking.masking_layer import MaskerWrapper

PAD, CLS, SEP, MASK = 0, 2, 3, 4
UNITS = ["token", "word", "span", "ngram"]
OUTPUTS = ["token_ids", "mask_positions", "mask_ids", "mask_weights"]


def pack(*rows):
    """A batch of rows of pieces, such as "un ##s . [SEP] good", padded to the longest."""
    rows = [[CLS, *map(VOCABULARY.index, row.split()), SEP] for row in rows]
    length = max(map(len, rows))
    token_ids = np.array([row + [PAD] * (length - len(row)) for row in rows], "int32")
    padding_mask = (np.arange(length) < np.array([[len(row)] for row in rows])).astype("int32")
    return {
        "token_ids": token_ids,
        "segment_ids": np.zeros_like(token_ids),
        "padding_mask": padding_mask,
    }


def pack_reviews(num_rows, seed=0):
    """A batch of reviews in which every word has up to four pieces."""
    rng = random.Random(seed)
    words = ["{}", "{}", "{} ##s", "{} ##ly ##s", "un ##ly ##s ##s"]
    texts = make_reviews(num_rows, seed)[0]
    return pack(*(" ".join(rng.choice(words).format(w) for w in t.split()) for t in texts))


def repeat(batch, times):
    return {name: np.repeat(array, times, axis=0) for name, array in batch.items()}


def chosen(masked):
    """bool (B, L), the tokens that were chosen."""
    flags = np.zeros(masked["token_ids"].shape, bool)
    rows, slots = np.nonzero(masked["mask_weights"])
    flags[rows, masked["mask_positions"][rows, slots]] = True
    return flags


def words_of(token_ids):
    """Lists of the columns of each word of a row."""
    words = []
    for column, piece in enumerate(VOCABULARY[i] for i in token_ids):
        if piece.startswith("##"):
            words[-1].append(column)
        elif not piece.startswith("["):
            words.append([column])
    return words


@pytest.fixture
def tokenizer():
    return WordPieceTokenizer(VOCABULARY)


@pytest.mark.parametrize("unit", UNITS)
def test_everything_is_masked_literally(tokenizer, unit):
    masker = TokenMasker(tokenizer, rate=1.0, unit=unit, mask_token_rate=1.0, random_token_rate=0.0)
    batch = pack("un ##s [SEP] good", "[UNK] .")
    masked = masker(batch, [0, 1])
    assert masked["token_ids"].tolist() == [[CLS, 4, 4, SEP, 4, SEP], [CLS, 1, 4, SEP, PAD, PAD]]
    assert masked["mask_positions"].tolist() == [[1, 2, 4, 0, 0, 0], [2, 0, 0, 0, 0, 0]]
    un, s, good, dot = (VOCABULARY.index(piece) for piece in ("un", "##s", "good", "."))
    assert masked["mask_ids"].tolist() == [[un, s, good, 0, 0, 0], [dot, 0, 0, 0, 0, 0]]
    assert masked["mask_weights"].tolist() == [[1, 1, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0]]
    assert masked["segment_ids"] is batch["segment_ids"]
    assert masked["padding_mask"] is batch["padding_mask"]
    assert [masked[name].dtype for name in OUTPUTS] == ["int32", "int32", "int32", "float32"]


@pytest.mark.parametrize("unit", ["word", "span", "ngram"])
def test_words_that_exceed_the_number_are_skipped(tokenizer, unit):
    masker = TokenMasker(tokenizer, unit=unit, max_predictions=2, rate=1.0)
    batch = repeat(pack("un ##ly ##s good ##s un ##ly ##s"), 50)
    masked = masker(batch, np.arange(50))
    assert masked["mask_positions"].tolist() == [[4, 5]] * 50


def test_nothing_to_choose(tokenizer):
    for unit in UNITS:
        batch = pack("good film")
        masked = TokenMasker(tokenizer, rate=0, unit=unit)(batch, [0])
        assert masked["mask_weights"].sum() == 0
        assert masked["token_ids"].tolist() == batch["token_ids"].tolist()
        masked = TokenMasker(tokenizer, unit=unit)(pack("[UNK] [SEP] [MASK]", "good"), [0, 1])
        assert masked["mask_weights"].sum(axis=1).tolist() == [0, 1]
        assert masked["token_ids"][0].tolist() == [CLS, 1, SEP, MASK, SEP]
    assert TokenMasker(tokenizer)(pack("good"), [0])["mask_ids"].tolist() == [
        [VOCABULARY.index("good")]
    ]
    empty = {name: array[:0] for name, array in pack("good").items()}
    for unit in UNITS:
        assert TokenMasker(tokenizer, unit=unit)(empty, np.zeros(0, int))["mask_ids"].shape == (
            0,
            1,
        )


@pytest.mark.parametrize("max_predictions", [None, 76])
def test_google_counts_for_every_length(tokenizer, max_predictions):
    lengths = range(3, 513)
    masker = TokenMasker(tokenizer, max_predictions=max_predictions)
    masked = masker(pack(*("good " * (n - 2) for n in lengths)), np.arange(len(lengths)))
    wanted = [min(max_predictions or 512, max(1, int(round(n * 0.15)))) for n in lengths]
    assert masked["mask_weights"].sum(axis=1).tolist() == wanted
    assert masked["mask_positions"].shape[1] == (max_predictions or 77)


@pytest.mark.parametrize("unit", UNITS)
def test_what_must_hold_of_every_mask(tokenizer, unit):
    batch = pack_reviews(2000)
    masker = TokenMasker(tokenizer, unit=unit, rate=0.3)
    masked = masker(batch, np.arange(2000))
    flags = chosen(masked)
    special = np.isin(batch["token_ids"], tokenizer.special_token_ids)
    assert not (flags & special).any()
    assert (masked["token_ids"] == batch["token_ids"])[~flags].all()
    counts = masked["mask_weights"].sum(axis=1)
    assert (counts <= np.maximum(1, np.rint(batch["padding_mask"].sum(axis=1) * 0.3))).all()
    for row, positions, ids, count in zip(
        batch["token_ids"], masked["mask_positions"], masked["mask_ids"], counts, strict=True
    ):
        used = positions[: int(count)]
        assert (np.diff(used) > 0).all()
        assert (ids[: int(count)] == row[used]).all()
        assert not positions[int(count) :].any() and not ids[int(count) :].any()
    if unit != "token":
        for row, flag in zip(batch["token_ids"], flags, strict=True):
            assert all(len(set(flag[word])) == 1 for word in words_of(row))


@pytest.mark.parametrize("unit", UNITS)
def test_positions_are_uniform(tokenizer, unit):
    batch = repeat(pack("the film was good and a dull plot"), 20_000)
    masked = TokenMasker(tokenizer, unit=unit, max_predictions=1)(batch, np.arange(20_000))
    counts = np.bincount(masked["mask_positions"][:, 0], minlength=9)
    assert counts[0] == 0 and len(counts) == 9
    assert stats.chisquare(counts[1:]).pvalue > 0.01


@pytest.mark.parametrize("unit", UNITS)
def test_shares_of_mask_random_and_unchanged(tokenizer, unit):
    # One token a row: of a span only its first draw counts.
    batch = repeat(pack("good film"), 30_000)
    masked = TokenMasker(tokenizer, unit=unit, max_predictions=1)(batch, np.arange(30_000))
    flags = chosen(masked)
    before, after = batch["token_ids"][flags], masked["token_ids"][flags]
    is_mask, same = after == MASK, after == before
    ordinary = len(VOCABULARY) - 5  # one of them is the token itself
    counts = [is_mask.sum(), same.sum(), (~is_mask & ~same).sum()]
    wanted = np.array([0.8, 0.1 + 0.1 / ordinary, 0.1 - 0.1 / ordinary]) * len(after)
    assert stats.chisquare(counts, wanted).pvalue > 0.01


def test_kinds_are_drawn_for_each_piece_or_for_each_span(tokenizer):
    batch = repeat(pack("good ##s ##s ##s"), 5000)
    rates = {"rate": 1.0, "mask_token_rate": 0.5, "random_token_rate": 0.0}
    for unit, wanted in [("word", [1, 4, 6, 4, 1]), ("ngram", [1, 4, 6, 4, 1]), ("span", None)]:
        masked = TokenMasker(tokenizer, unit=unit, **rates)(batch, np.arange(5000))
        counts = np.bincount(np.sum(masked["token_ids"] == MASK, axis=1), minlength=5)
        if wanted is None:
            assert counts[1:4].tolist() == [0, 0, 0]
            counts, wanted = counts[[0, 4]], [1, 1]
        assert stats.chisquare(counts, np.array(wanted) / sum(wanted) * 5000).pvalue > 0.01


@pytest.mark.parametrize("unit", ["token", "span"])
@pytest.mark.parametrize("random_tokens", ["ordinary", "vocabulary"])
def test_random_tokens_are_uniform(unit, random_tokens):
    vocabulary = [*VOCABULARY, "[unused0]", "[unused1]"]
    masker = TokenMasker(
        WordPieceTokenizer(vocabulary),
        unit=unit,
        rate=1.0,
        mask_token_rate=0.0,
        random_token_rate=1.0,
        random_tokens=random_tokens,
    )
    batch = repeat(pack("good film not dull . a"), 5000)
    drawn = masker(batch, np.arange(5000))["token_ids"][:, 1:-1]
    counts = np.bincount(drawn.ravel(), minlength=len(vocabulary))
    if random_tokens == "ordinary":
        assert not counts[[0, 1, 2, 3, 4, -2, -1]].any()
        counts = counts[5:-2]
    assert stats.chisquare(counts).pvalue > 0.01


def mask_like_google(token_ids, whole_words, rate, rng):
    """Columns that `create_masked_lm_predictions` of google-research/bert would choose."""
    eligible = [[column] for word in words_of(token_ids) for column in word]
    candidates = words_of(token_ids) if whole_words else eligible
    rng.shuffle(candidates)
    number = max(1, int(round(np.count_nonzero(token_ids) * rate)))
    columns = []
    for candidate in candidates:
        if len(columns) >= number:
            break
        if len(columns) + len(candidate) <= number:
            columns += candidate
    return columns


@pytest.mark.parametrize("unit", ["token", "word"])
def test_word_lengths_and_counts_are_distributed_as_googles(tokenizer, unit):
    batch = pack_reviews(6000, seed=1)
    rng = random.Random(2)
    flags = chosen(TokenMasker(tokenizer, unit=unit, rate=0.2)(batch, np.arange(6000)))
    words, predictions = np.zeros((2, 6), int), np.zeros((2, 20), int)
    for row, ours in zip(batch["token_ids"], flags, strict=True):
        theirs = np.zeros_like(ours)
        theirs[mask_like_google(row, unit == "word", 0.2, rng)] = True
        for side, flag in enumerate((ours, theirs)):
            predictions[side, flag.sum()] += 1
            for word in words_of(row):
                words[side, len(word)] += flag[word].any()
    for table in (words, predictions):
        table = table[:, table.sum(axis=0) > 10]
        assert table.shape[1] >= 4
        assert stats.chi2_contingency(table).pvalue > 0.01


CHINESE = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"这部电影很好看不！", "a"]


@keras.saving.register_keras_serializable(package="test_token_masker")
def segment_film(text):
    return [
        word for word in text.replace("电影", "|电影|").replace("好看", "|好看|").split("|") if word
    ]


@pytest.mark.parametrize("unit", ["word", "span", "ngram"])
def test_chinese_words_literally(unit):
    tokenizer = WordPieceTokenizer(CHINESE)
    batch = SegmentPacker(tokenizer, padding_lengths=None)(["电影a好看！"] * 200)
    arguments = {"unit": unit, "rate": 0.25, "mask_token_rate": 1.0, "random_token_rate": 0.0}
    masker = TokenMasker(tokenizer, word_segmenter=segment_film, **arguments)
    # Two of eight tokens: a word of two, or "a" and "！" when both come before such a word.
    rows = {"".join(CHINESE[i] for i in row) for row in masker(batch, range(200))["token_ids"]}
    film, see = "[CLS][MASK][MASK]a好看！[SEP]", "[CLS]电影a[MASK][MASK]！[SEP]"
    assert rows == {film, see, "[CLS]电影[MASK]好看[MASK][SEP]"}
    without = TokenMasker(tokenizer, **arguments)(batch, range(200))["token_ids"]
    assert len(np.unique(without, axis=0)) > 3


def test_words_of_jieba(shared_data):
    jieba = pytest.importorskip("jieba")
    jieba.setLogLevel("ERROR")
    path = shared_data / "vocab" / "bert-base-chinese" / "vocab.txt"
    tokenizer = WordPieceTokenizer(path)
    text = "我来到北京清华大学"
    masker = TokenMasker(
        tokenizer, unit="word", max_predictions=4, rate=1.0, word_segmenter=jieba.lcut
    )
    batch = SegmentPacker(tokenizer, padding_lengths=None)([text] * 100)
    flags = chosen(masker(batch, np.arange(100)))[:, 1:-1]
    words = jieba.lcut(text)
    assert max(map(len, words)) > 1
    ends = np.cumsum([len(word) for word in words])
    for part in np.split(flags, ends[:-1], axis=1):
        assert (part.all(axis=1) == part.any(axis=1)).all()
        assert part.any()


def assert_same_rows(masked, other, rows=slice(None)):
    """Rows of one batch equal those of another, whatever each is padded to."""
    for name in OUTPUTS:
        a, b = masked[name][rows], other[name]
        width = min(a.shape[-1], b.shape[-1])
        np.testing.assert_array_equal(a[..., :width], b[..., :width])
        assert not a[..., width:].any() and not b[..., width:].any()


@pytest.mark.parametrize("unit", UNITS)
def test_a_row_is_masked_alike_in_whatever_batch(tokenizer, unit):
    masker = TokenMasker(tokenizer, unit=unit, rate=0.3, seed=5)
    batch, row_ids = pack_reviews(64), np.arange(1000, 1064)
    masked = masker(batch, row_ids, epoch=2)
    order = np.random.default_rng(0).permutation(64)[:20]
    part = {name: array[order] for name, array in batch.items()}
    assert_same_rows(masked, masker(part, row_ids[order], epoch=2), order)
    longer = {name: np.pad(array, ((0, 0), (0, 9))) for name, array in batch.items()}
    assert_same_rows(masked, masker(longer, row_ids, epoch=2))
    for row in (0, 17):
        length = batch["padding_mask"][row].sum()
        alone = {name: array[row, :length] for name, array in batch.items()}
        assert_same_rows(masked, masker(alone, row_ids[row], epoch=2), row)


def test_seed_epoch_and_row_id_change_the_masks(tokenizer):
    batch = repeat(pack("the film was good and the plot was dull " * 5), 2)

    def positions(row_ids=(0, 1), epoch=0, **arguments):
        return TokenMasker(tokenizer, **arguments)(batch, row_ids, epoch)["mask_positions"].tolist()

    first, second = positions()
    assert first != second
    assert positions((1, 0)) == [second, first]
    assert positions(epoch=1) != [first, second] != positions(seed=1)
    assert positions(epoch=1) != positions(seed=1)
    assert positions(epoch=7, dynamic=False) == positions(dynamic=False) == [first, second]


@pytest.mark.long("texts")
def test_another_process_masks_alike(tokenizer, tmp_path):
    masker = TokenMasker(tokenizer, unit="span", rate=0.3, seed=5, name="masker")
    batch = pack_reviews(8)
    path = tmp_path / "masker.pickle"
    path.write_bytes(pickle.dumps((masker, batch)))
    code = (
        "import pickle, sys\n"
        "masker, batch = pickle.load(open(sys.argv[1], 'rb'))\n"
        "pickle.dump(masker(batch, range(8)), open(sys.argv[1], 'wb'))"
    )
    subprocess.run([sys.executable, "-c", code, path], check=True, timeout=300)
    assert_same_rows(masker(batch, np.arange(8)), pickle.loads(path.read_bytes()))


@pytest.mark.parametrize(("unit", "max_predictions"), [("word", None), ("span", 3)])
def test_tensorflow_equals_numpy(tokenizer, unit, max_predictions):
    tf = pytest.importorskip("tensorflow")
    masker = TokenMasker(tokenizer, unit=unit, rate=0.3, max_predictions=max_predictions)
    batch = pack_reviews(10)
    length = batch["token_ids"].shape[1]
    wanted = masker(batch, range(10), epoch=4)
    num_predictions = wanted["mask_ids"].shape[1]

    tensors = {name: tf.constant(array) for name, array in batch.items()}
    eager = masker(tensors, tf.range(10, dtype="int64"), epoch=tf.constant(4))
    rows = tf.data.Dataset.from_tensor_slices(batch).enumerate()
    batched = rows.batch(10, drop_remainder=True).map(lambda i, row: masker(row, i, epoch=4))
    single = rows.map(lambda i, row: masker(row, i, epoch=4))
    for name in OUTPUTS:
        assert eager[name].dtype == wanted[name].dtype
        size = length if name == "token_ids" else num_predictions
        assert batched.element_spec[name] == tf.TensorSpec((10, size), wanted[name].dtype)
        assert single.element_spec[name] == tf.TensorSpec((size,), wanted[name].dtype)
    assert_same_rows(wanted, {name: eager[name].numpy() for name in eager})
    for dataset in (batched, single.batch(10)):
        assert_same_rows(wanted, next(dataset.as_numpy_iterator()))


@pytest.mark.long("texts")
def test_texts_of_a_tensorflow_dataset(tokenizer):
    tf = pytest.importorskip("tensorflow")
    packer, masker = SegmentPacker(tokenizer), TokenMasker(tokenizer, rate=0.5)
    texts = make_reviews(8)[0]

    def mask(row_ids, texts):
        return masker(packer(texts), row_ids, epoch=1)

    dataset = tf.data.Dataset.from_tensor_slices(texts).enumerate().batch(8).map(mask)
    assert dataset.element_spec["mask_ids"].shape.as_list() == [None, None]
    assert_same_rows(masker(packer(texts), range(8), epoch=1), next(dataset.as_numpy_iterator()))


class Marker(MaskerWrapper):
    """Adds an array, and changes another for some rows only."""

    def call(self, inputs, row_ids, epoch=0):
        masked = self.masker(inputs, row_ids, epoch)
        is_odd = row_ids[:, None] % 2 == 1
        if is_odd.any():
            masked["segment_ids"] = inputs["segment_ids"] + is_odd.astype("int32")
        return {**masked, "ranks": masked["token_ids"] * 2}


def test_the_arrays_of_any_masker_go_by_name_in_a_graph(tokenizer):
    tf = pytest.importorskip("tensorflow")
    marker, batch = Marker(TokenMasker(tokenizer)), pack_reviews(6)
    wanted = marker(batch, np.arange(6))
    # A text, which is not masked, has no place among the arrays that the layer makes.
    batch = {"source": np.array([b"a film"] * 6), **batch}
    rows = tf.data.Dataset.from_tensor_slices(batch).enumerate()

    def mark(row_ids, row):
        return marker(row, row_ids)

    for dataset in (rows.batch(6).map(mark), rows.map(mark).batch(6)):
        marked = next(dataset.as_numpy_iterator())
        assert set(marked.pop("source")) == {b"a film"} and marked.keys() == wanted.keys()
        for name, array in wanted.items():
            np.testing.assert_array_equal(marked[name], array, name)
            assert dataset.element_spec[name].shape.as_list() == [None, *array.shape[1:]]


@pytest.mark.every_backend
def test_arrays_of_the_backend(tokenizer):
    batch = pack_reviews(4)
    tensors = {name: keras.ops.convert_to_tensor(array) for name, array in batch.items()}
    masked = TokenMasker(tokenizer)(tensors, np.arange(4))
    masked = {name: np.asarray(array) for name, array in masked.items()}
    assert_same_rows(TokenMasker(tokenizer)(batch, np.arange(4)), masked)


def test_config_round_trip():
    tokenizer = WordPieceTokenizer(CHINESE)
    masker = TokenMasker(
        tokenizer,
        rate=0.2,
        unit="ngram",
        mask_token_rate=0.7,
        random_token_rate=0.2,
        max_predictions=9,
        random_tokens="vocabulary",
        word_segmenter=segment_film,
        span_probability=0.3,
        max_span_length=5,
        ngram_shares=(0.4, 0.3, 0.2, 0.1),
        dynamic=False,
        seed=3,
    )
    config = json.loads(json.dumps(keras.layers.serialize(masker)))
    twin = keras.layers.deserialize(config)
    twin.tokenizer.set_vocabulary(CHINESE)
    assert twin.get_config() == masker.get_config()
    batch = SegmentPacker(tokenizer)(["这部电影很好看！", "不好看！"])
    assert_same_rows(masker(batch, [0, 1]), twin(batch, [0, 1]))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"unit": "phrase"}, "unit must be one of token, word, span, ngram, got 'phrase'"),
        ({"random_tokens": "all"}, "random_tokens must be one of ordinary, vocabulary, got 'all'"),
        ({"rate": 1.5}, "rate must be from 0 to 1, got 1.5"),
        ({"mask_token_rate": -0.1}, "mask_token_rate must be from 0 to 1, got -0.1"),
        ({"random_token_rate": float("nan")}, "random_token_rate must be from 0 to 1, got nan"),
        ({"random_token_rate": 0.3}, "must not sum to more than 1, got 0.8 and 0.3"),
        ({"max_predictions": 0}, "max_predictions must be an integer of at least 1, got 0"),
        ({"word_segmenter": list}, 'unit="token" .* no use for word_segmenter'),
        ({"phrases": ["a b"]}, 'unit="token" .* no use for phrases'),
        ({"similar_words": {"a": "b"}}, 'unit="token" .* no use for similar_words'),
        ({"unit": "word", "phrases": "a b"}, "phrases must be a list or set of str, got 'a b'"),
        ({"span_probability": 0}, "span_probability must be over 0 and at most 1, got 0"),
        ({"max_span_length": 2.5}, "max_span_length must be an integer of at least 1, got 2.5"),
        ({"ngram_shares": ()}, r"ngram_shares must be positive .* got \(\)"),
        ({"ngram_shares": (1, 0)}, r"ngram_shares must be positive .* got \(1, 0\)"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
    ],
)
def test_bad_arguments(tokenizer, arguments, error):
    with pytest.raises(ValueError, match=error):
        TokenMasker(tokenizer, **arguments)


@pytest.mark.parametrize("cls", [BytePairTokenizer, AlbertTokenizer])
def test_a_segmenter_needs_tokens_of_one_character(cls):
    with pytest.raises(ValueError, match=f"word_segmenter joins .* an? {cls.__name__} has none"):
        TokenMasker(cls(), unit="word", word_segmenter=list)


def test_a_vocabulary_without_the_mask_token():
    pieces = [piece for piece in VOCABULARY if piece != "[MASK]"]
    with pytest.raises(ValueError, match=r"lacks the mask token, '\[MASK\]'"):
        TokenMasker(WordPieceTokenizer(pieces))
    late = WordPieceTokenizer()
    masker = TokenMasker(late)
    late.set_vocabulary(pieces)
    with pytest.raises(ValueError, match=r"lacks the mask token, '\[MASK\]'"):
        masker(pack("good"), [0])


@pytest.mark.parametrize(
    ("row_ids", "epoch", "error"),
    [
        ([0, -1], 0, r"row_ids must be .* integers from 0.* got int64 \[ 0 -1\]"),
        ([0.0, 1.0], 0, "row_ids must be .* got float64"),
        ([0, 1], -1, "epoch must be an integer of at least 0, got -1"),
        ([0, 1], 0.5, "epoch must be an integer of at least 0, got 0.5"),
        ([0], 0, r"row_ids must be .* shape \(2, 3\), got int64 \[0\]"),
        (0, 0, r"row_ids must be .* shape \(2, 3\), got int64 \[0\]"),
    ],
)
def test_bad_calls(tokenizer, row_ids, epoch, error):
    with pytest.raises(ValueError, match=error):
        TokenMasker(tokenizer)(pack("good", "bad"), row_ids, epoch)


def test_bad_batches(tokenizer):
    batch = pack("good")
    with pytest.raises(ValueError, match=r"keys token_ids and padding_mask, got \['token_ids'\]"):
        TokenMasker(tokenizer)({"token_ids": batch["token_ids"]}, [0])
