"""The vectors of a corpus, made ready once for many searches."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.argument_checks import check_choice
from keras_bert_suite.files.atomic_directory import atomic_directory
from keras_bert_suite.files.atomic_file import write_json
from keras_bert_suite.files.messages import reading
from keras_bert_suite.files.part_names import PLAN
from keras_bert_suite.heads.vectors.vector_parts import read_vector_parts
from keras_bert_suite.heads.vectors.vector_search import (
    SearchHit,
    TextHit,
    check_search,
    check_vectors,
    search_unit_vectors,
    to_unit_length,
)

_VECTORS, _SETTINGS, _FAISS, _PROBES = "vectors.npy", "index.json", "index.faiss", "probes.npy"
_ROWS = "rows.json"

#: The least cosine of the vectors of one text by one embedder, on any backend and in any precision.
_SAME = 0.98

#: The precisions of an index, and how its numbers are kept.
DTYPES = {"float32": "float32", "int8": "int8", "binary": "uint8"}

#: The attributes in index.json.
_SAVED = ("faiss_factory", "precision", "width", "_step", "tokenizer_digest")


class VectorIndex:
    """A corpus that is searched often. `TextEmbedder.index` makes it, and `search` takes it.

    `search` over an array checks and normalises all vectors at each call. An index does it once.

    Args:
        vectors: float (M, H), of M texts.
        faiss_factory: str, for `faiss.index_factory`, or None. None compares a query with each
            text. For millions of texts "HNSW32,Flat" or "IVF4096,Flat" compare it with few of
            them, and may miss a near one; see https://github.com/facebookresearch/faiss/wiki.
        precision: "float32"; "int8", a quarter of the memory; or "binary", the signs alone, a 32nd
            of it. Queries stay float32, so a score is the product of a query with the kept numbers.
            Of signs it has the order of a cosine, and not its size. For searches without faiss.
        ids: list of M different str or int, by which a search names the texts; None for their
            positions.
        texts: list of M str, the texts, which a search returns; None keeps none.

    Attributes:
        embedder: the embedder that `add` encodes texts with. `TextEmbedder.index` sets it. It is
            not saved: set it after `load`.
        prompt: str, the name of the prompt of the corpus, or None.
        probes: float32 (T, H) of length 1, the vectors of `PROBES` by the embedder of the corpus;
            None if it is not known. `TextEmbedder.index` sets it.
        tokenizer_digest: str, of the tokenizer of this embedder, or None.

    Raises:
        ValueError: if there is no vector, or one is not finite; for an unknown precision, or one
            beside `faiss_factory`; or if `ids` or `texts` do not fit the vectors.
        ImportError: without faiss: `pip install faiss-cpu`.
    """

    probes: np.ndarray | None = None
    tokenizer_digest: str | None = None
    embedder: Any = None
    prompt: str | None = None

    def __init__(
        self,
        vectors: np.ndarray,
        faiss_factory: str | None = None,
        precision: str = "float32",
        *,
        ids: Sequence[Any] | None = None,
        texts: Sequence[str] | None = None,
    ) -> None:
        check_choice("precision", precision, tuple(DTYPES))
        if faiss_factory is not None and precision != "float32":
            raise ValueError(
                f"precision={precision!r} is for an index without faiss. Say it in the "
                "faiss_factory: 'SQ8' keeps 8 bits."
            )
        vectors = _read(vectors)
        check_search(vectors, top_k=1)
        vectors = to_unit_length(vectors)
        self.ids, self.texts = _read_ids(ids, len(vectors)), _read_texts(texts, len(vectors))
        self.faiss_factory, self.precision = faiss_factory, precision
        self.width = vectors.shape[1]
        #: The size of a step of int8.
        self._step = float(np.abs(vectors).max()) / 127 or 1.0
        self.vectors = self._encode(vectors)
        self._faiss = None if faiss_factory is None else _build(vectors, faiss_factory)

    def __len__(self) -> int:
        return len(self.vectors)

    def __repr__(self) -> str:
        kind = self.precision if self.faiss_factory is None else f"faiss {self.faiss_factory!r}"
        return f"VectorIndex({len(self):,} vectors of {self.width} numbers, {kind})"

    def add(
        self,
        corpus: Any,
        ids: Sequence[Any] | None = None,
        *,
        texts: Sequence[str] | None = None,
        batch_size: int | None = None,
        verbose: str | int = "auto",
    ) -> None:
        """Adds texts or vectors to the corpus, after those that are there.

        Texts are encoded by the `embedder` of the index, with its `prompt`. The scale of an index
        in int8 stays, so larger numbers are cut off. Call it in one thread, and not while another
        thread searches.

        Args:
            corpus: M texts, or vectors float (M, H).
            ids: M ids, if the index has ids.
            texts: the texts of vectors, if the index keeps texts.
            batch_size, verbose: as for `predict`, for texts.

        Raises:
            ValueError: as `VectorIndex`; if the index has ids, or keeps texts, and gets none; if an
                id is there already; or for texts, if the index has no embedder, or another one has
                made it.
        """
        is_array = isinstance(corpus, np.ndarray) and corpus.dtype.kind == "f"
        if not is_array:
            if self.embedder is None:
                raise ValueError(
                    "The index does not know its embedder. Set index.embedder = embedder, or pass "
                    "vectors, embedder.predict(texts)."
                )
            if texts is not None:
                raise ValueError("texts are for vectors. The corpus has its texts. Leave them out.")
            if self.texts is not None:
                texts = corpus = list(corpus)
            corpus = self.embedder.encode_for(self, corpus, batch_size, verbose)
        vectors = _read(corpus)
        number = len(vectors)
        for name, new, own in (("ids", ids, self.ids), ("texts", texts, self.texts)):
            if number and (new is None) != (own is None):
                raise ValueError(
                    f"The index has {'no' if own is None else 'its'} {name}, and got "
                    f"{'none' if new is None else 'some'}. Pass {name} for all texts, or for none."
                )
        if number and vectors.shape[1] != self.width:
            raise ValueError(
                f"The vectors have {vectors.shape[1]} dimensions, the index has {self.width}."
            )
        new_ids, new_texts = _read_ids(ids, number, self.ids), _read_texts(texts, number)
        if not number:
            return
        vectors = to_unit_length(vectors)
        if self._faiss is not None:
            self._faiss.add(vectors)
        self.vectors = np.concatenate([self.vectors, self._encode(vectors)])
        if self.ids is not None and new_ids is not None:
            self.ids = [*self.ids, *new_ids]
        if self.texts is not None and new_texts is not None:
            self.texts = [*self.texts, *new_texts]

    def search(
        self, queries: np.ndarray, top_k: int = 10
    ) -> list[list[SearchHit]] | list[list[TextHit]]:
        """Finds the vectors with the highest cosine similarity to each query.

        Args:
            queries: float (N, H).
            top_k: int.

        Returns:
            list with a list of at most `top_k` `SearchHit` for each query, the best first. If the
            index keeps texts, a list of `TextHit`, which also have the `text`.

        Raises:
            ValueError: if `top_k` is less than 1, or a query is not finite or has another width.
        """
        check_search(self.vectors, top_k)
        queries = _read(queries)
        if queries.shape[1] != self.width:
            raise ValueError(
                f"The queries have {queries.shape[1]} dimensions, the index has "
                f"{self.width}. Encode both with the same embedder."
            )
        queries = to_unit_length(queries)
        if self._faiss is None:
            found = search_unit_vectors(queries, self.vectors, top_k, prepare=self._decode)
        else:
            scores, places = self._faiss.search(queries, min(top_k, len(self)))
            found = [
                # faiss fills a row up with -1 if it finds less.
                [SearchHit(int(i), float(s)) for i, s in zip(*row, strict=True) if i >= 0]
                for row in zip(places, scores, strict=True)
            ]
        if self.ids is None and self.texts is None:
            return found
        return [[self._name(hit) for hit in hits] for hits in found]

    def _name(self, hit):
        """A hit whose id is a position, with the id and the text of the index."""
        id = hit.id if self.ids is None else self.ids[hit.id]
        if self.texts is None:
            return SearchHit(id, hit.score)
        return TextHit(id, hit.score, self.texts[hit.id])

    def check_embedder(self, probes: np.ndarray | None, tokenizer_digest: str | None) -> None:
        """Raises a ValueError if an embedder has other probes, or another tokenizer."""
        if None not in (self.tokenizer_digest, tokenizer_digest):
            if self.tokenizer_digest != tokenizer_digest:
                raise ValueError(
                    "The index was made with another tokenizer. Search with the embedder that made "
                    "it, or make the index anew by `embedder.index(corpus)`."
                )
        if self.probes is None or probes is None or probes.shape != self.probes.shape:
            return  # `search` checks the width.
        cosines = (self.probes * probes).sum(axis=-1)
        if cosines.min() < _SAME:
            raise ValueError(
                "The index was made by another embedder, or by this one before it was trained or "
                "set otherwise: the vectors of one text by both have a cosine of "
                f"{cosines.min():.2f}. Search with the embedder that made the index, or make the "
                "index anew by `embedder.index(corpus)`."
            )

    def _encode(self, vectors):
        """float32 (N, H) of length 1 -> the kept numbers."""
        if self.precision == "int8":
            return np.clip(np.rint(vectors / self._step), -127, 127).astype("int8")
        return np.packbits(vectors > 0, axis=1) if self.precision == "binary" else vectors

    def _decode(self, kept):
        """The float32 (N, H) with which queries are compared, of the kept numbers."""
        if self.precision == "int8":
            return kept * np.float32(self._step)
        if self.precision == "binary":
            signs = np.unpackbits(kept, axis=1, count=self.width).astype("float32")
            return (2 * signs - 1) / np.float32(np.sqrt(self.width))
        return kept

    def save(self, directory: PathLike) -> None:
        """Writes the vectors, ids and texts, and faiss' own index if there is one, to a folder.

        Raises:
            FileExistsError: if the folder exists.
        """
        with atomic_directory(directory) as folder:
            np.save(folder / _VECTORS, self.vectors)
            if self.probes is not None:
                np.save(folder / _PROBES, self.probes)
            if self._faiss is not None:
                _import_faiss().write_index(self._faiss, str(folder / _FAISS))
            if self.ids is not None or self.texts is not None:
                write_json(folder / _ROWS, {"ids": self.ids, "texts": self.texts})
            settings = {name: getattr(self, name) for name in (*_SAVED, "prompt")}
            write_json(folder / _SETTINGS, settings)

    @classmethod
    def load(cls, directory: PathLike) -> Self:
        """Reads the folder of `save`, or the vectors that `keras-bert embed --engine` wrote.

        The vectors of all parts of such a folder are one index, in their order. If the job had one
        column go on, such as `--columns id`, the index has its values as ids.

        Raises:
            FileNotFoundError: if the folder has no index.
            ValueError: if its files are damaged, or of two indexes; or if parts are missing.
        """
        if (Path(directory) / PLAN).exists():
            vectors, ids, probes = read_vector_parts(Path(directory))
            index = cls(vectors, ids=ids)
            index.prompt = probes.get("prompt")
            index.tokenizer_digest = probes.get("tokenizer_digest")
            if probes.get("probes") is not None:
                index.probes = np.asarray(probes["probes"], "float32")
            return index
        directory, index = Path(directory), cls.__new__(cls)
        with reading(directory / _SETTINGS):
            settings = json.loads((directory / _SETTINGS).read_bytes())
            for name in _SAVED:
                setattr(index, name, settings[name])
            index.prompt = settings.get("prompt")
        with reading(directory / _VECTORS):
            index.vectors = np.load(directory / _VECTORS, allow_pickle=False)
            width = -(-index.width // 8) if index.precision == "binary" else index.width
            kind, shape = index.vectors.dtype, index.vectors.shape
            if kind != DTYPES[index.precision] or shape[1:] != (width,):
                raise ValueError(f"{kind} {shape} are no vectors of {_SETTINGS}")
        index.ids = index.texts = None
        if (directory / _ROWS).exists():
            with reading(directory / _ROWS):
                rows = json.loads((directory / _ROWS).read_bytes())
                index.ids = _read_ids(rows["ids"], len(index))
                index.texts = _read_texts(rows["texts"], len(index))
        if (directory / _PROBES).exists():
            with reading(directory / _PROBES):
                index.probes = np.load(directory / _PROBES, allow_pickle=False)
        index._faiss = None
        if index.faiss_factory is not None:
            with reading(directory / _FAISS):
                index._faiss = _import_faiss().read_index(str(directory / _FAISS))
            if (index._faiss.ntotal, index._faiss.d) != index.vectors.shape:
                raise ValueError(f"{_VECTORS} and {_FAISS} in {directory} are of two indexes.")
        return index


def _read(vectors: Any) -> np.ndarray:
    vectors = np.asarray(vectors, "float32")
    check_vectors(vectors)
    return vectors


def _read_ids(ids: Any, number: int, known: Sequence[Any] | None = None) -> list[Any] | None:
    """list of ids that JSON can hold, which are different from each other and from the known."""
    if ids is None:
        return None
    if isinstance(ids, (str, bytes, set, frozenset, dict)):
        raise ValueError(f"ids must be a list with an id for each text, got {ids!r}.")
    ids = [id.item() if isinstance(id, np.generic) else id for id in ids]
    if len(ids) != number:
        raise ValueError(f"Wanted an id for each of {number} vectors, got {len(ids)}.")
    seen = {*(known or ())}
    for id in ids:
        if isinstance(id, bool) or not isinstance(id, (str, int)):
            raise ValueError(f"An id must be a str or an int, got {id!r}.")
        if id in seen:
            raise ValueError(f"Each text needs an id of its own, got {id!r} twice.")
        seen.add(id)
    return ids


def _read_texts(texts: Any, number: int) -> list[str] | None:
    if texts is None:
        return None
    texts = list(texts)
    if len(texts) != number or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"Wanted a str for each of {number} vectors, got {str(texts)[:60]}.")
    return texts


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
