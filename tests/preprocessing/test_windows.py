"""Sliding windows, held against transformers' overflowing tokens."""

import random

import numpy as np
import pytest
from small_texts import VOCABULARY, WORDS

from keras_bert_suite import SegmentPacker, WordPieceTokenizer
from keras_bert_suite.preprocessing.packing import NUMPY
from keras_bert_suite.preprocessing.windows import (
    share_strided_windows,
    share_windows,
    slide_windows,
)

PAD, CLS, SEP = 0, 2, 3


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer(VOCABULARY)


def ids(text):
    return [VOCABULARY.index(word) for word in text.split()]


def make_texts(num_rows, longest, seed, shortest=0):
    rng = random.Random(seed)
    words = [*WORDS, "films", "badly", "unfine", "!"]
    return [" ".join(rng.choices(words, k=rng.randint(shortest, longest))) for _ in range(num_rows)]


@pytest.mark.parametrize(
    ("budget", "wanted"),
    [
        (4, ([0, 2, 4, 6, 9], [4, 4, 4, 3, 3], [0, 0, 0, 0, 1], [0, 1, 1, 1, 0], [3, 3, 3, 3, 3])),
        (5, ([0, 3, 6, 9], [5, 5, 3, 3], [0, 0, 0, 1], [0, 1, 1, 0], [4, 4, 3, 3])),
    ],
)
def test_shared_windows_literally(budget, wanted):
    """Texts of nine and three tokens. Each token is in the middle of one window."""
    shared = share_windows(NUMPY, np.array([0, 9], "int32"), np.array([9, 3], "int32"), budget)
    assert tuple(column.tolist() for column in shared) == wanted


def test_pair_literally(tokenizer):
    packer = SegmentPacker(tokenizer, sequence_length=7)
    windows = packer.pack_windows(
        ["good ,", "bad"], ["a films the film", ""], stride=1, query_length=2
    )
    query = [CLS, *ids("good ,"), SEP]
    assert windows["token_ids"].tolist() == [
        [*query, *ids("a film"), SEP],
        [*query, *ids("film ##s"), SEP],
        [*query, *ids("##s the"), SEP],
        [*query, *ids("the film"), SEP],
        [CLS, *ids("bad"), SEP, SEP, PAD, PAD, PAD],
    ]
    assert windows["segment_ids"].tolist() == [[0, 0, 0, 0, 1, 1, 1]] * 4 + [[0, 0, 0, 1, 0, 0, 0]]
    assert windows["padding_mask"].tolist() == [[1] * 7] * 4 + [[1, 1, 1, 1, 0, 0, 0]]
    assert windows["token_indices"].tolist() == [
        [-1, 0, 1, -1, 0, 1, -1],
        [-1, 0, 1, -1, 1, 2, -1],
        [-1, 0, 1, -1, 2, 3, -1],
        [-1, 0, 1, -1, 3, 4, -1],
        [-1, 0, -1, -1, -1, -1, -1],
    ]
    assert windows["row_ids"].tolist() == [0, 0, 0, 0, 1]
    assert {array.dtype for array in windows.values()} == {np.dtype("int32")}


@pytest.mark.parametrize(
    ("num_tokens", "starts"),
    [(0, [0]), (1, [0]), (10, [0]), (11, [0, 4]), (14, [0, 4]), (15, [0, 4, 8])],
)
def test_no_window_lies_within_another(tokenizer, num_tokens, starts):
    packer = SegmentPacker(tokenizer, sequence_length=12)
    indices = packer.pack_windows(["good " * num_tokens], stride=4)["token_indices"]
    windows = [row[row >= 0].tolist() for row in indices]
    assert windows == [list(range(start, min(start + 10, num_tokens))) for start in starts]


