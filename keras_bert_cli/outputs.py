"""What commands write: aside first, then renamed to its place."""

import os
import shutil
import uuid
from pathlib import Path


def check_output(path, overwrite=False):
    """Finds out before hours of work that its result could not be written.

    Raises:
        FileExistsError: if there is something at `path` and `overwrite` is False.
        OSError: if the folder it goes into is a file, or may not be written to.
    """
    path = Path(path).expanduser().absolute()
    if os.path.lexists(path) and not overwrite:
        raise FileExistsError(
            f"{path} exists already. Choose another path, or pass --overwrite to replace it."
        )
    folder = next(parent for parent in path.parents if os.path.lexists(parent))
    if not folder.is_dir():
        raise NotADirectoryError(f"{path} cannot be written, for {folder} is not a folder.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{path} cannot be written: no permission to write to {folder}.")


def write_output(path, write, overwrite=False):
    """Puts a file or a folder in its place, whole or not at all.

    Args:
        path: str or path.
        write: function that makes the file or folder at the path it is given, which
            has the same name.
        overwrite: bool, whether to replace what is at `path`.

    Returns:
        `path`, as a `pathlib.Path`.
    """
    from keras_bert_suite.checkpoints import atomic_directory

    path = Path(path).expanduser()
    check_output(path, overwrite)
    aside = path.absolute().with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with atomic_directory(aside) as folder:
            write(folder / path.name)
        if os.path.lexists(path) and overwrite:
            path.rename(aside / "replaced")
        try:
            # Not `replace`, which would take the place of a file that came in between.
            check_output(path)
            (aside / path.name).rename(path)
        except OSError:
            if os.path.lexists(aside / "replaced"):
                (aside / "replaced").rename(path)
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return path
