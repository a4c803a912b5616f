import numpy as np

from keras_bert_suite.corpus.token_corpus import TokenCorpus
from keras_bert_suite.pretraining.pretraining_batches import TokenRanges


def test_ranges_over_documents_have_a_separator_at_each_end():
    corpus = TokenCorpus.from_documents([[[10, 11], [12]], [[20]], [[30, 31, 32]]])
    ranges = TokenRanges(corpus, np.arange(3), np.array([0, 3, 4, 7]), separator_id=0)
    ids, starts, lengths = ranges.read(np.array([3, 1, 2, 0]), np.array([1, 2, 4, 3]))
    rows = [ids[a : a + n].tolist() for a, n in zip(starts, lengths, strict=True)]
    assert rows == [[20], [11, 12], [12, 0, 20, 0, 30, 31], [10, 11, 12]]
    assert ids.dtype == starts.dtype == lengths.dtype == "int32"
