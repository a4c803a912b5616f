"""Checksums of files.

The command line loads this file before Keras is imported, so it imports the standard library only.
"""

import hashlib
import os
from pathlib import Path

#: The file of the checksums of a folder. `sha256sum -c SHA256SUMS` checks it, too.
CHECKSUMS = "SHA256SUMS"


def describe_checksums(folder, names):
    """The checksums of files of a folder, as `sha256sum` prints them: a line for each, str."""
    return "".join(f"{find_digest(folder / name)}  {name}\n" for name in names)


def write_checksums(folder, patterns=("**/*",)):
    """Writes `SHA256SUMS` of the files in a folder that match glob patterns."""
    folder = Path(folder)
    found = {path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}
    names = sorted(path.relative_to(folder).as_posix() for path in found)
    lines = describe_checksums(folder, (name for name in names if name != CHECKSUMS))
    (folder / CHECKSUMS).write_text(lines, encoding="utf-8", newline="\n")


def check_checksums(folder):
    """Compares the files of a folder with its `SHA256SUMS`, if it has one.

    Files that are not listed, or are missing, are left to the reader of the folder. Another
    checksum is a ValueError.
    """
    sums = Path(folder) / CHECKSUMS
    if not sums.is_file():
        return
    for line in sums.read_bytes().splitlines():
        wanted, _, name = os.fsdecode(line).partition(" ")
        # `sha256sum --binary` writes an asterisk instead of the second space.
        path = sums.parent / name[1:]
        if path.is_file() and find_digest(path) != wanted:
            raise ValueError(
                f"{path} does not have its SHA-256 in {sums}. One of them is damaged: "
                f"restore it. If the file was changed on purpose, remove {CHECKSUMS}."
            )


def find_digest(path):
    """The SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def masked_checksum(data):
    """CRC-32C as TensorFlow stores it: rotated, with a constant added. It reads bytes or uint8."""
    import google_crc32c

    checksum = google_crc32c.value(data)
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def digest_model(path):
    """The SHA-256 of the names and the contents of the files of a model, in hexadecimal.

    `path` is a folder, or a file. Hidden files do not count. An address is a ValueError: other
    machines would read it at another time.
    """
    given, path = path, Path(path).expanduser()
    if path.is_file():
        return find_digest(path)
    if not path.is_dir():
        raise ValueError(
            f"{given} is no folder of a model on this machine. Save the model to a folder that "
            "each worker sees, with save_to_preset, and pass the folder."
        )
    files = (file for file in path.rglob("*") if file.is_file())
    names = sorted(file.relative_to(path).as_posix() for file in files)
    shown = (name for name in names if not any(part[0] == "." for part in name.split("/")))
    return hashlib.sha256(describe_checksums(path, shown).encode()).hexdigest()