@pytest.mark.parametrize("pair", [False, True])
@pytest.mark.parametrize(("sequence_length", "stride"), [(12, 1), (16, 4), (30, 9), (100, 20)])
def test_equals_the_overflowing_tokens_of_transformers(tokenizer, sequence_length, stride, pair):
    transformers = pytest.importorskip("transformers")
    peer = transformers.BertTokenizerFast(vocab={t: i for i, t in enumerate(VOCABULARY)})
    queries = make_texts(40, 4, seed=stride) if pair else None
    # The peer takes an empty second text for none.
    documents = make_texts(40, 80, seed=sequence_length, shortest=1 if pair else 0)
    packer = SegmentPacker(tokenizer, sequence_length, padding_lengths=(sequence_length,))
    segments = (queries, documents) if pair else (documents,)
    windows = packer.pack_windows(*segments, stride=stride, query_length=8)
    for row, document in enumerate(documents):
        query = [queries[row]] if pair else []
        room = sequence_length - 2 - sum(len(tokenizer.tokenize(q)) + 1 for q in query)
        wanted = peer(
            *query,
            document,
            max_length=sequence_length,
            truncation="only_second" if pair else "only_first",
            stride=room - stride,  # Theirs is the overlap.
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
            padding="max_length",
            return_tensors="np",
        )
        ours = {name: array[windows["row_ids"] == row] for name, array in windows.items()}
        np.testing.assert_array_equal(ours["token_ids"], wanted["input_ids"])
        np.testing.assert_array_equal(ours["segment_ids"], wanted["token_type_ids"])
        np.testing.assert_array_equal(ours["padding_mask"], wanted["attention_mask"])
        for segment, text in enumerate([*query, document]):
            _, offsets, _ = tokenizer.tokenize_with_offsets(text)
            chosen = (ours["token_indices"] >= 0) & (ours["segment_ids"] == segment)
            places = [offsets[index] for index in ours["token_indices"][chosen]]
            assert places == list(map(tuple, wanted["offset_mapping"][chosen]))


@pytest.mark.parametrize(
    ("segments", "truncation"),
    [(2, "longest_first"), pytest.param(3, "head_tail", marks=pytest.mark.long("texts"))],
)
def test_graph_equals_eager(tokenizer, segments, truncation):
    tf = pytest.importorskip("tensorflow_text") and pytest.importorskip("tensorflow")
    texts = [make_texts(30, 60, seed=s) + ["", "good " * 90] for s in range(segments)]
    packer = SegmentPacker(tokenizer, 24, truncation=truncation, head_length=2)
    signature = [tf.TensorSpec([None], tf.string)] * segments

    @tf.function(input_signature=signature)
    def in_graph(*texts):
        return packer.pack_windows(*texts, stride=3, query_length=5)

    for rows in (texts, [t[:1] for t in texts], [[] for _ in texts], [["", ""] for _ in texts]):
        eager = packer.pack_windows(*rows, stride=3, query_length=5)
        graph = in_graph(*(tf.constant(t, tf.string) for t in rows))
        assert graph.keys() == eager.keys()
        for name, wanted in eager.items():
            assert graph[name].dtype == wanted.dtype == "int32"
            np.testing.assert_array_equal(graph[name], wanted)


def test_a_long_query_is_cut_to_leave_room(tokenizer):
    packer = SegmentPacker(tokenizer, sequence_length=10)
    windows = packer.pack_windows(["the film was good"], ["a and of it"], stride=2, query_length=2)
    query = [CLS, *ids("the film"), SEP]
    assert windows["token_ids"][0].tolist()[:9] == [*query, *ids("a and of it"), SEP]


def test_padding_follows_the_longest_window(tokenizer):
    packer = SegmentPacker(tokenizer, sequence_length=64, padding_lengths=(16,))
    assert packer.pack_windows(["good"], stride=9)["token_ids"].shape == (1, 16)
    assert packer.pack_windows(["good " * 70], stride=9)["token_indices"].shape == (2, 64)


