"""Atomic directories: complete or absent."""

import contextlib
import os
import shutil
import uuid
from pathlib import Path

from keras_bert_suite.files.atomic_file import flush_entry


@contextlib.contextmanager
def atomic_directory(path, replace=False):
    """Yields a temporary directory that becomes `path` when the block ends without error.

    The temporary directory lies beside `path`. It is flushed to disk, then renamed. If the block
    raises, or the disk is full, it is removed with all its content. A process that is killed leaves
    it behind, hidden as `.NAME.*.tmp`. If there is anything at `path`, before the block or after
    it, that is a FileExistsError, unless `replace` is true, see `put_in_place`.

    ```python
    with atomic_directory("saved_models/sentiment/1") as directory:
        (directory / "config.json").write_text("{}")
    ```
    """
    path = Path(path).expanduser().absolute()
    if not replace:
        _check_absent(path)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        temporary.mkdir(parents=True)
        yield temporary
        _flush(temporary)
        put_in_place(temporary, path, replace)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def put_in_place(made, path, replace=False):
    """Renames a file or directory to a `path` in its file system. If this fails, nothing is lost.

    Content that is replaced is set aside first. It comes back if the rename fails. Without
    `replace` anything at `path` is a FileExistsError.
    """
    old = path.with_name(f".{path.name}.{uuid.uuid4().hex}.old")
    if replace and os.path.lexists(path):
        path.rename(old)
    try:
        # A rename replaces a file or an empty directory without complaint.
        _check_absent(path)
        made.rename(path)
    except BaseException:
        if os.path.lexists(old) and os.path.lexists(path):
            raise FileExistsError(
                f"Another process has written {path} meanwhile. What was there before is in {old}."
            ) from None
        if os.path.lexists(old):
            old.rename(path)
        raise
    flush_entry(path.parent)
    if old.is_dir() and not old.is_symlink():
        shutil.rmtree(old, ignore_errors=True)
    else:
        old.unlink(missing_ok=True)


def _check_absent(path):
    if os.path.lexists(path):
        raise FileExistsError(
            f"{path} exists already, and nothing is overwritten. Remove it, or choose another path."
        )


def _flush(directory):
    for folder, _, files in os.walk(directory):
        for name in files:
            flush_entry(os.path.join(folder, name))
        flush_entry(folder)
