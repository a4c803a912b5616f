"""Compares, searches and scores texts by their vectors."""

import math
import weakref
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from keras import ops

from keras_bert_suite.annotations import Inputs
from keras_bert_suite.data.score_counts import check_scored
from keras_bert_suite.heads.base.input_checks import check_in_memory
from keras_bert_suite.heads.base.label_scores import correlate, rank
from keras_bert_suite.heads.vectors.scores import score_rankings
from keras_bert_suite.heads.vectors.vector_index import VectorIndex
from keras_bert_suite.heads.vectors.vector_search import (
    SearchHit,
    TextHit,
    check_vectors,
    search_vectors,
    to_unit_length,
)
from keras_bert_suite.tokenizers.text_tokenizer import TextTokenizer

#: Texts whose vectors say by which weights and settings a corpus was encoded. A digest of the
#: weights would differ with the precision.
PROBES = ("The film was good, and it rained in 2024.", "a b c 1 2 3", "今天北京下雨。")

#: How many weights say whether an embedder has changed: biases and norms, which are small. A
#: training that changes other weights alone is known by the steps of its optimizer.
_NUM_SAMPLED = 50

#: The ids of the relevant documents of a query, or a dict of id -> relevance.
Relevant = Collection[Any] | Mapping[Any, float]


class SemanticSearch:
    """A task whose `predict` turns texts into vectors.

    Instead of texts, every method also takes vectors, a float array (N, H). So a corpus can be
    encoded once for many searches.
    """

    def similarity(self, a: Inputs, b: Inputs, batch_size: int | None = None) -> np.ndarray:
        """Compares each text of `a` with each text of `b`.

        Args:
            a: N texts or vectors.
            b: M texts or vectors.
            batch_size: int, as for `predict`.

        Returns:
            float32 (N, M), cosine similarities.
        """
        a, b = self._read_vectors(a, batch_size), self._read_vectors(b, batch_size)
        return to_unit_length(a) @ to_unit_length(b).T

    def similarity_pairwise(
        self, a: Inputs, b: Inputs, batch_size: int | None = None
    ) -> np.ndarray:
        """Compares the texts of pairs.

        Args:
            a, b: N texts or vectors each.
            batch_size: int, as for `predict`.

        Returns:
            float32 (N,), cosine similarities.

        Raises:
            ValueError: if `a` and `b` have different numbers of texts or vectors.
        """
        a, b = self._read_vectors(a, batch_size), self._read_vectors(b, batch_size)
        if len(a) != len(b):
            raise ValueError(
                "similarity_pairwise compares a text with the text in the same place, got "
                f"{len(a)} and {len(b)} texts. `similarity` compares each with each."
            )
        return (to_unit_length(a) * to_unit_length(b)).sum(axis=-1)

    def index(
        self,
        corpus: Inputs,
        batch_size: int | None = None,
        faiss_factory: str | None = None,
        precision: str = "float32",
        prompt: str | None = None,
        *,
        ids: Sequence[Any] | None = None,
        keep_texts: bool = False,
        verbose: str | int = "auto",
    ) -> VectorIndex:
        """Makes a corpus ready for many searches: a service has one for as long as it runs.

        `index.add(texts)` adds texts later, `index.save(folder)` writes it.

        Args:
            corpus: texts or vectors.
            batch_size, verbose: as for `predict`, whose progress bar it shows.
            faiss_factory, precision, ids: see `VectorIndex`.
            prompt: of texts, as for `predict`.
            keep_texts: bool, whether the index keeps the texts, and a search returns them.

        Raises:
            ValueError: as `VectorIndex`, or if the texts of vectors shall be kept.
        """
        if keep_texts and _are_vectors(corpus):
            raise ValueError(
                "keep_texts is for a corpus of texts, got vectors. Pass "
                "VectorIndex(vectors, texts=texts)."
            )
        texts = list(corpus) if keep_texts else None
        vectors = self._read_vectors(texts or corpus, batch_size, prompt, verbose)
        index = VectorIndex(vectors, faiss_factory, precision, ids=ids, texts=texts)
        index.probes, index.tokenizer_digest = self.find_probes()
        index.embedder, index.prompt = self, prompt
        return index

    def encode_for(
        self, index: VectorIndex, texts: Sequence[str], batch_size: int | None, verbose: str | int
    ) -> np.ndarray:
        """The vectors of texts for an index that this embedder has made, float32 (N, H)."""
        if index.probes is not None:
            self._check_index(index)
        return self._read_vectors(texts, batch_size, index.prompt, verbose)

    def search(
        self,
        queries: Inputs,
        corpus: Inputs | VectorIndex,
        top_k: int = 10,
        batch_size: int | None = None,
        prompt: str | None = None,
    ) -> list[list[SearchHit]] | list[list[TextHit]]:
        """Finds the texts of a corpus that are most similar to queries.

        The search is exact: each query is compared with each text. It goes block by block, so its
        memory does not grow with the number of comparisons.

        Args:
            queries: texts or vectors.
            corpus: texts or vectors, or the result of `index`. An index is faster from the second
                search on.
            top_k: int, how many texts are found for each query. If the corpus has fewer texts, all
                are found.
            batch_size: int, as for `predict`.
            prompt: of queries that are texts, as for `predict`. A corpus of texts gets none: make
                an index of it with the prompt of passages.

        Returns:
            list with a list of `SearchHit` for each query, the best first. A hit is a named tuple
            of `id`, the position of the text in the corpus, and `score`, the cosine similarity. An
            index may have ids of its own, and return its texts; see `VectorIndex.search`.

        Raises:
            ValueError: if the corpus is empty, `top_k` is less than 1, a vector is not finite, or
                another embedder has made the index.
        """
        are_texts = not _are_vectors(queries)
        queries = self._read_vectors(queries, batch_size, prompt)
        if isinstance(corpus, VectorIndex):
            if are_texts and corpus.probes is not None:
                self._check_index(corpus)
            return corpus.search(queries, top_k)
        return search_vectors(queries, self._read_vectors(corpus, batch_size), top_k)

    def score(
        self, pairs: Inputs, scores: Sequence[float], batch_size: int | None = None
    ) -> dict[str, float]:
        """Compares the similarities of pairs of texts with scores that people gave.

        Args:
            pairs: tuple of two columns of texts or vectors; or a DataFrame or dict of two columns.
            scores: numbers, one for each pair.
            batch_size: int, as for `predict`.

        Returns:
            dict of `spearman` and `pearson`, the correlations of the cosine similarities with
            the scores.

        Raises:
            ValueError: if there is not one finite score for each pair.
        """
        a, b = self._read_pairs(pairs)
        wanted = np.asarray(scores, "float64").reshape(-1)
        check_scored(wanted)
        cosines = self.similarity_pairwise(a, b, batch_size).astype("float64")
        if wanted.shape != cosines.shape or not np.isfinite(wanted).all():
            raise ValueError(
                f"Wanted a finite score for each of {len(cosines)} pairs, got an array of shape "
                f"{wanted.shape}. Correct a score that is NaN, or leave its pair out."
            )
        return {
            "spearman": correlate(rank(cosines), rank(wanted)),
            "pearson": correlate(cosines, wanted),
        }

    def score_retrieval(
        self,
        queries: Mapping[Any, str] | Sequence[str],
        corpus: Mapping[Any, str] | Sequence[str],
        relevant: Mapping[Any, Relevant] | Sequence[Relevant],
        top_k: Sequence[int] = (1, 5, 10),
        batch_size: int | None = None,
    ) -> dict[str, float]:
        """Searches a corpus for queries, and scores the results.

        Args:
            queries: dict of query id -> text; or a list of texts, whose ids are their positions.
            corpus: dict of document id -> text; or a list of texts, whose ids are their positions.
            relevant: dict of query id -> the ids of its relevant documents, or a dict of document
                id -> relevance; or a list of such ids, in the order of the queries. Queries without
                an entry, or with an empty one, are left out.
            top_k: ints, the values of k in the names of scores. A search finds as many documents as
                the largest k.
            batch_size: int, as for `predict`.

        Returns:
            dict of `mrr`, and for each k `recall@k` and `ndcg@k`; see `score_rankings`.

        Raises:
            ValueError: if the corpus is empty, no query has relevant documents, the documents of a
                query are a str or a number, or one is not in the corpus; or if there is not an
                entry of a list `relevant` for each query.
        """
        if not isinstance(relevant, Mapping) and len(relevant) != len(queries):
            raise ValueError(
                f"A list of relevant documents needs an entry for each of the {len(queries)} "
                f"queries, got {len(relevant)}."
            )
        texts, documents = _name_by_position(queries), _name_by_position(corpus)
        wanted = _name_by_position(relevant)
        for query, ids in wanted.items():
            if isinstance(ids, str) or not hasattr(ids, "__len__"):
                raise ValueError(
                    f"relevant[{query!r}] must be a collection of document ids, got {ids!r}. One "
                    f"id is a set of one: {{{ids!r}}}."
                )
            for document in ids:
                if document not in documents:
                    raise ValueError(
                        f"Document {document!r} is relevant to query {query!r}, but is no id of "
                        "the corpus. Add it, or leave it out. The ids of a list are positions, "
                        "0, 1 and so on."
                    )
        asked = [query for query in texts if len(wanted.get(query, ()))]
        hits = self.search(
            [texts[query] for query in asked], list(documents.values()), max(top_k), batch_size
        )
        names = list(documents)
        rankings = [[names[hit.id] for hit in row] for row in hits]
        return score_rankings(rankings, [wanted[query] for query in asked], top_k)

    def _read_pairs(self, pairs):
        check_in_memory(pairs)
        if isinstance(pairs, list):  # Two pairs, or two columns?
            raise ValueError(
                "Wanted a tuple of two columns, (first_texts, second_texts), got a list of "
                f"{len(pairs)}. Pass tuple(map(list, zip(*pairs))) for a list of pairs, and "
                "tuple(columns) for a list of columns."
            )
        if isinstance(pairs, tuple):
            columns = list(pairs)
        else:  # A DataFrame or a dict.
            columns = [pairs[name] for name in pairs]
        if len(columns) != 2 or isinstance(columns[0], str):
            raise ValueError(
                f"Wanted two columns of texts, got {len(columns)}. Pass a tuple, (first_texts, "
                "second_texts)."
            )
        return columns

    def _read_vectors(self, x, batch_size, prompt=None, verbose=0):
        """float32 (N, H), of texts, with a named prompt or None, or of vectors."""
        if _are_vectors(x):
            check_vectors(x)
            return x
        vectors = self.predict(x, batch_size, prompt=prompt, verbose=verbose)
        check_vectors(vectors)
        return vectors

    def find_probes(self) -> tuple[np.ndarray | None, str | None]:
        """(`probes`, `tokenizer_digest`) of a `VectorIndex` of vectors by this embedder."""
        return self._encode_probes(), self._find_digest()

    def _encode_probes(self):
        """The vectors by which an index knows its embedder; None if it takes no texts."""
        if self.preprocessor is None:
            return None
        return to_unit_length(np.asarray(self.predict(list(PROBES), verbose=0), "float32"))

    def _find_digest(self):
        """str, the digest of a tokenizer of this package, or None."""
        tokenizer = getattr(self.preprocessor, "tokenizer", None)
        return tokenizer.digest if isinstance(tokenizer, TextTokenizer) else None

    def _check_index(self, index):
        """Checks that this embedder has made an index.

        To encode the probes takes longer than to encode a query. So they are encoded again only if
        the embedder has changed since.
        """
        # Keras would take the attribute for a part of the model.
        checked = vars(self).setdefault("checked_indexes", weakref.WeakKeyDictionary())
        state = (self.preprocessor, self._find_digest(), self._sample_weights())
        if checked.get(index) != state:
            index.check_embedder(self._encode_probes(), self._find_digest())
            checked[index] = state

    def _sample_weights(self):
        """bytes, which differ after a training, and after other weights were loaded."""
        smallest = sorted(self.weights, key=lambda weight: math.prod(weight.shape))[:_NUM_SAMPLED]
        if self.optimizer is not None:
            smallest.append(self.optimizer.iterations)
        # One array, since each has to be fetched from the accelerator.
        return ops.convert_to_numpy(ops.concatenate([ops.ravel(w) for w in smallest])).tobytes()


def _are_vectors(x):
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"


def _name_by_position(values: Mapping[Any, Any] | Sequence[Any]) -> Mapping[Any, Any]:
    """A dict as it is; a dict of position -> value for a list."""
    if isinstance(values, str):
        raise ValueError(f"Wanted a dict or a list of texts, got the text {values[:40]!r}.")
    return values if isinstance(values, Mapping) else dict(enumerate(values))
