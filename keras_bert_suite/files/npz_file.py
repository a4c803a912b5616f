"""Reads .npz files that may be damaged or hostile."""

import io
import math
import zipfile

import numpy as np

from keras_bert_suite.files.messages import damaged, reading

#: Deflate makes a file at most so many times smaller.
_MOST_SHRINKING = 1032


def read_integers(path, content, names):
    """Reads arrays of integers with one axis. Their sizes are checked before memory is taken.

    Args:
        path: str or path of the file, for messages.
        content: bytes of the file.
        names: iterable of str.

    Returns:
        list of arrays, in the order of `names`.

    Raises:
        ValueError: if the file is damaged, or an array is missing or is of another kind.
    """
    with reading(path), zipfile.ZipFile(io.BytesIO(content)) as archive:
        size = len(content)
        return [_read(path, archive, archive.getinfo(f"{name}.npy"), size) for name in names]


def _read(path, archive, info, size):
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        read_header = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, _, dtype = read_header(member)
        if dtype.kind not in "iu" or len(shape) != 1:
            raise damaged(path, f"{info.filename} has shape {shape} and dtype {dtype}")
        num_bytes = math.prod(shape) * dtype.itemsize
        if not 0 <= num_bytes <= info.file_size or info.file_size > size * _MOST_SHRINKING:
            raise damaged(path, f"{info.filename} is said to have {info.file_size:,} bytes")
        data = member.read(num_bytes)
    return np.frombuffer(data, dtype, count=shape[0])
