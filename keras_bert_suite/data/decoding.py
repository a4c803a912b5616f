"""Bytes of text files to lines."""

import codecs

_CHUNK_BYTES = 1 << 20
_LONG_LINE = 1 << 20


def stream_lines(file, encoding="utf-8"):
    """Yields the lines of a text file of any size.

    A line ends at a line feed, or at both a carriage return and a line feed. One of more than a
    million characters comes in parts, cut at spaces.

    Args:
        file: binary file with a `name`.
        encoding: str, of the file. A byte order mark is dropped.

    Yields:
        str.

    Raises:
        ValueError: if the file cannot be decoded, naming the line.
    """
    rest = None
    for text in _decode_chunks(file, encoding):
        rest = text.removeprefix("\ufeff") if rest is None else rest + text
        *lines, rest = rest.split("\n")
        for line in lines:
            yield line.removesuffix("\r")
        if len(rest) > _LONG_LINE and " " in rest:
            part, _, rest = rest.rpartition(" ")
            yield part
    if rest:
        yield rest.removesuffix("\r")


def _decode_chunks(file, encoding):
    try:
        decoder = codecs.getincrementaldecoder(encoding)()
    except LookupError as error:
        raise unknown_encoding(error) from None
    bytes_before, lines_before, chunk = 0, 0, None
    while chunk != b"":
        chunk = file.read(_CHUNK_BYTES)
        # The first bytes of a character that the chunk before cut. An error counts from there.
        pending, _ = decoder.getstate()
        try:
            text = decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            offset = bytes_before - len(pending) + error.start
            line_number = lines_before + error.object.count(b"\n", 0, error.start) + 1
            raise undecodable(file.name, encoding, error, offset, line_number) from None
        if text:
            yield text
        bytes_before += len(chunk)
        lines_before += chunk.count(b"\n")


def undecodable(name, encoding, error, offset, line_number):
    """The ValueError for a UnicodeDecodeError at a byte of a file."""
    return ValueError(
        f"{name} is not {encoding}: byte 0x{error.object[error.start]:02x} at offset {offset} "
        f"(line {line_number}): {error.reason}. Convert the file to UTF-8, or name the encoding it "
        "is in."
    )


def unknown_encoding(error):
    """The ValueError for the LookupError of an encoding that Python does not know."""
    return ValueError(f"{error}. Wanted one that Python knows, e.g. 'utf-8'.")
