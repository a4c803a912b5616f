"""The folder of a prepared corpus, on this machine or in a remote file system."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from keras_bert_suite.annotations import PathLike


class CorpusFolder:
    """Reads the files of a folder by a file system of fsspec.

    `path` is a path, or a str such as "shards", "s3://bucket/shards" or "gs://bucket/shards".
    fsspec names the package that it needs for a protocol.
    """

    def __init__(self, path: PathLike) -> None:
        # Who trains on texts in memory need not wait for it.
        import fsspec
        from fsspec.implementations.local import LocalFileSystem

        text = os.fspath(path)
        if "://" not in text:
            text = str(Path(text).expanduser().absolute())
        self.path = text.rstrip("/")
        self._files, self._root = fsspec.url_to_fs(self.path)
        self.is_remote = not isinstance(self._files, LocalFileSystem)

    def __reduce__(self):
        return type(self), (self.path,)

    def __str__(self) -> str:
        return self.path

    def exists(self, file: str) -> bool:
        """Whether there is a file."""
        return self._files.isfile(self._join(file))

    def list_sizes(self) -> dict[str, int]:
        """The names of the files and their bytes."""
        self._files.invalidate_cache(self._root)
        found = self._files.ls(self._root, detail=True)
        return {
            entry["name"].rpartition("/")[2]: entry["size"]
            for entry in found
            if entry["type"] != "directory"  # fsspec calls a link to a file "other".
        }

    def read(self, file: str) -> bytes:
        """The content of a file."""
        return self._files.cat_file(self._join(file))

    @contextlib.contextmanager
    def copy(self, file: str) -> Iterator[Path]:
        """Yields the path of a file on this machine. It is a copy if the folder is remote.

        The copy is removed when the block ends. A reader that has opened it before can continue
        reading. The system frees the disk when this reader closes the copy, or is killed.
        """
        if not self.is_remote:
            yield Path(self._join(file))
            return
        folder = tempfile.mkdtemp(prefix="keras-bert-shard-")
        try:
            local = Path(folder) / file
            self._files.get_file(self._join(file), str(local))
            yield local
        finally:
            shutil.rmtree(folder)

    def _join(self, file):
        return f"{self._root}/{file}"
