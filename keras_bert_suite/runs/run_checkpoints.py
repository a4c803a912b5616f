"""Writes and finds the checkpoints of a run.

A checkpoint is a folder with checksums. It is either complete or absent.

```
checkpoints/
  step-00001000/
    SHA256SUMS              of the two files below; `sha256sum -c SHA256SUMS` checks them
    manifest.json           the progress of the run, and the backend and Keras that wrote it
    variables.safetensors   weights, random states, optimizer, metrics
  step-00002000/
```
"""

import dataclasses
import pathlib
import shutil
import uuid
import warnings
from typing import Any

import keras

from keras_bert_suite.annotations import Arrays
from keras_bert_suite.files.atomic_directory import atomic_directory
from keras_bert_suite.files.atomic_file import parse_json, write_json
from keras_bert_suite.files.checksums import CHECKSUMS, describe_checksums, write_checksums
from keras_bert_suite.files.messages import list_names, reading
from keras_bert_suite.files.safetensors_file import write_safetensors
from keras_bert_suite.runs.progress import Progress

FORMAT = 1
MANIFEST, VARIABLES = "manifest.json", "variables.safetensors"


def write_checkpoint(
    directory: pathlib.Path, progress: Progress, arrays: Arrays, keep: int
) -> Progress:
    """Writes one more checkpoint, then removes all but the newest `keep` checkpoints.

    It returns `progress`. An OSError, for example on a full disk, leaves earlier checkpoints
    intact. A checkpoint after the same batches is replaced: it is damaged, or its epoch was open.
    """
    path = directory / f"step-{progress.batches:08d}"
    with atomic_directory(path, replace=True) as folder:
        write_safetensors(folder / VARIABLES, arrays)
        write_json(folder / MANIFEST, _describe_run(progress))
        write_checksums(folder)
    for old in [p for p in _list_checkpoints(directory) if p.name <= path.name][:-keep]:
        remove_checkpoint(old)
    return progress


def _describe_run(progress: Progress) -> dict[str, Any]:
    """The content of a manifest."""
    return {
        "format": FORMAT,
        "progress": dataclasses.asdict(progress),
        "backend": keras.config.backend(),
        "keras": keras.__version__,
    }


def find_checkpoint(directory: pathlib.Path) -> tuple[pathlib.Path, Progress] | None:
    """(path, `Progress`) of the newest valid checkpoint; None if there is no checkpoint at all.

    It warns of each newer checkpoint, because it is damaged. If there are checkpoints but none is
    valid, it raises a ValueError. Files that killed runs have left there are removed.
    """
    for leftover in directory.glob(".step-*.tmp"):
        shutil.rmtree(leftover, ignore_errors=True)
    for aside in directory.glob(".step-*.old"):
        # The run was killed while it replaced this checkpoint.
        path = directory / aside.name.split(".")[1]
        if path.exists():
            shutil.rmtree(aside, ignore_errors=True)
        else:
            aside.rename(path)
    damages = []
    for path in reversed(_list_checkpoints(directory)):
        try:
            progress = _read_progress(path)
        except (OSError, ValueError) as error:
            damages.append(f"{path}: {error}")
            continue
        for damage in damages:
            warnings.warn(
                f"A damaged checkpoint was passed over: {damage}. {path} is used.", stacklevel=2
            )
        return path, progress
    if damages:
        raise ValueError(
            f"No checkpoint in {directory} is valid: {list_names(damages, '; ', 400)}. To train "
            "from the start, move the directory away or choose another."
        )
    return None


def read_arrays(path: pathlib.Path) -> Arrays:
    """Reads the arrays of a checkpoint that `find_checkpoint` has found, by name."""
    from safetensors.numpy import load_file

    with reading(path):
        return load_file(path / VARIABLES)


def _read_progress(path: pathlib.Path) -> Progress:
    """The `Progress` of a checkpoint. Raises OSError or ValueError if the checkpoint is damaged."""
    names = (MANIFEST, VARIABLES)
    missing = [name for name in (*names, CHECKSUMS) if not (path / name).is_file()]
    if missing:
        raise ValueError(f"{', '.join(missing)} missing")
    wanted = (path / CHECKSUMS).read_bytes().splitlines()
    for name in names:
        if describe_checksums(path, [name]).encode().rstrip() not in wanted:
            size = (path / name).stat().st_size
            raise ValueError(f"{name}, {size:,} bytes, does not have the sha256 in {CHECKSUMS}")
    with reading(path / MANIFEST):
        manifest = parse_json((path / MANIFEST).read_bytes())
        if manifest["format"] != FORMAT:
            raise ValueError(f"{MANIFEST} has format {manifest['format']}, wanted {FORMAT}")
        return Progress(**manifest["progress"])


def _list_checkpoints(directory: pathlib.Path) -> list[pathlib.Path]:
    """Paths, oldest first."""
    return sorted(path for path in directory.glob("step-" + "[0-9]" * 8) if path.is_dir())


def remove_checkpoint(path: pathlib.Path) -> None:
    """Removes a checkpoint. It is renamed first, so that a kill leaves no damaged checkpoint."""
    hidden = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    path.rename(hidden)
    shutil.rmtree(hidden, ignore_errors=True)
