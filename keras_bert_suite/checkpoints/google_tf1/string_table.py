"""Reads and writes LevelDB's sorted string tables. The index of a TensorFlow checkpoint is one.

Source: doc/table_format.md of google/leveldb; tensorflow/core/lib/io/table.
"""

import struct

from keras_bert_suite.files.checksums import masked_checksum

_FOOTER_SIZE = 48
_MAGIC = 0xDB4775248B80FB57
_BLOCK_TRAILER_SIZE = 5


def read_table(data):
    """Yields the (key, value) pairs of the bytes of a table, in the order of the keys.

    A damaged table is a ValueError, an IndexError or a struct.error.
    """
    (magic,) = struct.unpack("<Q", data[-8:])
    if len(data) < _FOOTER_SIZE or magic != _MAGIC:
        raise ValueError("it is no TensorFlow checkpoint index")
    footer = data[-_FOOTER_SIZE:]
    position = 0
    for _ in range(2):  # the metaindex block, which is empty
        _, position = read_varint(footer, position)
    for _, handle in _read_block(data, *_read_handle(footer, position)):
        yield from _read_block(data, *_read_handle(handle, 0))


def _read_handle(data, position):
    offset, position = read_varint(data, position)
    size, _ = read_varint(data, position)
    return offset, size


def _read_block(data, offset, size):
    """Yields the (key, value) pairs of one block."""
    end = offset + size
    compression, checksum = struct.unpack("<BI", data[end : end + _BLOCK_TRAILER_SIZE])
    if masked_checksum(data[offset : end + 1]) != checksum:
        raise ValueError("the checksum of a block is wrong")
    if compression:
        raise ValueError("its blocks are compressed, which TensorFlow does not do")
    block = data[offset:end]
    (num_restarts,) = struct.unpack("<I", block[-4:])
    position, end, key = 0, len(block) - 4 * (num_restarts + 1), b""
    while position < end:
        shared, position = read_varint(block, position)  # with the key before it
        unshared, position = read_varint(block, position)
        value_size, position = read_varint(block, position)
        key = key[:shared] + block[position : position + unshared]
        position += unshared
        yield key, block[position : position + value_size]
        position += value_size


def make_table(pairs):
    """Makes a table of (key, value) pairs of bytes, whose keys are in order and all different.

    The table has one block, in which each key is spelled out. A reader takes blocks of any size,
    and a checkpoint has only some hundred names.
    """
    pairs = list(pairs)
    data = _make_block(pairs)
    handle = make_varint(0) + make_varint(len(data) - _BLOCK_TRAILER_SIZE)
    footer = b""
    # In the index, any key that is not below the last key of a block may stand for the block.
    for block in (_make_block([]), _make_block([(pairs[-1][0], handle)])):
        footer += make_varint(len(data)) + make_varint(len(block) - _BLOCK_TRAILER_SIZE)
        data += block
    return data + footer.ljust(_FOOTER_SIZE - 8, b"\0") + struct.pack("<Q", _MAGIC)


def _make_block(pairs):
    """Makes a block with its trailer."""
    block, restarts = bytearray(), []
    for key, value in pairs:
        restarts.append(len(block))  # where a key is spelled out, for binary search
        block += make_varint(0) + make_varint(len(key)) + make_varint(len(value)) + key + value
    block += struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))
    block += b"\0"  # not compressed
    return bytes(block + struct.pack("<I", masked_checksum(bytes(block))))


def read_varint(data, position):
    """(an unsigned integer with seven bits in each byte, the position after it).

    A number of more than 64 bits is a ValueError, and the end of the data an IndexError.
    """
    value = 0
    for shift in range(0, 64, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError("a number has more than 64 bits")


def make_varint(value):
    """The bytes of an unsigned integer, as `read_varint` reads them."""
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])
