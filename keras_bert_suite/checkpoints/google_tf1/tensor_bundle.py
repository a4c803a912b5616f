"""Reads and writes TensorFlow's checkpoint files ("tensor bundles") without TensorFlow.

A bundle is `PREFIX.index`, a sorted string table that maps tensor names to
BundleEntryProto messages, and `PREFIX.data-00000-of-0000N`, the bytes.

Source: tensorflow/core/util/tensor_bundle and
tensorflow/core/protobuf/tensor_bundle.proto.
"""

import functools
import math
import struct

import ml_dtypes
import numpy as np

from keras_bert_suite.checkpoints.google_tf1.string_table import make_table, read_table
from keras_bert_suite.files.checksums import masked_checksum
from keras_bert_suite.files.messages import damaged, list_names, reading, shorten
from keras_bert_suite.files.protocol_buffers import make_message_classes

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

#: The tensor in which TensorFlow 2 writes which object has which tensor.
OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


class TensorBundle:
    """The tensors of a TensorFlow checkpoint. They are memory-mapped, and checked when read.

    Its `shapes` are a dict of name -> shape. `prefix` is the `pathlib.Path` of the files without
    `.index` or `.data-...`.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file is cut short or damaged, or written by TensorFlow 2.
    """

    def __init__(self, prefix):
        from google.protobuf.message import DecodeError

        self.index_path = prefix.with_name(prefix.name + ".index")
        messages = _message_classes()
        try:
            table = dict(read_table(self.index_path.read_bytes()))
            num_shards = messages["Header"].FromString(table.pop(b"")).num_shards
            self._entries = {
                name.decode(errors="backslashreplace"): messages["Entry"].FromString(value)
                for name, value in table.items()
            }
            if not all(e.shard < num_shards < 100_000 for e in self._entries.values()):
                raise ValueError(f"it has {num_shards} data files")
        except (ValueError, IndexError, KeyError, struct.error, DecodeError) as error:
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
        self.shapes = {
            name: tuple(dim.size for dim in entry.shape.dims)
            for name, entry in self._entries.items()
        }
        if OBJECT_GRAPH in self.shapes:
            raise ValueError(
                f"{prefix} is a checkpoint of TensorFlow 2, as the Model Garden and Keras 2 write "
                "them, and not of google-research/bert. Take the TF1 checkpoint of the model, or "
                "convert yours with convert_bert_original_tf2_checkpoint_to_pytorch.py of "
                "transformers 4."
            )

    def tensor(self, name):
        """The tensor called `name`, a read-only array in its stored dtype."""
        entry, shape = self._entries[name], self.shapes[name]
        if entry.dtype not in _DTYPES or entry.slices:
            raise ValueError(
                f"{shorten(name)} in {self.index_path} is stored in slices, or is of dtype number "
                f"{entry.dtype}, wanted a whole array of numbers."
            )
        dtype = _DTYPES[entry.dtype]
        path = self._shards[entry.shard]
        if entry.size != dtype.itemsize * math.prod(shape):
            raise damaged(self.index_path, f"{shorten(name)} is said to have {entry.size} bytes")
        if not entry.size:
            with reading(self.index_path):
                return np.zeros(shape, dtype)
        data = np.memmap(path, "uint8", "r", entry.offset, (entry.size,))
        if masked_checksum(data) != entry.checksum:
            raise damaged(path, f"the checksum of {shorten(name)} is wrong")
        return data.view(dtype).reshape(shape)


def write_bundle(prefix, tensors):
    """Writes a checkpoint with one data file. One (name, float32 array) at a time is in memory."""
    messages = _message_classes()
    # The header has the empty name.
    header = messages["Header"](num_shards=1, version={"producer": 1})
    entries, offset = {b"": header.SerializeToString()}, 0
    with open(prefix.with_name(f"{prefix.name}.data-00000-of-00001"), "wb") as file:
        for name, tensor in tensors:
            data = tensor.astype("<f4", copy=False).tobytes()
            entry = messages["Entry"](
                dtype=_FLOAT32,
                shape={"dims": [{"size": size} for size in tensor.shape]},
                offset=offset,
                size=len(data),
                checksum=masked_checksum(data),
            )
            entries[name.encode()] = entry.SerializeToString()
            offset += file.write(data)
    index_path = prefix.with_name(prefix.name + ".index")
    index_path.write_bytes(make_table(sorted(entries.items())))


@functools.cache
def _message_classes():
    return make_message_classes(
        {
            "Version": "uint64 producer = 1",
            "Header": "uint64 num_shards = 1; Version version = 3",
            "Dim": "uint64 size = 1",
            "Shape": "repeated Dim dims = 2",
            "Entry": "uint64 dtype = 1; Shape shape = 2; uint64 shard = 3; uint64 offset = 4; "
            "uint64 size = 5; fixed32 checksum = 6; repeated bytes slices = 7",
        }
    )
