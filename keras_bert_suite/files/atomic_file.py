"""Files that are there whole or not at all."""

import contextlib
import json
import os
import uuid

#: Ends the names of files being written; they begin with a dot.
ASIDE = ".tmp"


@contextlib.contextmanager
def atomic_file(path):
    """Yields a temporary path. The file written there replaces `path` when the block ends.

    The temporary file is flushed to disk, then renamed. If the block raises, it is removed. A
    process that is killed leaves it behind, hidden as `.NAME.*.tmp`.

    Args:
        path: `pathlib.Path` in an existing folder.
    """
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex}{ASIDE}")
    try:
        yield aside
        _flush(aside)
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)
    if os.name != "nt":  # Windows does not open directories.
        _flush(path.parent)


def write_json(path, value):
    """Writes a JSON file, UTF-8 and indented, whole or not at all."""
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    with atomic_file(path) as aside:
        aside.write_text(text, encoding="utf-8", newline="\n")


def _flush(path):
    descriptor = os.open(path, os.O_RDWR if path.is_file() else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
