"""Finds hard negatives: texts that a search takes for the answer, and that are none."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from keras_bert_suite.argument_checks import (
    check_choice,
    check_finite,
    check_integer,
    with_article,
)
from keras_bert_suite.data.arrays import check_same_rows
from keras_bert_suite.data.rows import read_texts
from keras_bert_suite.heads.vectors.vector_index import VectorIndex
from keras_bert_suite.heads.vectors.vector_search import to_unit_length

#: How many times `num_negatives` are looked at, if limits may leave candidates out.
_SPARE = 10


@dataclasses.dataclass(frozen=True)
class MinedNegatives:
    """N pairs of a query and its positive, with the negatives that were found for them.

    Attributes:
        x: tuple of three lists of N, the queries, the positives, and lists of at most
            `num_negatives` str. `TextEmbedder.fit` takes it with `InBatchNegatives`.
        positive_scores: list of N floats, of the ranker, or cosine similarities.
        negative_scores: list of N lists of floats, the highest first.
        left_out: dict of a limit -> int, how many candidates it has left out.
    """

    x: tuple[list[str], list[str], list[list[str]]]
    positive_scores: list[float]
    negative_scores: list[list[float]]
    left_out: dict[str, int]

    @property
    def triplets(self) -> tuple[list[str], list[str], list[str]]:
        """Three lists of M, a row for each negative: rows for `Triplet` and for `MarginMSE`."""
        columns: tuple[list[str], ...] = ([], [], [])
        for query, positive, negatives in zip(*self.x, strict=True):
            for negative in negatives:
                for column, text in zip(columns, (query, positive, negative), strict=True):
                    column.append(text)
        queries, positives, found = columns
        return queries, positives, found

    @property
    def triplet_scores(self) -> np.ndarray:
        """float32 (M, 2), the scores of the positive and the negative: labels for `MarginMSE`."""
        scored = zip(self.positive_scores, self.negative_scores, strict=True)
        pairs = [(own, other) for own, others in scored for other in others]
        return np.array(pairs, "float32").reshape(-1, 2)


@dataclasses.dataclass(frozen=True)
class _Limits:
    """Which candidates of a query are its negatives; the arguments of `mine_negatives`."""

    num_negatives: int
    range_min: int
    range_max: int
    absolute_margin: float | None
    relative_margin: float | None
    min_score: float | None
    max_score: float | None
    is_random: bool

    @property
    def has_scores(self) -> bool:
        """Whether scores leave candidates out."""
        limits = self.absolute_margin, self.relative_margin, self.min_score, self.max_score
        return any(limit is not None for limit in limits)

    def check(self, ranker: Any) -> None:
        """Raises a ValueError for an argument out of its range, or a ranker without a limit."""
        for name in ("absolute_margin", "relative_margin", "min_score", "max_score"):
            if getattr(self, name) is not None:
                check_finite(name, getattr(self, name))
        check_integer("range_max", self.range_max)
        if self.num_negatives > self.range_max - self.range_min:
            raise ValueError(
                f"num_negatives={self.num_negatives} are chosen among the candidates from "
                f"range_min={self.range_min} to range_max={self.range_max}, which are "
                f"{max(self.range_max - self.range_min, 0)}. Raise range_max."
            )
        if ranker is not None and not self.has_scores:
            raise ValueError(
                "A ranker vetoes candidates by its scores, got no limit for them. Pass "
                "absolute_margin, relative_margin, min_score or max_score."
            )

    def leave_out(self, scores: np.ndarray, positive: float) -> Iterator[tuple[str, np.ndarray]]:
        """Pairs of a limit and bool (C,), whether it leaves out a candidate with a score."""
        if self.absolute_margin is not None:
            yield "absolute_margin", scores + np.float32(self.absolute_margin) > positive
        if self.relative_margin is not None:
            yield "relative_margin", scores > positive - abs(positive) * self.relative_margin
        if self.max_score is not None:
            yield "max_score", scores > self.max_score
        if self.min_score is not None:
            yield "min_score", scores < self.min_score

    def choose(
        self, scores: np.ndarray, positive: float, rng: np.random.Generator, left_out: Any
    ) -> np.ndarray:
        """The places of the negatives among candidates float32 (C,), the highest score first."""
        keeps = np.ones(len(scores), bool)
        for name, wrong in self.leave_out(scores, positive):
            left_out[name] = left_out.get(name, 0) + int((keeps & wrong).sum())
            keeps &= ~wrong
        places = np.flatnonzero(keeps)
        places = places[np.argsort(-scores[places], kind="stable")][self.range_min : self.range_max]
        if self.is_random and len(places) > self.num_negatives:
            places = places[np.sort(rng.choice(len(places), self.num_negatives, replace=False))]
        return places[: self.num_negatives]


def mine_negatives(
    embedder: Any,
    queries: Sequence[str],
    positives: Sequence[str],
    corpus: Sequence[str] | VectorIndex | None = None,
    *,
    num_negatives: int = 3,
    range_min: int = 0,
    range_max: int | None = None,
    absolute_margin: float | None = None,
    relative_margin: float | None = None,
    min_score: float | None = None,
    max_score: float | None = None,
    ranker: Any = None,
    sampling: Literal["top", "random"] = "top",
    seed: int = 0,
    query_prompt: str | None = None,
    corpus_prompt: str | None = None,
    batch_size: int | None = None,
) -> MinedNegatives:
    """Finds hard negatives of queries, the texts nearest to a query that are not its positives.

    A search engine that is trained on pairs alone meets only easy negatives. Train it once on
    pairs, mine with it, and train it again. Many of the nearest texts of a large corpus are right
    answers that nobody has marked, so leave the nearest out: `relative_margin=0.05` is a good
    start, a `ranker` that knows better is best.

    Each pair comes once, and so does each text among the negatives of a query. All positives of a
    query, and the query itself, are no negatives of it.

    Args:
        embedder: `TextEmbedder`.
        queries, positives: N str each, pairs that match. A query may come with several positives.
        corpus: list of str in which negatives are searched, beside the positives; a `VectorIndex`
            that keeps its texts, such as `embedder.index(corpus, keep_texts=True)`, which is
            searched as it is; or None for the positives alone.
        num_negatives: int, the most negatives of a query.
        range_min: int, how many of the nearest candidates are passed over.
        range_max: int, how many candidates are looked at, positives not counted. None is enough for
            `num_negatives`, and ten times as many if limits may leave candidates out.
        absolute_margin: float. The score of a negative is at least so far below the score of the
            positive, of the lowest one if a query has several.
        relative_margin: float. As `absolute_margin`, as a share of the size of this score.
        min_score, max_score: floats, between which the score of a negative is.
        ranker: `TextRanker`, or another object whose `predict((queries, texts))` returns float
            (N,). Its scores then take the place of the cosine similarities, in the margins, the
            limits and the order: a veto of a cross-encoder.
        sampling: "top" for the highest scores, or "random" among all that the limits leave.
        seed: int, of "random".
        query_prompt, corpus_prompt: names of prompts of the embedder, or None. An index has its
            own.
        batch_size: int, as for `predict`.

    Returns:
        `MinedNegatives`.

    Raises:
        ValueError: for an argument out of its range, another embedder or ranker, a ranker without
            a limit for its scores, an index without texts, or if no query has a negative.

    Sources: Xiong et al., 2020, ANCE (https://arxiv.org/abs/2007.00808); Moreira et al., 2024,
    NV-Retriever (https://arxiv.org/abs/2407.15831), section 3, on margins; the rules are those of
    `mine_hard_negatives` of sentence-transformers, which does not leave the query itself out.
    """
    if not hasattr(embedder, "encode_for"):
        raise ValueError(
            f"embedder must be a TextEmbedder, got {with_article(embedder)}. Open one: "
            "TextEmbedder.from_preset(checkpoint)."
        )
    if ranker is not None and not hasattr(ranker, "predict"):
        raise ValueError(
            "ranker must be a TextRanker, or an object whose predict((queries, texts)) returns a "
            f"number for each pair, got {with_article(ranker)}."
        )
    check_integer("seed", seed)
    pairs, own = _read_pairs(queries, positives)
    most = max(map(len, own.values()), default=0)
    check_choice("sampling", sampling, ("top", "random"))
    has_limits = any(limit is not None for limit in (absolute_margin, relative_margin, max_score))
    has_limits = has_limits or (ranker is not None and min_score is not None)
    check_integer("num_negatives", num_negatives, at_least=1)
    check_integer("range_min", range_min)
    if range_max is None:
        range_max = range_min + num_negatives * (_SPARE if has_limits else 1) + most
    limits = _Limits(
        num_negatives, range_min, range_max, absolute_margin, relative_margin, min_score, max_score,
        is_random=sampling == "random",
    )  # fmt: skip
    limits.check(ranker)
    index = _open_index(embedder, corpus, pairs, corpus_prompt, batch_size)
    if index.precision == "binary" and ranker is None and limits.has_scores:
        raise ValueError(
            "The scores of an index with precision='binary' are no cosine similarities, so the "
            "limits would mean nothing. Make it with 'float32' or 'int8', or pass a ranker."
        )
    vectors = embedder.predict(list(own), batch_size, prompt=query_prompt, verbose=0)
    candidates = [
        _list_candidates(row, {query, *(pairs[place][1] for place in places)})
        for (query, places), row in zip(
            own.items(), embedder.search(vectors, index, range_max + most), strict=True
        )
    ]
    if ranker is not None:
        scored = _rank(ranker, pairs, own, candidates, batch_size)
    else:
        unit = to_unit_length(
            embedder.encode_for(index, [text for _, text in pairs], batch_size, 0)
        )
        near = dict(zip(own, to_unit_length(vectors), strict=True))
        positive_scores = [float(near[q] @ v) for (q, _), v in zip(pairs, unit, strict=True)]
        scored = (
            positive_scores,
            [np.array([h.score for h in row], "float32") for row in candidates],
        )
    return _choose(limits, pairs, own, candidates, scored, seed)


def _read_pairs(queries, positives):
    """(list of different pairs, dict of query -> the places of its pairs)."""
    columns = read_texts(queries, "queries"), read_texts(positives, "positives")
    check_same_rows(*columns, names=("queries", "positives"))
    pairs = list(dict.fromkeys(zip(*(column.tolist() for column in columns), strict=True)))
    own: dict[str, list[int]] = {}
    for place, (query, _) in enumerate(pairs):
        own.setdefault(query, []).append(place)
    return pairs, own


def _list_candidates(hits, own):
    """The first hit of each text that is neither a query nor one of its positives."""
    found: dict[str, Any] = {}
    for hit in hits:
        if hit.text not in own:
            found.setdefault(hit.text, hit)
    return list(found.values())


def _open_index(embedder, corpus, pairs, corpus_prompt, batch_size):
    """The `VectorIndex` that is searched. It keeps its texts."""
    if not isinstance(corpus, VectorIndex):
        texts = [] if corpus is None else read_texts(corpus, "corpus").tolist()
        texts = list(dict.fromkeys([*texts, *(positive for _, positive in pairs)]))
        return embedder.index(texts, batch_size, prompt=corpus_prompt, keep_texts=True, verbose=0)
    if corpus.texts is None:
        raise ValueError(
            "The index has no texts, and negatives are texts. Make it by "
            "embedder.index(corpus, keep_texts=True)."
        )
    if corpus_prompt is not None and corpus_prompt != corpus.prompt:
        raise ValueError(
            f"corpus_prompt={corpus_prompt!r}, and the index was made with the prompt "
            f"{corpus.prompt!r}. Leave corpus_prompt out."
        )
    return corpus


def _rank(ranker, pairs, own, candidates, batch_size):
    """(list of the scores of pairs, list of float32 (C,) of the candidates of each query)."""
    asked = [(query, hit.text) for query, row in zip(own, candidates, strict=True) for hit in row]
    columns = tuple(map(list, zip(*pairs, *asked, strict=True)))
    scores = np.asarray(ranker.predict(columns, batch_size), "float32")
    if scores.shape != (len(pairs) + len(asked),) or not np.isfinite(scores).all():
        raise ValueError(
            f"The ranker must return a finite number for each of {len(pairs) + len(asked)} pairs, "
            f"got an array of shape {scores.shape}."
        )
    ends = np.cumsum([len(row) for row in candidates])[:-1]
    return scores[: len(pairs)].tolist(), np.split(scores[len(pairs) :], ends)


def _choose(limits, pairs, own, candidates, scored, seed):
    """The `MinedNegatives` of the candidates of each query, and of their scores."""
    positive_scores, scores = scored
    found, found_scores = [[] for _ in pairs], [[] for _ in pairs]
    left_out: dict[str, int] = {}
    rows = zip(own.values(), candidates, scores, strict=True)
    for number, (places, row, row_scores) in enumerate(rows):
        lowest = min(positive_scores[place] for place in places)
        chosen = limits.choose(row_scores, lowest, np.random.default_rng([seed, number]), left_out)
        for place in places:
            found[place] = [row[i].text for i in chosen]
            found_scores[place] = row_scores[chosen].tolist()
    if not any(found):
        raise ValueError(
            f"No query has a negative: of {sum(map(len, candidates))} candidates of {len(own)} "
            f"queries, range_min={limits.range_min} passes over the first {limits.range_min} of "
            f"each query, and limits leave out {left_out or 'none'}. Pass a larger corpus, or "
            "weaker limits."
        )
    x = [query for query, _ in pairs], [text for _, text in pairs], found
    return MinedNegatives(x, positive_scores, found_scores, left_out)
