"""Writes the results of commands atomically: to a temporary path first, then renamed."""

import fnmatch
import os
import shutil
import tempfile
import uuid
from pathlib import Path

#: The files that tokenizers write.
TOKENIZER_FILES = (
    *("vocab.txt", "vocab.json", "merges.txt", "spiece.model", "sentencepiece.bpe.model"),
    *("tokenizer.json", "tokenizer_config.json"),
)

#: The files of a preset, which those of KerasHub have too.
PRESET_FILES = (
    *("config.json", "metadata.json", "task.json", "preprocessor.json", "tokenizer.json"),
    *("*.weights.h5", "*.weights.json", "assets/*", "assets/*/*", "SHA256SUMS"),
)

#: The kinds of folder that commands write, and the files a folder of that kind may hold.
FOLDERS = {
    "preset": PRESET_FILES,
    "keras_hub": PRESET_FILES,
    "saved_model": (
        *("saved_model.pb", "fingerprint.pb", "keras_metadata.pb", "batching_params.pbtxt"),
        *("assets/*", "assets.extra/*", "variables/variables.*", "SHA256SUMS"),
    ),
    "onnx": (*("model.onnx", *TOKENIZER_FILES, "packing.json", "label_names.txt"),),
    "openvino": (*("model.xml", "model.bin", *TOKENIZER_FILES, "packing.json", "label_names.txt"),),
    "litert": (*("model.tflite", *TOKENIZER_FILES, "packing.json", "label_names.txt"),),
    "huggingface": (
        *("config.json", "model.safetensors", *TOKENIZER_FILES),
        *("special_tokens_map.json", "modules.json", "sentence_bert_config.json"),
        "config_sentence_transformers.json",
        *("1_Pooling/config.json", "2_Normalize/*"),
    ),
    "google_tf1": (
        *("bert_config.json", "vocab.txt", "tokenizer_config.json"),
        *("bert_model.ckpt.index", "bert_model.ckpt.data-*"),
    ),
}


def check_output(path, overwrite=False, kind=None):
    """Checks before hours of work that the result can be written.

    A folder is made beside `path` and removed again.

    Args:
        path: str or path.
        overwrite: bool, whether a file or folder at `path` may be replaced.
        kind: a key of `FOLDERS`, or None for a file.

    Raises:
        FileExistsError: if there is something at `path`, and `overwrite` is False or the
            folder there holds a file that no folder of the kind has.
        OSError: if the folder around `path` is a file, or cannot be written to.
    """
    path = Path(path).absolute()
    _check_replaceable(path, overwrite, kind)
    folder = next(parent for parent in path.parents if os.path.lexists(parent))
    if not folder.is_dir():
        raise NotADirectoryError(
            f"{path} cannot be written: {folder} is not a folder. Choose another path."
        )
    aside = folder / _name_aside(path)
    try:
        aside.mkdir()
    except OSError as error:
        raise _describe_again(error, f"{path} cannot be written: {folder} takes no files") from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def write_output(path, write, overwrite=False, kind=None):
    """Writes a file or a folder atomically.

    If the result cannot be written to its place, it is written elsewhere: to a new folder beside
    the place, in the current folder or in the folder for temporary files. The error then names that
    folder.

    Args:
        path: str or path.
        write: function that makes the file or folder at a path that it is given. This path has
            the same name as `path`.
        overwrite: bool, whether to replace a file or folder at `path`.
        kind: as for `check_output`.

    Returns:
        `path`, as a `pathlib.Path`.

    Raises:
        OSError: if the result could not be written to its place.
    """
    path = Path(path)
    try:
        _write_in_place(path, write, overwrite, kind)
    except OSError as error:
        saved = _write_elsewhere(path, write)
        if saved is None:
            raise
        raise _describe_again(
            error, f"{path} could not be written, and the result is in {saved} instead"
        ) from error
    return path


def _write_in_place(path, write, overwrite, kind):
    from keras_bert_suite.files.atomic_directory import atomic_directory, put_in_place

    _check_replaceable(path, overwrite, kind)
    aside = path.absolute().with_name(_name_aside(path))
    try:
        with atomic_directory(aside) as folder:
            write(folder / path.name)
        put_in_place(aside / path.name, path, replace=overwrite)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _write_elsewhere(path, write):
    """Writes the result elsewhere. Returns its path, or None if it cannot be written anywhere."""
    for place in dict.fromkeys([path.absolute().parent, Path.cwd(), Path(tempfile.gettempdir())]):
        try:
            folder = Path(tempfile.mkdtemp(prefix="keras-bert-", dir=place))
        except OSError:
            continue
        saved = None
        try:
            write(folder / path.name)
            saved = folder / path.name
        except OSError:
            continue
        finally:
            if saved is None:
                shutil.rmtree(folder, ignore_errors=True)
        return saved
    return None


def _check_replaceable(path, overwrite, kind):
    """Raises a `FileExistsError` unless a folder of a kind, or a file, may take a place."""
    if not os.path.lexists(path):
        return
    if not overwrite:
        raise FileExistsError(
            f"{path} exists already. Choose another path, or pass --overwrite to replace it."
        )
    if path.is_dir() != (kind is not None):
        there, new = ("folder", "file") if kind is None else ("file", "folder")
        raise FileExistsError(
            f"{path} is a {there}, and --overwrite does not put a {new} in its place. Choose "
            "another path."
        )
    strangers = _list_strangers(path, FOLDERS[kind]) if kind is not None else []
    if strangers:
        more = f" and {len(strangers) - 3} more" if len(strangers) > 3 else ""
        raise FileExistsError(
            f"{path} holds files that keras-bert did not write: {', '.join(strangers[:3])}{more}. "
            "--overwrite would delete it. Move it, or choose another path."
        )


def _list_strangers(folder, patterns):
    """The relative paths of the files of a folder that match no pattern of their depth."""
    files = [file.relative_to(folder) for file in folder.rglob("*") if not file.is_dir()]
    return sorted(
        file.as_posix()
        for file in files
        if not any(
            len(file.parts) == pattern.count("/") + 1 and fnmatch.fnmatch(file.as_posix(), pattern)
            for pattern in patterns
        )
    )


def _name_aside(path):
    return f".{path.name}.{uuid.uuid4().hex}"


def _describe_again(error, message):
    """An error of the same number, with another beginning of its message."""
    message = f"{message}. {os.strerror(error.errno) if error.errno else error}"
    return OSError(error.errno, message) if error.errno else OSError(message)
