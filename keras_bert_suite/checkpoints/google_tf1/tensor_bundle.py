"""Reads and writes TensorFlow's checkpoint files ("tensor bundles") without TensorFlow.

A bundle is `PREFIX.index`, a sorted string table that maps tensor names to
BundleEntryProto messages, and `PREFIX.data-00000-of-0000N`, the bytes.

Source: tensorflow/core/util/tensor_bundle and
tensorflow/core/protobuf/tensor_bundle.proto.
"""

import math
import struct
from typing import NamedTuple

import ml_dtypes
import numpy as np

from keras_bert_suite.checkpoints.google_tf1.string_table import (
    make_table,
    make_varint,
    read_table,
    read_varint,
)
from keras_bert_suite.files.checksums import masked_checksum
from keras_bert_suite.files.messages import damaged, list_names, reading, shorten

# tensorflow/core/framework/types.proto
_DTYPES = {
    1: np.dtype("float32"),
    2: np.dtype("float64"),
    3: np.dtype("int32"),
    4: np.dtype("uint8"),
    5: np.dtype("int16"),
    6: np.dtype("int8"),
    9: np.dtype("int64"),
    10: np.dtype("bool"),
    14: np.dtype(ml_dtypes.bfloat16),
    19: np.dtype("float16"),
}
_FLOAT32 = 1


class _Entry(NamedTuple):
    dtype: int
    shape: tuple
    shard: int
    offset: int
    size: int
    checksum: int
    is_sliced: bool


#: The tensor in which TensorFlow 2 writes which object has which tensor.
OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


class TensorBundle:
    """The tensors of a TensorFlow checkpoint. They are memory-mapped, and checked when read.

    Its `shapes` are a dict of name -> shape.

    Args:
        prefix: `pathlib.Path` of the files without `.index` or `.data-...`.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file is cut short or damaged, or written by TensorFlow 2.
    """

    def __init__(self, prefix):
        self.index_path = prefix.with_name(prefix.name + ".index")
        try:
            table = dict(read_table(self.index_path.read_bytes()))
            header = _parse_message(table.pop(b""))
            self._entries = {
                name.decode(errors="backslashreplace"): _parse_entry(value)
                for name, value in table.items()
            }
            num_shards = _find_number(header, 1)
            if not all(e.shard < num_shards < 100_000 for e in self._entries.values()):
                raise ValueError(f"it has {num_shards} data files")
        except (ValueError, IndexError, KeyError, TypeError, struct.error) as error:
            raise damaged(self.index_path, error) from error
        self._shards = [
            prefix.with_name(f"{prefix.name}.data-{i:05d}-of-{num_shards:05d}")
            for i in range(num_shards)
        ]
        missing = [path.name for path in self._shards if not path.is_file()]
        if missing:
            raise FileNotFoundError(
                f"{self.index_path} belongs to files that {prefix.parent} does not have: "
                f"{list_names(missing)}. Download them too."
            )
        for entry in self._entries.values():
            path, end = self._shards[entry.shard], entry.offset + entry.size
            if path.stat().st_size < end:
                raise damaged(path, f"it must have at least {end:,} bytes")
        self.shapes = {name: entry.shape for name, entry in self._entries.items()}
        if OBJECT_GRAPH in self.shapes:
            raise ValueError(
                f"{prefix} is a checkpoint of TensorFlow 2, as the Model Garden and Keras 2 write "
                "them, and not of google-research/bert. Take the TF1 checkpoint of the model, or "
                "convert yours with convert_bert_original_tf2_checkpoint_to_pytorch.py of "
                "transformers 4."
            )

    def tensor(self, name):
        """The tensor called `name`, a read-only array in its stored dtype."""
        entry = self._entries[name]
        if entry.dtype not in _DTYPES or entry.is_sliced:
            raise ValueError(
                f"{shorten(name)} in {self.index_path} is stored in slices, or is of dtype number "
                f"{entry.dtype}, wanted a whole array of numbers."
            )
        dtype = _DTYPES[entry.dtype]
        path = self._shards[entry.shard]
        if entry.size != dtype.itemsize * math.prod(entry.shape):
            raise damaged(self.index_path, f"{shorten(name)} is said to have {entry.size} bytes")
        if not entry.size:
            with reading(self.index_path):
                return np.zeros(entry.shape, dtype)
        data = np.memmap(path, "uint8", "r", entry.offset, (entry.size,))
        if masked_checksum(data) != entry.checksum:
            raise damaged(path, f"the checksum of {shorten(name)} is wrong")
        return data.view(dtype).reshape(entry.shape)


def write_bundle(prefix, tensors):
    """Writes a checkpoint with one data file. One (name, float32 array) at a time is in memory.

    `prefix` is the path of the files without `.index` or `.data-...`.
    """
    # The header has the empty name: number of data files, and version.
    entries = {b"": _make_message([(1, 1), (3, _make_message([(1, 1)]))])}
    offset = 0
    with open(prefix.with_name(f"{prefix.name}.data-00000-of-00001"), "wb") as file:
        for name, tensor in tensors:
            data = tensor.astype("<f4", copy=False).tobytes()
            dims = [(2, _make_message([(1, dim)])) for dim in tensor.shape]
            entry = [(1, _FLOAT32), (2, _make_message(dims)), (4, offset), (5, len(data))]
            checksum = struct.pack("<BI", 6 << 3 | 5, masked_checksum(data))
            entries[name.encode()] = _make_message(entry) + checksum
            offset += file.write(data)
    index_path = prefix.with_name(prefix.name + ".index")
    index_path.write_bytes(make_table(sorted(entries.items())))


def _make_message(fields):
    """Makes a protocol buffer of (field number, int or bytes) pairs. Zeros are left out."""
    data = b""
    for number, value in fields:
        if isinstance(value, bytes):
            data += make_varint(number << 3 | 2) + make_varint(len(value)) + value
        elif value:
            data += make_varint(number << 3) + make_varint(value)
    return data


def _parse_message(data):
    """Reads a protocol buffer as dict of field number -> list of int or bytes."""
    fields, position = {}, 0
    while position < len(data):
        tag, position = read_varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == 0:
            value, position = read_varint(data, position)
        elif wire_type in (1, 5):
            size, form = (8, "<Q") if wire_type == 1 else (4, "<I")
            (value,) = struct.unpack(form, data[position : position + size])
            position += size
        elif wire_type == 2:
            size, position = read_varint(data, position)
            value = data[position : position + size]
            position += size
        else:
            raise ValueError(f"a message has wire type {wire_type}")
        fields.setdefault(number, []).append(value)
    return fields


def _parse_entry(data):
    fields = _parse_message(data)
    shape = _parse_message(fields.get(2, [b""])[0])
    return _Entry(
        dtype=_find_number(fields, 1),
        shape=tuple(_find_number(_parse_message(dim), 1) for dim in shape.get(2, [])),
        shard=_find_number(fields, 3),
        offset=_find_number(fields, 4),
        size=_find_number(fields, 5),
        checksum=_find_number(fields, 6),
        is_sliced=7 in fields,
    )


def _find_number(fields, number):
    """The int in a field of a message; 0 if it is left out."""
    value = fields.get(number, [0])[0]
    if not isinstance(value, int):
        raise ValueError(f"field {number} of a message is no number")
    return value
