"""Checksums in JSON and beside the files of a folder: every flipped bit is found, or harmless."""

import hashlib
import json
import shutil
import subprocess

import pytest

from keras_bert_suite.files.atomic_file import parse_json, parse_sealed_json, write_sealed_json
from keras_bert_suite.files.checksums import (
    CHECKSUMS,
    check_checksums,
    digest_model,
    write_checksums,
)

VALUE = {"steps": 6, "rate": 1e-4, "names": ["é", None], "finished": 0}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "assets").mkdir()
    (tmp_path / "config.json").write_bytes(b'{"dropout": 0.1}')
    (tmp_path / "assets" / "vocab.txt").write_bytes(b"[PAD]\n[UNK]\n")
    write_checksums(tmp_path)
    return tmp_path


def flip_bits(path, step):
    """Yields after each flip of a bit of a file, which is undone afterwards."""
    content = path.read_bytes()
    for bit in range(0, 8 * len(content), step):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        yield
    path.write_bytes(content)


#: A step of five flips each bit of some bytes.
every_bit = pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.long("faults"))])


@every_bit
def test_sealed_json(tmp_path, step):
    path = tmp_path / "settings.json"
    write_sealed_json(path, VALUE)
    assert parse_sealed_json(path.read_bytes()) == VALUE
    found = 0
    for _ in flip_bits(path, step):
        try:
            value = parse_sealed_json(path.read_bytes())
        except ValueError:
            found += 1
        else:
            # A damaged name of the checksum is one more key. Else only white space has changed.
            assert {name: value[name] for name in VALUE} == VALUE
            assert len(value) <= len(VALUE) + 1
    assert found * step > 7 * len(path.read_bytes())
    path.write_text(json.dumps(VALUE))
    assert parse_sealed_json(path.read_bytes()) == VALUE, (
        "a file that was changed on purpose has none"
    )


@pytest.mark.parametrize("data", [b"[" * 100_000, b"[]", b"1" * 5000, b"\xff", b'{"a": ', b"null"])
def test_json_of_strangers(data):
    with pytest.raises(ValueError) as caught:
        parse_json(data)
    assert len(str(caught.value)) < 200


@every_bit
def test_each_flipped_bit_of_a_folder_is_found(folder, step):
    for name in ("config.json", "assets/vocab.txt"):
        for _ in flip_bits(folder / name, step):
            with pytest.raises(ValueError, match=rf"{name} does not have its SHA-256 .* remove"):
                check_checksums(folder)
    check_checksums(folder)
    # A name that has changed stands for a file that is not there: the others are compared.
    results = {"found": 0, "harmless": 0}
    for _ in flip_bits(folder / CHECKSUMS, step):
        try:
            check_checksums(folder)
            results["harmless"] += 1
        except ValueError:
            results["found"] += 1
    assert results["found"] > 3 * results["harmless"]


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="needs sha256sum")
def test_sha256sum_reads_them(folder):
    command = ["sha256sum", "--check", "--strict", CHECKSUMS]
    assert subprocess.run(command, cwd=folder, capture_output=True).returncode == 0
    (folder / "config.json").write_bytes(b'{"dropout": 0.5}')
    assert subprocess.run(command, cwd=folder, capture_output=True).returncode == 1


def test_the_form_of_binary_files(folder):
    sums = (folder / CHECKSUMS).read_text()
    (folder / CHECKSUMS).write_text(sums.replace("  ", " *"))
    check_checksums(folder)
    (folder / "config.json").write_bytes(b'{"dropout": 0.5}')
    with pytest.raises(ValueError, match="config.json does not have its SHA-256"):
        check_checksums(folder)


def test_only_the_listed_files_are_compared(folder):
    (folder / "README.md").write_text("a card")
    write_checksums(folder, ["*.json", "assets/**/*"])
    names = [line.split()[1] for line in (folder / CHECKSUMS).read_text().splitlines()]
    assert names == ["assets/vocab.txt", "config.json"]
    (folder / "README.md").write_text("another card")
    check_checksums(folder)


def test_missing_files_are_left_to_the_reader(folder):
    (folder / "config.json").unlink()
    check_checksums(folder)


def test_the_digest_of_a_model(folder):
    file = folder / "config.json"
    assert digest_model(file) == hashlib.sha256(file.read_bytes()).hexdigest()
    whole = digest_model(folder)
    (folder / ".cache").mkdir()
    (folder / ".cache" / "lock").write_text("hidden")
    assert digest_model(str(folder)) == whole
    file.rename(folder / "other.json")
    assert digest_model(folder) != whole
    with pytest.raises(ValueError, match="hf://a/b is no folder .* with save_to_preset, and pass"):
        digest_model("hf://a/b")
