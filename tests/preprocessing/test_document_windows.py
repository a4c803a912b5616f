import numpy as np
import pytest
from small_texts import VOCABULARY

from keras_bert_suite import SegmentPacker, WordPieceTokenizer
from keras_bert_suite.heads.documents.windows import keep_windows, pack_documents
from keras_bert_suite.preprocessing.packing import NUMPY

DOCUMENTS = ["good bad good plot film", "", "film " * 11, "good"]


def make_packer(**kwargs):
    return SegmentPacker(WordPieceTokenizer(VOCABULARY, pad_token="un"), 4, **kwargs)


@pytest.mark.parametrize("max_windows", [1, 2, 3, 7])
def test_windows_at_equal_distances(max_windows):
    counts = [1, 9, 3, 40]
    places = keep_windows(NUMPY, np.repeat(range(4), counts), 4, max_windows)
    assert places.shape == (4, min(max_windows, 40))
    starts = np.cumsum([0, *counts])[:4]
    for row, start, count in zip(places, starts, counts, strict=True):
        kept = row[row >= 0] - start
        assert (row >= 0).tolist() == [i < min(count, max_windows) for i in range(len(row))]
        ends = (0, 0) if max_windows == 1 else (0, count - 1)
        assert (kept[0], kept[-1]) == ends
        if len(kept) > 1:
            steps = np.diff(kept)
            assert steps.min() >= 1 and steps.max() - steps.min() <= 1


def test_arrays_and_tensors_are_equal():
    tf = pytest.importorskip("tensorflow")
    pytest.importorskip("tensorflow_text")
    packer = make_packer(padding_lengths=None)
    arrays = pack_documents(packer, (DOCUMENTS,), max_windows=4)
    assert {array.shape for array in arrays.values()} == {(4, 4, 4)}
    words = ("good", "bad", "plot", "film", "un")
    good, bad, plot, film, pad = map(VOCABULARY.index, words)
    assert arrays["token_ids"][0].tolist() == [
        [2, good, bad, 3],
        [2, good, plot, 3],
        [2, film, 3, pad],
        [pad] * 4,
    ]
    assert arrays["padding_mask"][1].tolist() == [[1, 1, 0, 0], [0] * 4, [0] * 4, [0] * 4]
    graph = tf.function(lambda texts: pack_documents(packer, (texts,), max_windows=4))
    for name, tensor in graph(tf.constant(DOCUMENTS)).items():
        np.testing.assert_array_equal(tensor, arrays[name])
    nothing = tf.constant([], tf.string)
    shapes = {tuple(tensor.shape) for tensor in graph(nothing).values()}
    assert shapes == {
        array.shape for array in pack_documents(packer, ([],), max_windows=4).values()
    }


def test_questions_are_in_every_window():
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), 12, padding_lengths=None)
    questions, documents = ["good " * 20, "bad"], ["film " * 7, "plot " * 2]
    packed = pack_documents(packer, (questions, documents), max_windows=5)
    good, bad, film, plot = (VOCABULARY.index(word) for word in ("good", "bad", "film", "plot"))
    # Of 9 places a question has 6, and so the windows of the document begin 3 tokens apart.
    rows = [[2, *[good] * 6, 3, *[film] * n, 3, *[0] * (3 - n)] for n in (3, 3, 1)]
    assert packed["token_ids"][0].tolist() == rows
    assert packed["token_ids"][1].tolist() == [
        [2, bad, 3, plot, plot, 3, *[0] * 6],
        *[[0] * 12] * 2,
    ]
    # Of 8 places two questions have 2 each.
    packed = pack_documents(packer, (questions, questions, documents), max_windows=5)
    row = [2, good, good, 3, good, good, 3, *[film] * 4, 3]
    assert packed["token_ids"][0, 0].tolist() == row


def test_few_shapes_where_each_is_compiled():
    packer = make_packer(padding_lengths=(4,))
    for num_words, wanted in ((2, 1), (10, 6), (14, 8), (18, 10), (1000, 10)):
        packed = pack_documents(packer, (["film " * num_words],), max_windows=10)
        assert packed["token_ids"].shape == (1, wanted, 4)
