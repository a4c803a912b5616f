"""Reads a corpus that `prepare_corpus` wrote."""

import collections
import threading
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.corpus.preparation_plan import (
    MANIFEST_FILE,
    PLAN_FILE,
    hash_vocabulary,
    tokenizer_class_of,
)
from keras_bert_suite.corpus.token_corpus import TokenCorpus
from keras_bert_suite.corpus.token_shards import describe_file, is_intact, shard_path
from keras_bert_suite.files.atomic_file import read_sealed_json
from keras_bert_suite.files.messages import reading
from keras_bert_suite.files.npz_file import read_integers
from keras_bert_suite.tokenizers.text_tokenizer import TextTokenizer

READER_OPTIONS = "readahead_buffer_size:0,max_parallelism:0"

#: Operating systems let a process open some 1,000 files.
MAX_OPEN_SHARDS = 512

#: Bytes of documents kept in memory. A corpus of up to 100 million tokens is unpacked once. The
#: documents of a larger corpus are read again, some 30,000 a second on each thread. An instance
#: reads two documents.
CACHE_BYTES = 256 << 20


class ShardedCorpus(TokenCorpus):
    """A `TokenCorpus` on disk. Threads may share it. A pickled copy opens the files again.

    Args:
        path: str or path, the folder.

    Attributes:
        manifest: dict.
    """

    def __init__(self, path: PathLike) -> None:
        self.path = Path(path).expanduser().absolute()
        self.manifest = read_manifest(self.path)
        with reading(self.path / MANIFEST_FILE):
            shards = range(len(self.manifest["shards"]))
            loaded = [_load_lengths(self.path, number, self.manifest) for number in shards]
            sentences, documents = zip(*loaded, strict=True)
            self._dtype = np.dtype(self.manifest["token_dtype"]).newbyteorder("<")
        super().__init__(
            np.concatenate(sentences).astype("int32"),
            np.cumsum(np.concatenate([[0], *documents]), dtype="int64"),
            self._read_document,
        )
        self._shard_starts = np.cumsum([0, *map(len, documents)])
        self._readers: collections.OrderedDict[int, Any] = collections.OrderedDict()
        self._cache: collections.OrderedDict[Any, np.ndarray] = collections.OrderedDict()
        self._cached_bytes = 0
        self._lock = threading.Lock()

    def __reduce__(self):
        return type(self), (self.path,)

    def _read_document(self, document):
        with self._lock:
            tokens = self._cache.get(document)
            if tokens is not None:
                self._cache.move_to_end(document)
                return tokens.astype("int32")
        tokens = self._unpack_document(document)
        with self._lock:
            if document not in self._cache:
                self._cache[document] = tokens
                self._cached_bytes += tokens.nbytes
            while self._cached_bytes > CACHE_BYTES:
                self._cached_bytes -= self._cache.popitem(last=False)[1].nbytes
        return tokens.astype("int32")

    def _unpack_document(self, document):
        """The tokens of a document as they are stored."""
        if not 0 <= document < self.num_documents:
            raise IndexError(f"document {document} of a corpus of {self.num_documents:,}")
        shard = int(np.searchsorted(self._shard_starts, document, side="right")) - 1
        record = int(document - self._shard_starts[shard])
        try:
            data = self._reader(shard).read([record])[0]
            tokens = np.frombuffer(data, self._dtype)
        except (RuntimeError, ValueError) as error:
            raise _damaged(shard_path(self.path, shard, "tokens"), error) from None
        wanted = int(self.sentences(document).sum())
        if len(tokens) != wanted:
            reason = f"document {document} has {len(tokens)} tokens, wanted {wanted}"
            raise _damaged(shard_path(self.path, shard, "tokens"), reason)
        return tokens

    def _reader(self, shard):
        with self._lock:
            if shard not in self._readers:
                self._readers[shard] = self._open(shard)
                if len(self._readers) > MAX_OPEN_SHARDS:
                    self._readers.popitem(last=False)
            self._readers.move_to_end(shard)
            return self._readers[shard]

    def _open(self, shard):
        from array_record.python.array_record_module import ArrayRecordReader

        path = shard_path(self.path, shard, "tokens")
        reader = ArrayRecordReader(str(path), READER_OPTIONS, file_reader_buffer_size=1 << 16)
        wanted = self.manifest["shards"][shard]["documents"]
        # The reader opens a missing file, or a file that is cut short, without an error. It has no
        # records then.
        if reader.num_records() != wanted:
            raise _damaged(path, f"it has {reader.num_records()} documents, wanted {wanted}")
        return reader


