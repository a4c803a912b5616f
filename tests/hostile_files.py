"""Files that a stranger has changed, the readers that get them, and what no reader may do.

A case is a reader and a number: the number draws which file of a valid set is changed, and how.
Checksums are made right again after a change, since a stranger would do so too.
`benchmarks/fuzz.py` tries many cases, `test_hostile_files.py` a few.
"""

import contextlib
import dataclasses
import io
import json
import os
import random
import shutil
import sys
import warnings
import zipfile
from collections.abc import Callable

#: The most characters of a message.
MAX_MESSAGE = 2000

#: What every reader may raise. UnicodeDecodeError and the like are ValueErrors.
ALLOWED = (ValueError, OSError)

#: Values that a stranger puts in place of one in JSON.
VALUES = (
    *(None, True, 0, -1, 1.5, 2**31, 2**63, 10**400, float("nan"), float("inf"), "", "x"),
    *("../../escaped", "/tmp/escaped", "a/../../escaped", "\0", "\ud800", "x" * 5000, [], {}),
    *([[]] * 3, {"x": 1}, [0] * 1000, ["../escaped"], {"a": "/etc/passwd"}),
)

#: Bytes that a stranger writes over others: sizes and offsets, small and huge.
NUMBERS = [
    *(number.to_bytes(size, "little") for size in (1, 2, 4, 8) for number in (0, 1, 255)),
    *(b"\xff" * size for size in (2, 4, 8)),
    *(b"\xff" * 9 + b"\x01", b"\x80" * 9 + b"\x01", (1 << 40).to_bytes(8, "little")),
    *(b"\0\0\0\x80", b"\xff\xff\xff\x7f", (2**63 - 1).to_bytes(8, "little")),
]


class Escape(Exception):
    """A reader has done what no reader may do: see `watch`."""


@dataclasses.dataclass(frozen=True)
class Reader:
    """A function that reads files, and a valid set of them.

    Attributes:
        make: function of a `pathlib.Path`, an empty folder. It writes the files.
        read: function of the folder. It reads all of it.
        seal: function of the folder, or None. It makes checksums right again.
        mutate: dict, ending of a file -> function of (bytes, `random.Random`) that changes what
            `mutate_bytes` would seldom reach.
        weight: float, how many cases it gets.
        raises: errors that may come beside `ALLOWED`.
    """

    make: Callable
    read: Callable
    seal: Callable | None = None
    mutate: dict = dataclasses.field(default_factory=dict)
    weight: float = 1.0
    raises: tuple = ()


