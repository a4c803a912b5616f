"""The folders of versions, as TensorFlow Serving finds them."""

import os
from pathlib import Path


def version_path(path: str | os.PathLike[str]) -> Path:
    """The version folder that an export to `path` writes.

    >>> version_path("saved_models/sentiment/7")
    PosixPath('saved_models/sentiment/7')
    >>> version_path("saved_models/sentiment")  # which holds 1 and 7
    PosixPath('saved_models/sentiment/8')

    Args:
        path: str or path. If its name is a whole number, it is the folder of a version.
            Otherwise it is the folder of a model, and the version is the highest number in it
            plus 1.

    Returns:
        `pathlib.Path`.
    """
    path = Path(path).expanduser()
    if _is_version(path.name):
        return path
    versions = [int(entry.name) for entry in path.glob("*") if _is_version(entry.name)]
    return path / str(max(versions, default=0) + 1)


def _is_version(name):
    return name.isascii() and name.isdecimal()