def open_corpus(path: PathLike, verify: bool = False) -> TokenCorpus:
    """Opens a prepared corpus.

    Args:
        path: str or path of the folder.
        verify: bool, whether to read all files and compare checksums, as `verify_corpus` does.
            Sizes, and the checksums of the lengths, are always compared.

    Returns:
        `ShardedCorpus`.

    Raises:
        FileNotFoundError: if there is no finished corpus.
        ValueError: if a file is damaged, naming it. Reading a document may raise it too.
    """
    if verify:
        verify_corpus(path)
    return ShardedCorpus(path)


def verify_corpus(path: PathLike) -> None:
    """Compares every file of a prepared corpus with its checksum.

    Raises:
        FileNotFoundError: if there is no finished corpus.
        ValueError: if a file is damaged or missing, naming the first.
    """
    path = Path(path).expanduser()
    manifest = read_manifest(path)
    for number, summary in enumerate(manifest["shards"]):
        for kind, description in summary["files"].items():
            file = shard_path(path, number, kind)
            if not is_intact(file, description):
                raise _damaged(file, _explain(file, description))
    _find_vocabulary(path, manifest)


def read_manifest(path: PathLike) -> dict[str, Any]:
    """The manifest of a prepared corpus, dict.

    Raises:
        FileNotFoundError: if there is no manifest.
        ValueError: if the manifest is not JSON.
    """
    file = Path(path) / MANIFEST_FILE
    if not file.exists():
        unfinished = (Path(path) / PLAN_FILE).exists()
        raise FileNotFoundError(
            f"{path} holds a corpus that is not finished. Prepare it again with the same "
            "arguments: it goes on where it stopped."
            if unfinished
            else f"{path} holds no prepared corpus: there is no {MANIFEST_FILE} in it. Make one "
            "with prepare_corpus, or keras-bert prepare."
        )
    try:
        return read_sealed_json(file)
    except ValueError as error:
        raise _damaged(file, f"it {error}") from None


def read_tokenizer(path: PathLike) -> TextTokenizer:
    """The tokenizer that a corpus was prepared with, such as a `WordPieceTokenizer`.

    Raises:
        FileNotFoundError: if there is no finished corpus.
        ValueError: if its vocabulary has changed.
    """
    manifest = read_manifest(path)
    with reading(Path(path) / MANIFEST_FILE):
        files = _find_vocabulary(Path(path).expanduser(), manifest)
        return tokenizer_class_of(manifest)(*files, **manifest["tokenizer"])


def _find_vocabulary(path, manifest):
    """The paths of the files of the tokenizer, which are intact."""
    files = [path / name for name in tokenizer_class_of(manifest).asset_names]
    missing = [file for file in files if not file.is_file()]
    if missing:
        raise _damaged(missing[0], "it is missing")
    wanted = manifest["vocabulary_sha256"]
    if hash_vocabulary(file.read_bytes() for file in files) != wanted:
        raise _damaged(" or ".join(map(str, files)), f"its SHA-256 is not {wanted}")
    return files


def _load_lengths(path, number, manifest):
    """Checks the files of a shard, and returns (sentence_lengths, document_sentences)."""
    described = manifest["shards"][number]["files"]
    file = shard_path(path, number, "lengths")
    if not is_intact(file, described["lengths"]):
        raise _damaged(file, _explain(file, described["lengths"]))
    tokens = shard_path(path, number, "tokens")
    if not tokens.is_file() or tokens.stat().st_size != described["tokens"]["bytes"]:
        raise _damaged(tokens, _explain(tokens, described["tokens"]))
    sentences, documents = read_integers(file, ("sentence_lengths", "document_sentences"))
    wanted = manifest["shards"][number]["documents"]
    if len(documents) != wanted or documents.sum(dtype="uint64") != len(sentences):
        raise _damaged(file, f"it has {len(documents)} documents, wanted {wanted}, all of them")
    return sentences, documents


def _explain(file, wanted):
    """How a file differs from its description."""
    if not file.is_file():
        return "it is missing"
    found = describe_file(file)
    what = "bytes" if found["bytes"] != wanted["bytes"] else "sha256"
    return f"its {what} are {found[what]}, wanted {wanted[what]}"


def _damaged(file, reason):
    return ValueError(
        f"{file} is damaged: {reason}. Restore the file, or prepare the corpus again with the same "
        "arguments: it replaces damaged shards and keeps the others."
    )