def mutate_bytes(data, rng):
    """Changes some bytes: flips, overwrites, removes, doubles, cuts, inserts."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5, 20))):
        place = rng.randrange(len(data) + 1)
        size = min(rng.choice((1, 2, 4, 8, 64, 1000)), len(data) - place)
        kind = rng.randrange(7)
        if kind == 0 and place < len(data):
            data[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            number = rng.choice(NUMBERS)
            data[place : place + len(number)] = number
        elif kind == 2:
            del data[place : place + size]
        elif kind == 3:
            data[place:place] = data[place : place + size] * rng.choice((1, 2, 50))
        elif kind == 4:
            del data[place:]
        elif kind == 5:
            data[place:place] = rng.randbytes(size)
        else:
            source = rng.randrange(len(data) + 1)
            data[place : place + size] = data[source : source + size]
    return bytes(data[: 1 << 20])


def mutate_json(data, rng):
    """Changes a value or a key anywhere in JSON, or its bytes."""
    if rng.random() < 0.2:
        return rng.choice((b"[" * 100_000, b'{"a":' * 50_000, b"", b"null", b"[]", b"1" * 5000))
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return mutate_bytes(data, rng)
    for _ in range(rng.choice((1, 1, 2))):
        content = _change(content, rng)
    return json.dumps(content).encode("utf-8", "surrogatepass")


def _change(content, rng):
    """The JSON value with one value below it, or itself, exchanged."""
    if not isinstance(content, (dict, list)) or not content or rng.random() < 0.1:
        return rng.choice(VALUES)
    if isinstance(content, list):
        index = rng.randrange(len(content))
        return [*content[:index], _change(content[index], rng), *content[index + 1 :]]
    key = rng.choice(list(content))
    if rng.random() < 0.15:
        others = {name: value for name, value in content.items() if name != key}
        return {**others, rng.choice(("x" * 3000, "../x", "", key.upper())): content[key]}
    return {**content, key: _change(content[key], rng)}


def mutate_text(data, rng):
    """Changes lines of a text, or its bytes."""
    lines = data.split(b"\n")
    if rng.random() < 0.5:
        return mutate_bytes(data, rng)
    place = rng.randrange(len(lines))
    hostile = (b"", b"\0", b"x" * 5000, b"\t" * 500, b'"', "é\u2028".encode(), b"\xff", b"a b c")
    lines[place] = rng.choice((*hostile, lines[rng.randrange(len(lines))]))
    return b"\n".join(lines)


def mutate_safetensors(data, rng):
    """Changes the header of a safetensors file, whose size is made right again."""
    if rng.random() < 0.3:
        return mutate_bytes(data, rng)
    size = int.from_bytes(data[:8], "little")
    header = mutate_json(data[8 : 8 + size], rng)
    return len(header).to_bytes(8, "little") + header + data[8 + size :]


def mutate_zip(change):
    """A function that changes members of a zip archive, by name or content.

    Args:
        change: function of (name, bytes, `random.Random`) that changes the content of a member.
    """

    def mutate(data, rng):
        if rng.random() < 0.2:
            return mutate_bytes(data, rng)
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(info.filename, archive.read(info)) for info in archive.infolist()]
        place = rng.randrange(len(members))
        name, content = members[place]
        kind = rng.randrange(5)
        if kind == 0:
            name = rng.choice(("../escaped", "/tmp/escaped", "assets/../../escaped", "x" * 300))
        elif kind == 1:
            members.append((rng.choice(("../escaped", "assets/../../../escaped", name)), b"x"))
        else:
            content = change(name, content, rng)
        members[place] = name, content
        if rng.random() < 0.1:
            members.pop(rng.randrange(len(members)))
        output = io.BytesIO()
        method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
        with warnings.catch_warnings(), zipfile.ZipFile(output, "w", method) as archive:
            warnings.simplefilter("ignore")  # of doubled names
            for name, content in members:
                archive.writestr(name, content)
        return output.getvalue()

    return mutate


def mutate_member(name, content, rng):
    """Changes a member of an archive by its kind."""
    if name.endswith(".json"):
        return mutate_json(content, rng)
    if name.endswith(".npy"):
        return _mutate_npy(content, rng)
    if name.endswith(".txt"):
        return mutate_text(content, rng)
    return mutate_bytes(content, rng)


def _mutate_npy(content, rng):
    """Changes the header of an array: its dtype, its shape."""
    shape = rng.choice(("(1099511627776,)", "(-1,)", "(2, 3)", "()", "(4611686018427387904, 4)"))
    dtype = rng.choice(("'<u1'", "'<i8'", "'|O'", "'<f8'", "'<U9'", "[('a', '<i8')]"))
    header = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}, }}"
    output = content[:8] + len(header).to_bytes(2, "little") + header.encode()
    return output + content[128:] if rng.random() < 0.7 else mutate_bytes(content, rng)


def mutate_table(data, rng):
    """Changes entries of the index of a TensorFlow checkpoint, whose checksums stay right."""
    from keras_bert_suite.checkpoints.google_tf1.string_table import make_table, read_table

    if rng.random() < 0.3:
        return mutate_bytes(data, rng)
    pairs = list(read_table(data))
    place = rng.randrange(len(pairs))
    key, value = pairs[place]
    if rng.random() < 0.2:
        pairs[place] = rng.choice((b"x" * 5000, b"\xff\xfe", b"../x", key)), value
    else:
        pairs[place] = key, mutate_bytes(value, rng)[:100_000]
    return make_table(pairs)


def mutate_records(data, rng):
    """Changes a record of a TFRecord file, whose checksums stay right."""
    from keras_bert_suite.pretraining.tf_example import find_records, frame_record

    if rng.random() < 0.3:
        return mutate_bytes(data, rng)
    records = [bytes(data[o : o + size]) for o, size in find_records(data).tolist()]
    place = rng.randrange(len(records))
    records[place] = mutate_bytes(records[place], rng)
    return b"".join(map(frame_record, records))


#: Ending of a file -> function that changes it.
MUTATIONS = {
    ".json": mutate_json,
    ".jsonl": mutate_text,
    ".txt": mutate_text,
    ".csv": mutate_text,
    ".tsv": mutate_text,
    ".conll": mutate_text,
    ".safetensors": mutate_safetensors,
    ".index": mutate_table,
    ".tfrecord": mutate_records,
    ".keras": mutate_zip(mutate_member),
    ".npz": mutate_zip(mutate_member),
    ".bin": mutate_zip(mutate_member),
}


def mutate(folder, rng):
    """Changes one file of a folder.

    Returns:
        str, the name of the file.
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    file = rng.choice([path for path in files if path.name != "SHA256SUMS"])
    change = MUTATIONS.get(file.suffix, mutate_bytes)
    file.write_bytes(change(file.read_bytes(), rng))
    return file.relative_to(folder).as_posix()


