"""Reads a corpus that `prepare_corpus` wrote."""

import collections
import contextlib
import io
import threading
from typing import Any

import numpy as np

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.corpus.corpus_folder import CorpusFolder
from keras_bert_suite.corpus.preparation_plan import (
    MANIFEST_FILE,
    PLAN_FILE,
    hash_vocabulary,
    read_vocabulary,
)
from keras_bert_suite.corpus.token_corpus import TokenCorpus
from keras_bert_suite.corpus.token_shards import describe_content, is_intact, shard_name
from keras_bert_suite.files.atomic_file import parse_sealed_json
from keras_bert_suite.files.messages import reading, shorten
from keras_bert_suite.tokenizers import TOKENIZERS
from keras_bert_suite.tokenizers.text_tokenizer import TextTokenizer

READER_OPTIONS = "readahead_buffer_size:0,max_parallelism:0"

#: The reason for a message.
OTHER_CONTENT = "its size or SHA-256 is not the one in the manifest"

#: Operating systems let a process open some 1,000 files.
MAX_OPEN_SHARDS = 512

#: Bytes of documents kept in memory. A corpus of up to 100 million tokens is unpacked once. The
#: documents of a larger corpus are read again, some 30,000 a second on each thread. An instance
#: reads two documents.
CACHE_BYTES = 256 << 20


class ShardedCorpus(TokenCorpus):
    """A `TokenCorpus` on disk. Threads may share it. A pickled copy opens the files again.

    A shard of a remote file system is copied to the temporary folder of this machine when its first
    document is read, and its checksum is compared. The disk is freed when the shard is closed.
    `path` is as for `CorpusFolder`, and the attribute `manifest` a dict.
    """

    def __init__(self, path: PathLike) -> None:
        self._folder = CorpusFolder(path)
        self.manifest = read_manifest(path)
        with reading(f"{self._folder}/{MANIFEST_FILE}"):
            shards = self.manifest["shards"]
            described = {
                shard_name(number, kind): {"bytes": file["bytes"], "sha256": file["sha256"]}
                for number, shard in enumerate(shards)
                for kind, file in shard["files"].items()
            }
            self.vocabulary = read_vocabulary(self.manifest)
            self._dtype = np.dtype(self.manifest["token_dtype"]).newbyteorder("<")
            super().__init__(
                *([shard[name] for shard in shards] for name in ("documents", "sentences"))
            )
        sizes = self._folder.list_sizes()
        for file, wanted in described.items():
            if sizes.get(file) != wanted["bytes"]:
                reason = f"it has {sizes.get(file, 'no')} bytes, wanted {wanted['bytes']}"
                raise _damaged(self._folder, file, reason)
        self._open_shards: collections.OrderedDict[int, Any] = collections.OrderedDict()
        self._cache: collections.OrderedDict[Any, np.ndarray] = collections.OrderedDict()
        self._cached_bytes = 0
        self._lock = threading.Lock()
        self._opening = threading.Lock()

    def __reduce__(self):
        return type(self), (self._folder.path,)

    def read_lengths(self, shard: int) -> tuple[np.ndarray, np.ndarray]:
        file, summary = shard_name(shard, "lengths"), self.manifest["shards"][shard]
        content = self._folder.read(file)
        if describe_content(content) != summary["files"]["lengths"]:
            raise _damaged(self._folder, file, OTHER_CONTENT)
        with reading(f"{self._folder}/{file}"):
            lengths, counts = _read_arrays(content, "sentence_lengths", "document_sentences")
        is_list = all(array.ndim == 1 and array.dtype.kind in "iu" for array in (lengths, counts))
        if (
            not is_list
            or len(counts) != summary["documents"]
            or counts.sum(dtype="uint64") != len(lengths)
        ):
            raise _damaged(self._folder, file, "the manifest describes other arrays")
        return lengths, counts

    def tokens(self, document: int) -> np.ndarray:
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
        shard, record = self.locate(document)
        reader, document_tokens = self._open_shard(shard)
        try:
            tokens = np.frombuffer(reader.read([record])[0], self._dtype)
        except (RuntimeError, ValueError) as error:
            raise _damaged(self._folder, shard_name(shard, "tokens"), error) from None
        if len(tokens) != document_tokens[record]:
            reason = f"document {document} has {len(tokens)} tokens"
            raise _damaged(self._folder, shard_name(shard, "tokens"), reason)
        return tokens

    def _open_shard(self, shard):
        """The reader of a shard, and how many tokens each of its documents has."""
        opened = self._find_open_shard(shard)
        if opened is not None:
            return opened
        # Not every file system of fsspec may be read by two threads. A thread that needs no new
        # shard continues meanwhile.
        with self._opening:
            opened = self._find_open_shard(shard)
            if opened is None:
                opened = self._open_tokens(shard), self._sum_lengths(shard)
                with self._lock:
                    self._open_shards[shard] = opened
                    if len(self._open_shards) > MAX_OPEN_SHARDS:
                        self._open_shards.popitem(last=False)
        return opened

    def _find_open_shard(self, shard):
        with self._lock:
            if shard in self._open_shards:
                self._open_shards.move_to_end(shard)
            return self._open_shards.get(shard)

    def _open_tokens(self, shard):
        from array_record.python.array_record_module import ArrayRecordReader

        file = shard_name(shard, "tokens")
        summary = self.manifest["shards"][shard]
        with self._folder.copy(file) as path:
            if self._folder.is_remote and not is_intact(path, summary["files"]["tokens"]):
                raise _damaged(self._folder, file, OTHER_CONTENT)
            reader = ArrayRecordReader(str(path), READER_OPTIONS, file_reader_buffer_size=1 << 16)
            # The reader opens a missing file, or a file that is cut short, without an error. It has
            # no records then.
            found, wanted = reader.num_records(), summary["documents"]
        if found != wanted:
            raise _damaged(self._folder, file, f"it has {found} documents, wanted {wanted}")
        return reader

    def _sum_lengths(self, shard):
        lengths, counts = self.read_lengths(shard)
        tokens_before = np.append(0, np.cumsum(lengths, dtype="int64"))
        ends = np.cumsum(counts, dtype="int64")
        return np.diff(tokens_before[np.append(0, ends)]).astype("int32")


