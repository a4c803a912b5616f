import numpy as np

from keras_bert_suite.corpus.token_corpus import TokenCorpus
from keras_bert_suite.pretraining.token_ranges import StreamRanges, TokenRanges


def test_ranges_over_documents_have_a_separator_at_each_end():
    """A separator is the last token of a sentence."""
    corpus = TokenCorpus.from_documents([[[10, 11], [12]], [[20]], [[30, 31, 32]]])
    starts, lengths = np.array([3, 1, 2, 0]), np.array([1, 2, 4, 3])
    documents = np.arange(3), np.array([0, 3, 4, 7])
    ranges = TokenRanges(corpus, *documents, 0, sentence_begins=np.array([0, 2, 3, 4, 7]))
    rows = ranges.read(starts, lengths)
    tokens, sentences = (np.split(rows[name], rows.starts[1:]) for name in rows.arrays)
    assert [row.tolist() for row in tokens] == [
        [20], [11, 12], [12, 0, 20, 0, 30, 31], [10, 11, 12],
    ]  # fmt: skip
    assert [row.tolist() for row in sentences] == [[0], [0, 1], [0, 0, 1, 1, 2, 2], [0, 0, 1]]
    assert {array.dtype.name for array in (*rows.arrays.values(), rows.lengths)} == {"int32"}
    assert [*TokenRanges(corpus, *documents, 0).read(starts, lengths).arrays] == ["token_ids"]


def test_ranges_of_a_stream_begin_and_end_at_any_token():
    corpus = TokenCorpus.from_documents([[[10, 11], [12]], [[20]], [[30, 31, 32]]])
    stream = [10, 11, 12, 0, 20, 0, 30, 31, 32, 0]
    starts, ends = np.array([(i, j) for i in range(10) for j in range(i + 1, 11)]).T
    ranges = StreamRanges(corpus, np.arange(3), np.array([0, 4, 6, 10]), 0)
    rows = ranges.read(starts, ends - starts)
    wanted = [stream[start:end] for start, end in zip(starts, ends, strict=True)]
    assert [row.tolist() for row in np.split(rows["token_ids"], rows.starts[1:])] == wanted
    assert rows["token_ids"].dtype == rows.lengths.dtype == "int32"
