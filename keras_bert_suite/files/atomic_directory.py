"""Atomic directories: complete or absent."""

import contextlib
import os
import shutil
import uuid
from pathlib import Path


@contextlib.contextmanager
def atomic_directory(path):
    """Yields a temporary directory that becomes `path` when the block ends without error.

    The temporary directory lies beside `path`. It is flushed to disk, then renamed. If the block
    raises, or the disk is full, it is removed with all its content, and so are the parents that
    were made for it. A process that is killed leaves it behind, hidden as `.NAME.*.tmp`.

    ```python
    with atomic_directory("saved_models/sentiment/1") as directory:
        (directory / "config.json").write_text("{}")
    ```

    Args:
        path: str or path that does not exist.

    Yields:
        `pathlib.Path` of the temporary directory.

    Raises:
        FileExistsError: if there is anything at `path`, before the block or after it.
    """
    path = Path(path).expanduser().absolute()
    _check_absent(path)
    made = [parent for parent in path.parents if not parent.exists()]
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        temporary.mkdir(parents=True)
        yield temporary
        _flush(temporary)
        # A rename replaces an empty directory without complaint.
        _check_absent(path)
        try:
            temporary.rename(path)
        except OSError:
            _check_absent(path)  # Another process may have made it meanwhile.
            raise
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        with contextlib.suppress(OSError):  # Another process may have written to them.
            for parent in made:
                parent.rmdir()
        raise
    flush_entry(path.parent)


def _check_absent(path):
    if path.exists() or path.is_symlink():
        raise FileExistsError(
            f"{path} exists already, and nothing is overwritten. Remove it, or choose another path."
        )


def _flush(directory):
    for folder, _, files in os.walk(directory):
        for name in files:
            flush_entry(os.path.join(folder, name))
        flush_entry(folder)


def flush_entry(path):
    """Brings a file, or the names in a folder, to the disk."""
    if os.name == "nt" and os.path.isdir(path):
        return  # Windows does not open directories.
    descriptor = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
