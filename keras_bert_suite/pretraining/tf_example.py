"""Reads and writes TFRecord files of `tf.train.Example`s, without TensorFlow.

Source: tensorflow/core/lib/io/record_writer.h, tensorflow/core/example/{example,feature}.proto.
"""

import functools
import struct

import numpy as np

from keras_bert_suite.files.checksums import masked_checksum
from keras_bert_suite.files.protocol_buffers import make_message_classes

_HEADER = struct.Struct("<QI")
_CHECKSUM = struct.Struct("<I")


def find_records(data):
    """The offset and the size of each record of a TFRecord file, int64 (N, 2).

    `data` is bytes, or an `mmap` of the file. A damaged file is a ValueError.
    """
    places, position = [], 0
    while position < len(data):
        begin = position + _HEADER.size
        header = data[position:begin]
        if len(header) < _HEADER.size or masked_checksum(header[:8]) != _HEADER.unpack(header)[1]:
            raise ValueError(f"the record at byte {position} has a wrong checksum")
        size = _HEADER.unpack(header)[0]
        position = begin + size + _CHECKSUM.size
        if position > len(data):
            raise ValueError(f"its last record is cut short, at byte {begin}")
        places.append((begin, size))
    return np.array(places, "int64").reshape(-1, 2)


def read_record(data, offset, size):
    """The bytes of one record. Raises ValueError if they are damaged."""
    record = data[offset : offset + size]
    if _CHECKSUM.pack(masked_checksum(record)) != data[offset + size : offset + size + 4]:
        raise ValueError(f"the record at byte {offset} has a wrong checksum")
    return record


def frame_record(record):
    """The bytes that a TFRecord file holds for a record."""
    size = struct.pack("<Q", len(record))
    checksums = _CHECKSUM.pack(masked_checksum(size)), _CHECKSUM.pack(masked_checksum(record))
    return b"".join((size, checksums[0], record, checksums[1]))


def parse_example(record):
    """The features of a serialized `tf.train.Example`: 1-D arrays by name, int64 or float32."""
    from google.protobuf.message import DecodeError

    try:
        features = _example_class().FromString(record).features.feature
    except DecodeError as error:
        raise ValueError("it is no tf.train.Example") from error
    arrays = {}
    for feature in features:
        floats, ints = feature.value.float_list.value, feature.value.int64_list.value
        arrays[feature.key] = (
            np.fromiter(floats, "float32", len(floats))
            if len(floats)
            else np.fromiter(ints, "int64", len(ints))
        )
    return arrays


def serialize_example(features):
    """A serialized `tf.train.Example` of a dict of 1-D arrays of ints or floats, in its order."""
    example = _example_class()()
    for name, values in features.items():
        feature = example.features.feature.add(key=name)
        kind = "float_list" if values.dtype.kind == "f" else "int64_list"
        getattr(feature.value, kind).value.extend(values.tolist())
    return example.SerializeToString()


@functools.cache
def _example_class():
    """The message class of `tf.train.Example`.

    TensorFlow's class has a map of features, and a file holds a map as a list of entries. Our class
    has a list, so it keeps the order in which the entries are written.
    """
    return make_message_classes(
        {
            "FloatList": "repeated float value = 1",
            "Int64List": "repeated int64 value = 1",
            "Feature": "FloatList float_list = 2; Int64List int64_list = 3",
            "Entry": "string key = 1; Feature value = 2",
            "Features": "repeated Entry feature = 1",
            "Example": "Features features = 1",
        }
    )["Example"]
