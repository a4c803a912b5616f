"""Writes a checkpoint in pieces, one file from each process.

```
checkpoints/
  step-00001000/
    SHA256SUMS                    of the files below
    manifest.json                 as `run_checkpoints.py` has it, and the names of the pieces
    piece-0-of-2.safetensors      what process 0 saves, with the shapes of whole variables
    piece-1-of-2.safetensors
```

The processes share the folder. Each writes its piece, and then the checksum of the piece, into a
hidden folder. When the first process sees all checksums, it writes the manifest and renames the
hidden folder. So a checkpoint has all pieces or is absent, at whatever moment a process is killed.
No process waits for another within a step: the files are the messages. The hidden folder bears the
name of the attempt, so that pieces of an earlier attempt, which was killed, are never among them.
"""

import dataclasses
import json
import pathlib
import shutil
import time
from collections.abc import Callable

from keras_bert_suite.files.atomic_directory import flush_entry
from keras_bert_suite.files.atomic_file import atomic_file, write_json
from keras_bert_suite.files.checksums import CHECKSUMS, describe_checksums
from keras_bert_suite.files.safetensors_file import write_safetensors
from keras_bert_suite.replicas import Group
from keras_bert_suite.runs.progress import Progress
from keras_bert_suite.runs.run_checkpoints import (
    JOINT_FORMAT,
    MANIFEST,
    describe_run,
    locate,
    read_manifest,
    remove_checkpoint,
    remove_oldest,
)
from keras_bert_suite.runs.variable_pieces import Pieces

#: How long a process waits for the pieces of the others, in seconds.
PATIENCE = 600


@dataclasses.dataclass(frozen=True)
class JointCheckpoints:
    """Writes the checkpoints of a run that several processes share.

    Args:
        group: `Group`, this process among the processes of the run.
        attempt: str, the same in all processes, and another one after each kill.
    """

    group: Group
    attempt: str

    def write(self, directory: pathlib.Path, progress: Progress, pieces: Pieces, keep: int) -> int:
        """Writes the piece of this process, and waits until the checkpoint is there whole.

        It returns `progress.batches`, and raises an OSError if a piece could not be written, or did
        not come in time. Arguments: as for `write_checkpoint`.
        """
        path = locate(directory, progress)
        hidden = path.with_name(f".{path.name}.{self.attempt}.tmp")
        name = self._name(self.group.index)
        hidden.mkdir(parents=True, exist_ok=True)
        with atomic_file(hidden / name) as aside:
            write_safetensors(aside, pieces.arrays, {"shapes": json.dumps(pieces.shapes)})
        with atomic_file(_checksum_path(hidden, name)) as aside:
            aside.write_text(describe_checksums(hidden, [name]), encoding="utf-8")
        if self.group.leads:
            self._complete(path, hidden, progress)
            remove_oldest(directory, path, keep)
        else:
            self._wait(lambda: self._is_complete(path), path, hidden)
        return progress.batches

    def _complete(self, path: pathlib.Path, hidden: pathlib.Path, progress: Progress) -> None:
        """Makes the hidden folder a checkpoint, once the pieces of all processes are in it."""
        names = [self._name(index) for index in range(self.group.count)]
        sums = [_checksum_path(hidden, name) for name in names]
        try:
            self._wait(lambda: all(sum_.exists() for sum_ in sums), path, hidden)
            manifest = {"pieces": names, "attempt": self.attempt}
            write_json(hidden / MANIFEST, describe_run(progress, JOINT_FORMAT) | manifest)
            lines = [describe_checksums(hidden, [MANIFEST]), *(s.read_text("utf-8") for s in sums)]
            with atomic_file(hidden / CHECKSUMS) as aside:
                aside.write_text("".join(lines), encoding="utf-8")
            for sum_ in sums:
                sum_.unlink()
            flush_entry(hidden)
            if path.exists():
                remove_checkpoint(path)  # It is damaged: the run has resumed from an older one.
            hidden.rename(path)
        except BaseException:
            shutil.rmtree(hidden, ignore_errors=True)
            raise
        flush_entry(path.parent)

    def _wait(self, is_done: Callable[[], bool], path: pathlib.Path, hidden: pathlib.Path) -> None:
        """Waits for the other processes. Raises OSError if one of them is late."""
        deadline = time.monotonic() + PATIENCE
        pause = 0.001
        while not is_done():
            if time.monotonic() > deadline or not hidden.exists() and not is_done():
                names = map(self._name, range(self.group.count))
                late = [name for name in names if not _checksum_path(hidden, name).exists()]
                raise OSError(
                    f"{path} was not written: {', '.join(late) or 'the manifest'} is missing. All "
                    f"{self.group.count} processes must write to the same folder, which must have "
                    f"room; they wait {PATIENCE} s for each other"
                )
            time.sleep(pause)
            pause = min(2 * pause, 0.1)

    def _is_complete(self, path: pathlib.Path) -> bool:
        """Whether the checkpoint of this attempt is there."""
        try:
            return read_manifest(path).get("attempt") == self.attempt
        except (OSError, ValueError):
            return False

    def _name(self, index: int) -> str:
        return f"piece-{index}-of-{self.group.count}.safetensors"


def _checksum_path(hidden: pathlib.Path, name: str) -> pathlib.Path:
    return hidden / f"{name}.sha256"
