"""Exact search for the nearest vectors."""

from typing import Any, NamedTuple

import numpy as np

from keras_bert_suite.argument_checks import check_integer

#: How many vectors of the corpus are compared at once. The scores of a block of 256 queries then
#: take 8 MB.
_CORPUS_BLOCK = 8192
_QUERY_BLOCK = 256


class SearchHit(NamedTuple):
    """A text that a search has found.

    Attributes:
        id: int, the position of the text in the corpus; or the id of an index with ids.
        score: float, the cosine similarity of the query and the text.
    """

    id: Any
    score: float


class TextHit(NamedTuple):
    """A text that a search has found, of an index that keeps texts.

    Attributes:
        id, score: as for `SearchHit`.
        text: str.
    """

    id: Any
    score: float
    text: str


def search_vectors(queries, corpus, top_k):
    """Finds the vectors of a corpus with the highest cosine similarity, by comparing all.

    Of queries (N, H) and a corpus (M, H) it makes a list of at most `top_k` `SearchHit` for each
    query, the best first. Hits with equal scores are in the order of the corpus.
    """
    check_search(corpus, top_k)
    return search_unit_vectors(to_unit_length(queries), corpus, top_k, prepare=to_unit_length)


def check_search(corpus, top_k):
    """Raises a ValueError if a search in a corpus of vectors or texts finds nothing."""
    check_integer("top_k", top_k, at_least=1)
    if not len(corpus):
        raise ValueError("The corpus is empty, so nothing can be found. Pass at least one text.")


def search_unit_vectors(queries, corpus, top_k, prepare=np.asarray):
    """As `search_vectors`, of queries of length 1, and a corpus that `prepare` makes so."""
    found = []
    for first in range(0, len(queries), _QUERY_BLOCK):
        found += _search_block(queries[first : first + _QUERY_BLOCK], corpus, top_k, prepare)
    return [[SearchHit(int(i), float(s)) for i, s in zip(*hits, strict=True)] for hits in found]


def _search_block(queries, corpus, top_k, prepare):
    """A list of (ids, scores) for each query."""
    found = [(np.zeros(0, "int64"), np.zeros(0, "float32"))] * len(queries)
    for first in range(0, len(corpus), _CORPUS_BLOCK):
        block = prepare(corpus[first : first + _CORPUS_BLOCK])
        scores = queries @ block.T
        for row, (ids, best) in enumerate(found):
            near = _find_largest(scores[row], top_k)
            ids, best = np.append(ids, near + first), np.append(best, scores[row, near])
            # The ids of equal scores ascend, and a stable sort keeps this order.
            order = np.argsort(-best, kind="stable")[:top_k]
            found[row] = ids[order], best[order]
    return found


def _find_largest(scores, number):
    """The positions of the `number` largest scores, and of all ties for the last one, ascending."""
    if len(scores) <= number:
        return np.arange(len(scores))
    threshold = -np.partition(-scores, number - 1)[number - 1]
    return np.flatnonzero(scores >= threshold)


def to_unit_length(vectors):
    """float32 vectors (..., H) of length 1. The vector 0 stays as it is."""
    vectors = np.asarray(vectors, "float32")
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


def check_vectors(vectors):
    """Raises a ValueError unless an array is (N, H) and finite. A search with NaN finds nothing."""
    if vectors.ndim != 2:
        raise ValueError(f"Vectors must be an array (N, H), got the shape {vectors.shape}.")
    # The sum of a row is not finite if one of its numbers is not. A sum takes less memory than a
    # comparison of each number.
    wrong = np.flatnonzero(~np.isfinite(np.sum(vectors, axis=-1, dtype="float64")))
    if len(wrong):
        raise ValueError(
            f"The vector at row {wrong[0]} has NaN or infinite numbers. Leave it out, or look for "
            "NaN in the weights of the embedder."
        )
