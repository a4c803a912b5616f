"""Scores a search: how early the relevant documents come."""

import numpy as np

from keras_bert_suite.data.score_counts import check_scored


def score_rankings(rankings, relevant, top_k=(1, 5, 10)):
    """Scores the ranked documents of queries, each ranking a sequence of ids, the best first.

    The gain of a document is its relevance. MRR is the mean of 1 / rank of the first relevant
    document, 0 if no document of the ranking is relevant. Recall at k is the share of the relevant
    documents that are among the first k. nDCG at k is the sum of gain / log2(rank + 1) over the
    first k documents, divided by the same sum for the best possible order. A document is relevant
    only if its relevance is above 0; `relevant` has ids, or a dict of id -> relevance, of each
    query. The result is a dict of `mrr`, and for each k of `top_k` `recall@k` and `ndcg@k`.
    """
    check_scored(rankings)
    gains = [_read_gains(row, documents) for row, documents in enumerate(relevant)]
    for row, ranking in enumerate(rankings):
        if len(set(ranking)) < len(ranking):
            raise ValueError(f"The ranking of query {row} has a document twice: {ranking!s:.60}.")
    found = [
        np.array([gain.get(document, 0) for document in ranking], "float64")
        for ranking, gain in zip(rankings, gains, strict=True)
    ]
    scores = {"mrr": np.mean([_reciprocal_rank(row) for row in found])}
    for k in top_k:
        recalls = [(row[:k] > 0).sum() / len(gain) for row, gain in zip(found, gains, strict=True)]
        best = [np.array(sorted(gain.values(), reverse=True), "float64") for gain in gains]
        shares = [_discount(row[:k]) / _discount(b[:k]) for row, b in zip(found, best, strict=True)]
        scores[f"recall@{k}"], scores[f"ndcg@{k}"] = np.mean(recalls), np.mean(shares)
    return {name: float(score) for name, score in scores.items()}


def _read_gains(row, documents):
    gains = dict(documents) if isinstance(documents, dict) else dict.fromkeys(documents, 1)
    gains = {document: gain for document, gain in gains.items() if gain > 0}
    if not gains:
        raise ValueError(f"Query {row} has no relevant document. Leave such queries out.")
    return gains


def _reciprocal_rank(gains):
    ranks = np.flatnonzero(gains > 0)
    return 1 / (ranks[0] + 1) if len(ranks) else 0.0


def _discount(gains):
    """The discounted cumulative gain of gains in the order of a ranking."""
    return (gains / np.log2(np.arange(len(gains)) + 2)).sum()
