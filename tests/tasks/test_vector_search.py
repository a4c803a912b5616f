import numpy as np
import pytest

from keras_bert_suite.heads.vectors import vector_search
from keras_bert_suite.heads.vectors.vector_search import search_vectors


@pytest.mark.parametrize("top_k", [1, 7, 50])
def test_the_search_is_exact(monkeypatch, top_k):
    monkeypatch.setattr(vector_search, "_CORPUS_BLOCK", 8)
    monkeypatch.setattr(vector_search, "_QUERY_BLOCK", 4)
    rng = np.random.default_rng(0)
    # Whole numbers make ties, and the first of equal scores is to come first.
    queries, corpus = rng.integers(-1, 2, size=(9, 3)), rng.integers(-1, 2, size=(40, 3))
    found = search_vectors(queries.astype("float32"), corpus.astype("float32"), top_k)
    a, b = (vector_search.to_unit_length(x) for x in (queries, corpus))
    scores = a @ b.T
    wanted = np.argsort(-scores.round(6), axis=1, kind="stable")[:, :top_k]
    for row, hits in enumerate(found):
        assert len(hits) == min(top_k, 40)
        got = [hit.score for hit in hits]
        np.testing.assert_allclose(got, scores[row, wanted[row]], atol=1e-6)
        np.testing.assert_allclose(got, scores[row, [hit.id for hit in hits]], atol=1e-6)
    whole = search_vectors(np.eye(3, dtype="float32"), np.eye(3, dtype="float32")[[0, 1, 1, 2]], 2)
    assert [[hit.id for hit in row] for row in whole] == [[0, 1], [1, 2], [3, 0]]


def test_bad_input():
    empty, vectors = np.zeros((0, 3), "float32"), np.ones((2, 3), "float32")
    assert search_vectors(empty, vectors, 1) == []
    with pytest.raises(ValueError, match="The corpus is empty"):
        search_vectors(vectors, empty, 1)
    with pytest.raises(ValueError, match="top_k must be an integer of at least 1, got 0"):
        search_vectors(vectors, vectors, 0)
