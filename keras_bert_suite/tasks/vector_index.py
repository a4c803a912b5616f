"""The vectors of a corpus, made ready once for many searches."""

import json
from pathlib import Path
from typing import Any, Self

import numpy as np

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.files.atomic_directory import atomic_directory
from keras_bert_suite.files.atomic_file import write_json
from keras_bert_suite.files.messages import reading
from keras_bert_suite.tasks.vector_search import (
    SearchHit,
    check_search,
    check_vectors,
    search_unit_vectors,
    to_unit_length,
)

_VECTORS, _SETTINGS, _FAISS = "vectors.npy", "index.json", "index.faiss"


class VectorIndex:
    """A corpus that is searched often. `TextEmbedder.index` makes it, and `search` takes it.

    `search` over an array checks and normalises all vectors at each call. An index does it once.

    Args:
        vectors: float (M, H), of M texts.
        faiss_factory: str, for `faiss.index_factory`, or None. None compares a query with each
            text. For millions of texts "HNSW32,Flat" or "IVF4096,Flat" compare it with few of
            them, and may miss a near one; see https://github.com/facebookresearch/faiss/wiki.

    Raises:
        ValueError: if there is no vector, or one is not finite.
        ImportError: without faiss: `pip install faiss-cpu`.
    """

    def __init__(self, vectors: np.ndarray, faiss_factory: str | None = None) -> None:
        vectors = _read(vectors)
        check_search(vectors, top_k=1)
        self.vectors = to_unit_length(vectors)
        self.faiss_factory = faiss_factory
        self._faiss = None if faiss_factory is None else _build(self.vectors, faiss_factory)

    def __len__(self) -> int:
        return len(self.vectors)

    def search(self, queries: np.ndarray, top_k: int = 10) -> list[list[SearchHit]]:
        """Finds the vectors with the highest cosine similarity to each query.

        Args:
            queries: float (N, H).
            top_k: int.

        Returns:
            list with a list of at most `top_k` `SearchHit` for each query, the best first.

        Raises:
            ValueError: if `top_k` is less than 1, or a query is not finite or has another width.
        """
        check_search(self.vectors, top_k)
        queries = _read(queries)
        if queries.shape[1] != self.vectors.shape[1]:
            raise ValueError(
                f"The queries have {queries.shape[1]} dimensions, the index has "
                f"{self.vectors.shape[1]}. Encode both with the same embedder."
            )
        queries = to_unit_length(queries)
        if self._faiss is None:
            return search_unit_vectors(queries, self.vectors, top_k)
        scores, ids = self._faiss.search(queries, min(top_k, len(self)))
        return [
            # faiss fills a row up with -1 if it finds less.
            [SearchHit(int(i), float(s)) for i, s in zip(*row, strict=True) if i >= 0]
            for row in zip(ids, scores, strict=True)
        ]

    def save(self, directory: PathLike) -> None:
        """Writes the vectors, and faiss' own index if there is one, to a folder.

        Raises:
            FileExistsError: if the folder exists.
        """
        with atomic_directory(directory) as folder:
            np.save(folder / _VECTORS, self.vectors)
            if self._faiss is not None:
                _import_faiss().write_index(self._faiss, str(folder / _FAISS))
            write_json(folder / _SETTINGS, {"faiss_factory": self.faiss_factory})

    @classmethod
    def load(cls, directory: PathLike) -> Self:
        """Reads what `save` wrote.

        Raises:
            FileNotFoundError: if the folder has no index.
            ValueError: if its files are damaged, or of two indexes.
        """
        directory = Path(directory)
        with reading(directory / _SETTINGS):
            settings = json.loads((directory / _SETTINGS).read_bytes())
            factory = settings["faiss_factory"]
        with reading(directory / _VECTORS):
            index = cls(np.load(directory / _VECTORS, allow_pickle=False))
        index.faiss_factory = factory
        if factory is not None:
            with reading(directory / _FAISS):
                index._faiss = _import_faiss().read_index(str(directory / _FAISS))
            if (index._faiss.ntotal, index._faiss.d) != index.vectors.shape:
                raise ValueError(f"{_VECTORS} and {_FAISS} in {directory} are of two indexes.")
        return index


def _read(vectors: Any) -> np.ndarray:
    vectors = np.asarray(vectors, "float32")
    if vectors.ndim != 2:
        raise ValueError(f"Vectors must be an array (N, H), got the shape {vectors.shape}.")
    check_vectors(vectors)
    return vectors


def _build(vectors: np.ndarray, factory: str) -> Any:
    faiss = _import_faiss()
    try:
        index = faiss.index_factory(vectors.shape[1], factory, faiss.METRIC_INNER_PRODUCT)
        index.train(vectors)
    except RuntimeError as error:  # A factory that faiss does not know, or too few vectors for it.
        reason = str(error).rpartition(": ")[2] or str(error)
        raise ValueError(f"faiss_factory={factory!r}: {reason}") from error
    index.add(vectors)
    return index


def _import_faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        raise ImportError("faiss_factory needs faiss: pip install faiss-cpu") from error
    return faiss
