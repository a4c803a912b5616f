"""Atomic files, complete or absent, and JSON with a checksum.

The command line loads this file before Keras is imported, so it imports the standard library only.
"""

import contextlib
import hashlib
import json
import os
import uuid

#: Ends the names of files being written; they begin with a dot.
ASIDE = ".tmp"

#: The key of the checksum in a sealed JSON file.
SEAL = "sha256"


@contextlib.contextmanager
def atomic_file(path):
    """Yields a temporary path. The file written there replaces `path` when the block ends.

    The temporary file is flushed to disk, then renamed. If the block raises, it is removed. A
    process that is killed leaves it behind, hidden as `.NAME.*.tmp`.
    """
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex}{ASIDE}")
    try:
        yield aside
        flush_entry(aside)
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)
    flush_entry(path.parent)


def flush_entry(path):
    """Brings a file, or the names in a folder, to the disk."""
    is_file = os.path.isfile(path)
    if os.name == "nt" and not is_file:
        return  # Windows does not open directories.
    descriptor = os.open(path, os.O_RDWR if is_file else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path, value):
    """Writes a JSON file atomically, UTF-8 and indented."""
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    with atomic_file(path) as aside:
        aside.write_text(text, encoding="utf-8", newline="\n")


def write_sealed_json(path, value):
    """Writes a JSON object as `write_json` does, with its checksum under the key "sha256"."""
    write_json(path, {**value, SEAL: _seal(value)})


def parse_sealed_json(content):
    """The dict in the bytes of a file of `write_sealed_json`, or of a file without a checksum.

    A ValueError for a wrong checksum, or another content, has a message that follows the name of
    the file.
    """
    value = parse_json(content)
    found = value.pop(SEAL, None)
    if found is not None and found != _seal(value):
        raise ValueError(f"does not have the checksum under {SEAL!r}")
    return value


def parse_json(data, kind=dict):
    """The object or the array in JSON, bytes of UTF-8 or str. `kind` is dict, list or object.

    A ValueError for another content has a message that follows the name of the file.
    """
    try:
        value = json.loads(data if isinstance(data, str) else data.decode("utf-8"))
    except RecursionError:
        raise ValueError("is not JSON (its brackets are nested too deep)") from None
    except ValueError as error:  # JSONDecodeError, UnicodeDecodeError, or too many digits
        raise ValueError(f"is not JSON ({error})") from error
    if not isinstance(value, kind):
        wanted = "object" if kind is dict else "array"
        raise ValueError(f"must hold a JSON {wanted}, got {type(value).__name__}")
    return value


def _seal(value):
    """The SHA-256 of the content of JSON, in hexadecimal. White space does not count."""
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
