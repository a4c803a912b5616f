"""Turns a slice of a corpus into a shard of token ids.

A shard has three files:

- `shard-00000.array_record` has a record for each document, its token ids one after the other:
  little-endian uint16, or uint32 if the vocabulary is too large. Grain reads records at random.
- `shard-00000.npz` has two arrays: `sentence_lengths` (S,), the number of tokens of each sentence,
  and `document_sentences` (D,), the number of sentences of each document. Instances are planned
  from these arrays without reading a token.
- `shard-00000.json` has counts and checksums. It is written last. Without it a shard is not
  finished.
"""

import contextlib
import dataclasses
import hashlib
import itertools
import os
from pathlib import Path

import numpy as np

from keras_bert_suite.corpus.documents import find_faults, hash_slice, read_documents
from keras_bert_suite.corpus.faults import Faults
from keras_bert_suite.files.atomic_file import atomic_file, parse_sealed_json, write_sealed_json
from keras_bert_suite.files.checksums import find_digest

#: On Wikipedia these options take 1.5 bytes a token, and pack 160 MB/s. A group is unpacked as a
#: whole: with 32 documents in a group, reading one document takes five times as long. Level 17
#: saves a tenth of the disk, and takes as long as the tokenizer.
WRITER_OPTIONS = "group_size:4,zstd:3"

#: Documents tokenized at once.
BATCH_DOCUMENTS = 64


class ShardWriter:
    """Makes the shard of a slice. A shard is a pure function of the slice and these arguments.

    A writer can be pickled, and several processes may use it at once. The folder `output` exists.
    """

    def __init__(self, tokenizer, output, options):
        self.tokenizer = tokenizer
        self.output = output
        self.options = options

    def __call__(self, method, corpus_slice):
        """Calls "check" or "write", in a separate process."""
        return getattr(self, method)(corpus_slice)

    def check(self, corpus_slice):
        """The `Faults` of a slice. A slice whose shard is finished is not read, and has none."""
        if shard_path(self.output, corpus_slice.number, "summary").exists():
            return Faults()
        return find_faults(corpus_slice, self.options)

    def write(self, corpus_slice):
        """Writes the shard, unless it is there and intact: (its `.json`, whether it was there).

        It is a ValueError if the input has changed since the shard was written, or if documents
        cannot be read and `on_error` is "stop".
        """
        source = describe_slice(corpus_slice)
        kept = self._find_shard(corpus_slice, source)
        if kept is not None:
            return kept, True
        paths = {kind: shard_path(self.output, corpus_slice.number, kind) for kind in SUFFIXES}
        with atomic_file(paths["tokens"]) as tokens, atomic_file(paths["lengths"]) as lengths:
            counts = self._write_documents(corpus_slice, tokens, lengths)
            files = {"tokens": describe_file(tokens), "lengths": describe_file(lengths)}
        summary = {"input": source, **counts, "files": files}
        write_sealed_json(paths["summary"], summary)
        return summary, False

    def _find_shard(self, corpus_slice, source):
        path = shard_path(self.output, corpus_slice.number, "summary")
        try:
            summary = parse_sealed_json(path.read_bytes())
        except (OSError, ValueError):
            return None
        if summary.get("input") != source:
            raise ValueError(
                f"{path} was not made of the present text of {corpus_slice}. The input has changed "
                "since then: write to another folder."
            )
        intact = all(
            is_intact(shard_path(self.output, corpus_slice.number, kind), description)
            for kind, description in summary["files"].items()
        )
        return summary if intact else None

    def _write_documents(self, corpus_slice, tokens_path, lengths_path):
        # ArrayRecord is not built for Windows, where the rest of the package works.
        from array_record.python.array_record_module import ArrayRecordWriter

        dtype = token_dtype(self.tokenizer)
        faults = Faults()
        documents = read_documents(corpus_slice, self.options, faults)
        lengths, num_unknown = [], 0
        try:
            with contextlib.closing(ArrayRecordWriter(str(tokens_path), WRITER_OPTIONS)) as writer:
                while batch := list(itertools.islice(documents, BATCH_DOCUMENTS)):
                    ids, of_documents = self._tokenize(batch)
                    num_unknown += int((ids == self.tokenizer.unknown_token_id).sum())
                    ends = np.cumsum([of_document.sum() for of_document in of_documents])
                    for of_document, tokens in zip(
                        of_documents, np.split(ids.astype(dtype), ends[:-1]), strict=True
                    ):
                        if len(tokens):
                            writer.write(tokens.tobytes())
                            lengths.append(of_document[of_document > 0])
        except RuntimeError as error:
            raise OSError(
                f"{tokens_path} cannot be written: {error}. If the disk is full make room, and run "
                "again: finished shards are kept."
            ) from None
        if faults and self.options.on_error == "stop":
            raise faults.error(corpus_slice.folder)
        sentence_lengths = np.concatenate([np.zeros(0, np.int64), *lengths])
        with open(lengths_path, "wb") as file:
            np.savez_compressed(
                file,
                sentence_lengths=_shrink(sentence_lengths),
                document_sentences=_shrink(np.array([len(d) for d in lengths], np.int64)),
            )
        return {
            "documents": len(lengths),
            "sentences": len(sentence_lengths),
            "tokens": int(sentence_lengths.sum()),
            "unknown_tokens": num_unknown,
            "skipped_documents": faults.documents,
            "replaced_texts": faults.replaced_texts,
            **({"unread": dataclasses.asdict(faults)} if faults else {}),
        }

    def _tokenize(self, documents):
        """(int32, the ids of all documents one after the other; list of int64, for each document
        the lengths of its sentences)."""
        ids, lengths = self.tokenizer.tokenize_flat(list(itertools.chain(*documents)))
        ends = np.cumsum([len(document) for document in documents])
        return ids, np.split(lengths, ends[:-1])


SUFFIXES = {"tokens": ".array_record", "lengths": ".npz", "summary": ".json"}


def shard_name(number, kind):
    """The name of a file of a shard; `kind` is a key of `SUFFIXES`."""
    return f"shard-{number:05d}{SUFFIXES[kind]}"


def shard_path(folder, number, kind):
    """`pathlib.Path` of a file of a shard; `kind` is a key of `SUFFIXES`."""
    return Path(folder) / shard_name(number, kind)


def token_dtype(tokenizer):
    """The NumPy dtype that token ids are stored in."""
    return np.dtype("<u2" if tokenizer.vocabulary_size() <= 1 << 16 else "<u4")


def describe_slice(corpus_slice):
    """dict of the names, ranges, size and SHA-256 of a slice. It does not depend on the folder."""
    parts = [list(part) for part in corpus_slice.parts]
    return {"parts": parts, "bytes": corpus_slice.num_bytes, "sha256": hash_slice(corpus_slice)}


def describe_file(path):
    """dict of the size and the SHA-256 of a file."""
    return {"bytes": os.path.getsize(path), "sha256": find_digest(path)}


def describe_content(content):
    """The size and the SHA-256 of a file with this content, bytes; see `describe_file`."""
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def is_intact(path, description):
    """Whether there is a file at `path`, and it has this description of `describe_file`."""
    return path.is_file() and describe_file(path) == description


def _shrink(array):
    """Casts non-negative integers to the smallest dtype that holds them."""
    return array.astype(np.min_scalar_type(int(array.max(initial=0))))
