"""Writes the results of commands atomically: to a temporary path first, then renamed."""

import os
import shutil
import uuid
from pathlib import Path

from .model_paths import MODEL_FILES

#: A folder that --overwrite may replace has one of these files.
MAIN_FILES = (*MODEL_FILES, "model.tflite", "merges.txt")


def check_output(path, overwrite=False, folder=False):
    """Checks before hours of work that the result can be written.

    A folder is made beside `path` and removed again. `overwrite` says whether a file or the folder
    of a model at `path` may be replaced, and `folder` whether the result is a folder.
    """
    path = Path(path).absolute()
    _check_replaceable(path, overwrite, folder)
    parent = next(parent for parent in path.parents if os.path.lexists(parent))
    if not parent.is_dir():
        raise NotADirectoryError(
            f"{path} cannot be written: {parent} is not a folder. Choose another path."
        )
    aside = parent / _name_aside(path)
    try:
        aside.mkdir()
    except OSError as error:
        raise OSError(
            error.errno,
            f"{path} cannot be written: {parent} takes no files. {os.strerror(error.errno)}",
        ) from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def write_output(path, write, overwrite=False, folder=False):
    """Writes a file or a folder atomically, and returns its `pathlib.Path`.

    `write` makes it at a path that it is given, which has the same name as `path`. `overwrite` and
    `folder` are as for `check_output`.
    """
    from keras_bert_suite.files.atomic_directory import atomic_directory, put_in_place

    path = Path(path)
    _check_replaceable(path, overwrite, folder)
    aside = path.absolute().with_name(_name_aside(path))
    try:
        with atomic_directory(aside) as made:
            write(made / path.name)
        put_in_place(aside / path.name, path, replace=overwrite)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return path


def _check_replaceable(path, overwrite, folder):
    """Raises a `FileExistsError` unless a file, or a folder, may take a place."""
    if not os.path.lexists(path):
        return
    if not overwrite:
        raise FileExistsError(
            f"{path} exists already. Choose another path, or pass --overwrite to replace it."
        )
    if path.is_dir() != folder:
        there, new = ("file", "folder") if folder else ("folder", "file")
        raise FileExistsError(
            f"{path} is a {there}, and --overwrite does not put a {new} in its place. Choose "
            "another path."
        )
    is_model = folder and any(any(path.glob(pattern)) for pattern in MAIN_FILES)
    if folder and not is_model and any(path.iterdir()):
        raise FileExistsError(
            f"{path} holds files, but no model, and --overwrite would delete them. Move it, or "
            "choose another path."
        )


def _name_aside(path):
    return f".{path.name}.{uuid.uuid4().hex}"