def open_corpus(path: PathLike) -> TokenCorpus:
    """Opens a prepared corpus.

    Sizes of files are compared. The checksums of the lengths of a shard and of a document are
    compared when they are read.

    Args:
        path: str or path of the folder. "s3://bucket/shards" and "gs://bucket/shards" are read
            through fsspec, with the packages s3fs and gcsfs.

    Returns:
        `ShardedCorpus`.

    Raises:
        FileNotFoundError: if there is no finished corpus.
        ValueError: if a file is damaged, naming it. Reading a document may raise it too.
    """
    return ShardedCorpus(path)


def read_manifest(path: PathLike) -> dict[str, Any]:
    """The manifest of a prepared corpus, dict. Its absence is a FileNotFoundError."""
    folder = CorpusFolder(path)
    if not folder.exists(MANIFEST_FILE):
        unfinished = folder.exists(PLAN_FILE)
        raise FileNotFoundError(
            f"{path} holds a corpus that is not finished. Prepare it again with the same "
            "arguments: it resumes where it stopped."
            if unfinished
            else f"{path} holds no prepared corpus: there is no {MANIFEST_FILE} in it. Make one "
            "with prepare_corpus, or keras-bert prepare."
        )
    try:
        return parse_sealed_json(folder.read(MANIFEST_FILE))
    except ValueError as error:
        raise _damaged(folder, MANIFEST_FILE, f"it {error}") from None


def read_tokenizer(path: PathLike, *others: PathLike) -> TextTokenizer:
    """The tokenizer that a corpus was prepared with, such as a `WordPieceTokenizer`.

    Args:
        path: str or path of the folder.
        others: folders of corpora that are mixed with it.

    Raises:
        FileNotFoundError: if there is no finished corpus.
        ValueError: if the vocabulary of a corpus has changed, or the others were prepared with
            another tokenizer.
    """
    manifest = read_manifest(path)
    for other in others:
        other_manifest = read_manifest(other)
        for name in ("tokenizer_class", "tokenizer", "vocabulary_sha256"):
            if other_manifest.get(name) != manifest.get(name):
                raise ValueError(
                    f"{other} was prepared with another tokenizer than {path}: its {name} is "
                    f"{other_manifest.get(name)}, wanted {manifest.get(name)}. Prepare it again "
                    "with the tokenizer of the first."
                )
    folder = CorpusFolder(path)
    with reading(f"{folder}/{MANIFEST_FILE}"):
        cls: Any = TOKENIZERS[manifest["tokenizer_class"]]
        wanted = manifest["vocabulary_sha256"]
    names = cls.asset_names
    intact = all(map(folder.exists, names))
    if not intact or hash_vocabulary(map(folder.read, names)) != wanted:
        raise _damaged(folder, " or ".join(names), OTHER_CONTENT)
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(folder.copy(name)) for name in names]
        with reading(folder.path):
            return cls(*files, **manifest["tokenizer"])


def _read_arrays(content, *names):
    """Arrays of an .npz file by name, in a list.

    NumPy parses a header for each. Python before 3.11.8 raises SystemError at times when another
    thread parses Python at the same moment (https://github.com/python/cpython/issues/106905).
    """

    def read():
        with np.load(io.BytesIO(content)) as archive:
            return [archive[name] for name in names]

    try:
        return read()
    except SystemError:
        return read()


def _damaged(folder, file, reason):
    return ValueError(
        f"{folder}/{file} is damaged: {shorten(reason, 400)}. Restore the file, or prepare the "
        "corpus again with the same arguments: it replaces damaged shards and keeps the others."
    )