#: While `watch` runs: the folders that may be written to, and what has happened.
_watched = {"folders": None, "events": []}


def _audit(event, arguments):
    if _watched["folders"] is None:
        return
    if event == "pickle.find_class":
        _watched["events"].append(f"unpickled {'.'.join(map(str, arguments))}")
    elif event in ("subprocess.Popen", "os.system", "os.exec"):
        _watched["events"].append(f"ran {arguments[0]}")
    elif event == "open":
        path, mode, flags = arguments
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if writes and not isinstance(path, int):
            _note_write(path)
    elif event in ("os.remove", "os.rmdir"):
        if arguments[1] == -1:  # Else the path is relative to an open folder, as in shutil.rmtree.
            _note_write(arguments[0])
    elif event in ("os.mkdir", "os.rename", "os.symlink"):
        _note_write(arguments[0])
        if event in ("os.rename", "os.symlink"):
            _note_write(arguments[1])


def _note_write(path):
    path = os.path.realpath(os.fsdecode(path))
    if not path.startswith(_watched["folders"]):
        _watched["events"].append(f"wrote {path}")


@contextlib.contextmanager
def watch(*folders):
    """Raises `Escape` if the block unpickles, starts a process, or writes outside of folders.

    Hooks cannot be removed from an interpreter, so there is one for all blocks.
    """
    if not _watched.get("hooked"):
        sys.addaudithook(_audit)
        _watched["hooked"] = True
    _watched["folders"] = tuple(os.path.realpath(folder) + os.sep for folder in folders)
    _watched["folders"] += ("/dev/null",)
    _watched["events"].clear()
    try:
        yield
    finally:
        _watched["folders"] = None
    if _watched["events"]:
        raise Escape("; ".join(_watched["events"]))


def try_case(reader, valid, folder, number):
    """Changes a copy of valid files, and reads it.

    Args:
        reader: `Reader`.
        valid: `pathlib.Path` of the folder that `reader.make` has filled.
        folder: `pathlib.Path` of a folder, which is made anew.
        number: int or str, the case.

    Returns:
        str that says what is wrong, or None.
    """
    shutil.rmtree(folder, ignore_errors=True)
    place = folder / "inner" / "files"
    shutil.copytree(valid, place)
    changed = mutate(place, random.Random(number))
    if reader.seal:
        reader.seal(place)
    temporary = folder / "temporary"
    temporary.mkdir()
    import tempfile

    before, tempfile.tempdir = tempfile.tempdir, str(temporary)
    try:
        with warnings.catch_warnings(), watch(place, temporary):
            warnings.simplefilter("ignore")
            reader.read(place)
    except ALLOWED + reader.raises as error:
        return check_message(error, place, changed)
    except Exception as error:
        return f"{changed}: raised {type(error).__name__}: {str(error)[:300]}"
    finally:
        tempfile.tempdir = before
    return None


def check_message(error, folder, changed):
    """Says what is wrong with the message of an error, or None."""
    message = str(error)
    if len(message) >= MAX_MESSAGE:
        return f"{changed}: {type(error).__name__} of {len(message):,} characters: {message[:200]}"
    if str(folder) not in message:
        return f"{changed}: {type(error).__name__} names no file: {message[:300]}"
    return None


def draw_reader(readers, rng):
    """The name of a reader, by weight."""
    names = list(readers)
    return rng.choices(names, [readers[name].weight for name in names])[0]
