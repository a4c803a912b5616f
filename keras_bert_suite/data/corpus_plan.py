"""What a prepared corpus is to be: written down first, compared when work goes on."""

import dataclasses
import hashlib
import json
import os
from pathlib import Path

from keras_bert_suite.data.atomic_file import ASIDE, atomic_file
from keras_bert_suite.data.corpus_files import find_files, plan_slices
from keras_bert_suite.data.token_shards import ShardWriter, token_dtype, write_json

#: Raised when the same input gives other shards.
VERSION = 2

PLAN_FILE, MANIFEST_FILE, VOCABULARY_FILE = "plan.json", "manifest.json", "vocab.txt"

TOKENIZER_OPTIONS = (
    *("lowercase", "strip_accents"),
    *("unknown_token", "start_token", "end_token", "pad_token", "mask_token"),
)

COUNTS = ("documents", "sentences", "tokens", "unknown_tokens")


@dataclasses.dataclass(frozen=True)
class CorpusPlan:
    """The work to do: `write_shard` for each of `slices`, then `finish`.

    Attributes:
        slices: list of `CorpusSlice`.
        write_shard: `ShardWriter`.
        description: dict, what makes two corpora the same.
    """

    slices: list
    write_shard: ShardWriter
    description: dict

    def finish(self, summaries):
        """Writes the manifest, with which the corpus is complete.

        Args:
            summaries: list of dicts from `write_shard`, in the order of `slices`.

        Returns:
            dict, the manifest.
        """
        if not any(summary["tokens"] for summary in summaries):
            raise ValueError(
                f"There is no text in the input, {len(self.description['inputs'])} files of "
                f"{self.write_shard.format!r}. Look at them, and at the format."
            )
        manifest = {
            **self.description,
            **{count: sum(summary[count] for summary in summaries) for count in COUNTS},
            "shards": summaries,
        }
        write_json(Path(self.write_shard.output) / MANIFEST_FILE, manifest)
        return manifest


def plan_corpus(inputs, tokenizer, output, slice_bytes, format="auto", text_key="text"):
    """Finds and cuts the input, and opens the output folder for it.

    The folder may be new, empty, or that of an earlier run of the same arguments over the same
    files; what was left half written in it is removed.

    Args:
        inputs, tokenizer, output, slice_bytes, format, text_key: as for `prepare_corpus`.

    Returns:
        `CorpusPlan`.

    Raises:
        ValueError: if the folder holds a corpus made in another way, naming the difference.
        FileExistsError: if it holds something else.
        FileNotFoundError: if there is no input.
    """
    folder, names = find_files(inputs)
    output = Path(output).expanduser().absolute()
    vocabulary = "".join(token + "\n" for token in tokenizer.get_vocabulary()).encode()
    config = tokenizer.get_config()
    description = {
        "version": VERSION,
        "format": format,
        "text_key": text_key,
        "slice_bytes": slice_bytes,
        "tokenizer": {name: config[name] for name in TOKENIZER_OPTIONS},
        "vocabulary_sha256": hashlib.sha256(vocabulary).hexdigest(),
        "token_dtype": token_dtype(tokenizer).name,
        "inputs": [[name, os.path.getsize(os.path.join(folder, name))] for name in names],
    }
    slices = plan_slices(folder, names, format, slice_bytes)
    output.mkdir(parents=True, exist_ok=True)
    _check_same(output, description)
    for file in output.glob(f".*{ASIDE}"):
        file.unlink(missing_ok=True)
    write_json(output / PLAN_FILE, description)
    with atomic_file(output / VOCABULARY_FILE) as aside:
        aside.write_bytes(vocabulary)
    return CorpusPlan(slices, ShardWriter(tokenizer, str(output), format, text_key), description)


def _check_same(output, description):
    """Raises unless the folder is empty or has the corpus of `description`, done or not."""
    if all(file.suffix == ASIDE for file in output.iterdir()):
        return
    file = output / PLAN_FILE
    if not file.exists():
        raise FileExistsError(
            f"{output} holds files already, and no {PLAN_FILE} of an earlier run. Choose a folder "
            "that is new or empty."
        )
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(
            f"{file} is damaged: {error}. Restore it, or write to another folder."
        ) from None
    for key, wanted in description.items():
        if found.get(key) != wanted:
            had, has = _show_difference(found.get(key), wanted)
            raise ValueError(
                f"{output} holds a corpus made with {key} {had}, and this run has {has}. Write to "
                "another folder, or remove that one."
            )


def _show_difference(found, wanted):
    """The first entries that differ, if they are lists or dicts."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        found, wanted = list(found.items()), list(wanted.items())
    if isinstance(found, list) and isinstance(wanted, list):
        for index in range(max(len(found), len(wanted))):
            pair = found[index : index + 1], wanted[index : index + 1]
            if pair[0] != pair[1]:
                return [f"{list(side[0])}" if side else "no more" for side in pair]
    return repr(found), repr(wanted)