def test_one_document(tokenizer):
    packer = SegmentPacker(tokenizer, sequence_length=20)
    windows = packer.pack_windows("good " * 30, stride=10)
    assert windows["token_ids"].shape == (3, 20)
    assert windows["row_ids"].tolist() == [0, 0, 0]
    assert packer.pack_windows("good", stride=10)["token_ids"].shape == (1, 20)
    tf = pytest.importorskip("tensorflow_text") and pytest.importorskip("tensorflow")
    dataset = tf.data.Dataset.from_tensor_slices(["good " * 30, "good"])
    dataset = dataset.map(lambda text: packer.pack_windows(text, stride=10)).unbatch().batch(4)
    batch = next(iter(dataset))
    np.testing.assert_array_equal(batch["token_ids"][:3], windows["token_ids"])


@pytest.mark.parametrize(
    ("segments", "arguments", "error"),
    [
        (1, {"stride": 0}, r"stride must be from 1 to 126.*got 0"),
        (1, {"stride": 127}, r"stride must be from 1 to 126.*got 127"),
        (2, {"stride": 62}, "stride must be from 1 to 61, .* got 62"),
        (2, {"query_length": 0}, "query_length must be from 1 to 124.*got 0"),
        (2, {"query_length": 125}, "query_length must be from 1 to 124.*got 125"),
    ],
)
def test_bad_calls(tokenizer, segments, arguments, error):
    packer = SegmentPacker(tokenizer, sequence_length=128)
    with pytest.raises(ValueError, match=error):
        packer.pack_windows(*[["good"]] * segments, **arguments)


@pytest.mark.parametrize(
    ("sequence_length", "queries", "stride", "query_length"),
    [
        (384, 1, 128, 64),
        (512, 0, 170, 0),
        (128, 1, 30, 64),
        (32, 1, 5, 19),
        (32, 2, 5, 9),
        (4, 0, 1, 0),
    ],
)
def test_the_defaults_follow_the_length(tokenizer, sequence_length, queries, stride, query_length):
    """Google's at Google's length. At 128 its stride of 128 was an error."""
    packer = SegmentPacker(tokenizer, sequence_length)
    windows = packer.pack_windows(*[["not " * 80]] * queries, ["good " * 900])
    first = windows["token_indices"].max(axis=1, where=windows["segment_ids"] == queries, initial=0)
    assert first[1] - first[0] == stride
    counts = np.sum(windows["token_ids"] == VOCABULARY.index("not"), axis=1)
    assert set(counts.tolist()) == {queries * query_length}


def test_more_segments_than_a_row_holds(tokenizer):
    with pytest.raises(ValueError, match="sequence_length=4 cannot hold 3 segments"):
        SegmentPacker(tokenizer, sequence_length=4).pack_windows(["a"], ["a"], ["a"])


@pytest.mark.parametrize(("room", "stride"), [(8, 3), (8, 8), (9, 1), (330, 100), (400, 90)])
def test_strided_windows_share_tokens_by_google_s_rule(room, stride):
    lengths = np.array([0, 1, room, room + 1, 3 * room + 2, 2 * stride + room - 1], "int32")
    ((_, begins, sizes),), row_ids = slide_windows(
        NUMPY, [(None, np.zeros_like(lengths), lengths)], room, stride, 0
    )
    starts, ends = share_strided_windows(NUMPY, begins, sizes, row_ids)
    for row, length in enumerate(lengths):
        windows = np.flatnonzero(row_ids == row)
        for token in range(length):
            context = [
                min(token - begins[w], begins[w] + sizes[w] - 1 - token) + 0.01 * sizes[w]
                if begins[w] <= token < begins[w] + sizes[w]
                else -1
                for w in windows
            ]
            # A hundredth may be rounded, so scores count as equal that differ by less.
            owner = windows[np.flatnonzero(np.array(context) > max(context) - 1e-6)[0]]
            owners = [w for w in windows if begins[w] + starts[w] <= token < begins[w] + ends[w]]
            assert owners == [owner]
