"""The plan of a prepared corpus. It is written first, and compared when a run resumes."""

import contextlib
import dataclasses
import hashlib
import os
from pathlib import Path

from keras_bert_suite.corpus.faults import Faults
from keras_bert_suite.corpus.input_files import find_files, plan_slices
from keras_bert_suite.corpus.token_shards import ShardWriter, token_dtype
from keras_bert_suite.files.atomic_file import (
    ASIDE,
    atomic_file,
    parse_json,
    write_json,
    write_sealed_json,
)
from keras_bert_suite.files.folder_lock import LOCK_FILE, lock_folder
from keras_bert_suite.files.messages import reading, shorten

#: The version of the shards. It is increased when the same input gives other shards.
VERSION = 3

PLAN_FILE, MANIFEST_FILE = "plan.json", "manifest.json"

COUNTS = (
    *("documents", "sentences", "tokens", "unknown_tokens"),
    *("skipped_documents", "replaced_texts"),
)


@dataclasses.dataclass(frozen=True)
class CorpusPlan:
    """The work to do: check each slice, `begin`, write the shard of each slice, `finish`.

    Attributes:
        slices: list of `CorpusSlice`.
        writer: `ShardWriter`.
        description: dict of JSON. Two runs with equal descriptions make the same corpus.
        vocabulary: dict of name -> bytes, the files of the tokenizer.
        lock: int, the descriptor that holds the folder.
    """

    slices: list
    writer: ShardWriter
    description: dict
    vocabulary: dict
    lock: int

    @property
    def output(self):
        """`pathlib.Path`, the folder."""
        return Path(self.writer.output)

    def begin(self):
        """Writes the plan, and removes unfinished files of an earlier run."""
        if not _has_shards(self.output):
            self._remove_shards()
        self._remove_unfinished()
        write_json(self.output / PLAN_FILE, self.description)
        for name, content in self.vocabulary.items():
            with atomic_file(self.output / name) as aside:
                aside.write_bytes(content)

    def finish(self, summaries):
        """Writes the manifest, a dict, of the summaries of all slices. The corpus is complete."""
        counts = {count: sum(summary[count] for summary in summaries) for count in COUNTS}
        if not counts["tokens"]:
            self._remove_shards()
            skipped = counts["skipped_documents"]
            left_out = f" {skipped:,} documents were left out." if skipped else ""
            raise ValueError(
                f"There is no text in the input, {len(self.description['inputs'])} files of "
                f"{self.writer.options.format!r}.{left_out} Check the files and `format`."
            )
        self._remove_unfinished()  # Of a task of Ray that died and was repeated.
        manifest = {**self.description, **counts, "shards": summaries}
        write_sealed_json(self.output / MANIFEST_FILE, manifest)
        return manifest

    def _remove_unfinished(self):
        for file in self.output.glob(f".*{ASIDE}"):
            file.unlink(missing_ok=True)

    def _remove_shards(self):
        for file in self.output.glob("shard-*"):
            file.unlink()


def list_faults(manifest, inputs):
    """Lists the places that were left out of a corpus, as `Faults.describe`.

    Manifest and inputs: see `prepare_corpus`.
    """
    faults = Faults()
    for summary in manifest["shards"]:
        if "unread" in summary:
            faults.update(Faults(**summary["unread"]))
    return faults.describe(find_files(inputs)[0])


@contextlib.contextmanager
def plan_corpus(inputs, tokenizer, output, slice_bytes, options):
    """Finds and cuts the input. Locks the output folder while the block runs with a `CorpusPlan`.

    The folder may be new, empty, or the folder of an earlier run with the same arguments over the
    same files. If it has no finished shard, the earlier run may have had other arguments.

    Raises:
        ValueError: if the folder is not of this machine, or holds a corpus made in another way,
            naming the difference.
        FileExistsError: if the folder holds other files.
        BlockingIOError: if another run writes to the folder.
    """
    if "://" in os.fspath(output):
        raise ValueError(
            f"A corpus is written to a folder of this machine, got {output}. Copy the finished "
            "folder there; `open_corpus` reads it."
        )
    folder, names = find_files(inputs)
    output = Path(output).expanduser().absolute()
    vocabulary = tokenizer.asset_contents()
    description = {
        "version": VERSION,
        **dataclasses.asdict(options),
        "slice_bytes": slice_bytes,
        **describe_tokenizer(tokenizer, vocabulary),
        "token_dtype": token_dtype(tokenizer).name,
        "inputs": [[name, os.path.getsize(os.path.join(folder, name))] for name in names],
    }
    slices = plan_slices(folder, names, options.format, slice_bytes, options.encoding)
    output.mkdir(parents=True, exist_ok=True)
    _check_ours(output)
    with lock_folder(output) as lock:
        if _has_shards(output):
            _check_same(output, description)
        writer = ShardWriter(tokenizer, str(output), options)
        yield CorpusPlan(slices, writer, description, vocabulary, lock)


def describe_tokenizer(tokenizer, vocabulary):
    """The entries of a manifest about a tokenizer and its `asset_contents`, dict."""
    return {
        "tokenizer_class": type(tokenizer).__name__,
        "tokenizer": tokenizer.settings,
        "vocabulary_sha256": hash_vocabulary(vocabulary.values()),
    }


def read_vocabulary(manifest):
    """The entries of `describe_tokenizer` that give tokens their ids, tuple."""
    added = manifest["tokenizer"].get("added_tokens")
    return manifest["tokenizer_class"], added, manifest["vocabulary_sha256"]


def hash_vocabulary(contents):
    """The SHA-256 of the files of a tokenizer, one after the other, in hexadecimal."""
    return hashlib.sha256(b"".join(contents)).hexdigest()


def _check_ours(output):
    """Raises if a folder has files, and none of them is a plan."""
    names = {file.name for file in output.iterdir() if file.suffix != ASIDE}
    if names - {LOCK_FILE} and PLAN_FILE not in names:
        raise FileExistsError(
            f"{output} holds files already, and no {PLAN_FILE} of an earlier run. Choose a folder "
            "that is new or empty."
        )


def _has_shards(output):
    """Whether the folder has a finished shard or a manifest."""
    return (output / MANIFEST_FILE).exists() or any(output.glob("shard-*.json"))


def _check_same(output, description):
    """Raises unless the folder has the corpus of `description`, finished or not."""
    with reading(output / PLAN_FILE):
        found = parse_json((output / PLAN_FILE).read_bytes())
    for key, wanted in description.items():
        if found.get(key) != wanted:
            had, has = shorten(found.get(key), 400), shorten(wanted, 400)
            raise ValueError(
                f"{output} holds a corpus made with another {key}: {had}, and this run has {has}. "
                "Write to another folder, or remove that one."
            )
