"""Checksums of files."""


def masked_checksum(data):
    """CRC-32C as TensorFlow stores it: rotated, with a constant added.

    Args:
        data: bytes or a read-only uint8 array.
    """
    import google_crc32c

    checksum = google_crc32c.value(data)
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF
