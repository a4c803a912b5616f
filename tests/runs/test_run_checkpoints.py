"""A checkpoint is there whole, or it is named and the one before is used."""

import hashlib
import json
import os
import resource
import shutil
import subprocess

import numpy as np
import pytest

from keras_bert_suite.runs.progress import Progress
from keras_bert_suite.runs.run_checkpoints import find_checkpoint, read_arrays, write_checkpoint

FILES = ("SHA256SUMS", "manifest.json", "variables.safetensors")


def progress_at(batches):
    return Progress(first_step=3, seed=7, batches=batches, steps_per_epoch=10)


def arrays_at(batches):
    import ml_dtypes

    return {
        "model/kernel": np.full((3, 2), batches, "float32"),
        "model/half": np.full(4, batches, ml_dtypes.bfloat16),
        "optimizer/iteration": np.array(batches),
    }


@pytest.fixture
def directory(tmp_path):
    """Two checkpoints, of batches 5 and 10."""
    directory = tmp_path / "run"
    for batches in (5, 10):
        write_checkpoint(directory, progress_at(batches), arrays_at(batches), keep=3)
    return directory


def test_round_trip(directory):
    path, progress = find_checkpoint(directory)
    assert path.name == "step-00000010" and progress == progress_at(10)
    found, wanted = read_arrays(path), arrays_at(10)
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_a_kill_while_a_checkpoint_is_replaced(directory):
    """The checkpoint that was set aside comes back, or goes if the new one is in place."""
    path = directory / "step-00000010"
    shutil.copytree(path, directory / ".step-00000010.0a.old")
    assert find_checkpoint(directory)[0] == path and sorted(os.listdir(directory))[0][0] == "s"
    path.rename(directory / ".step-00000010.0b.old")
    assert find_checkpoint(directory) == (path, progress_at(10))


def test_coreutils_check_it(directory):
    if shutil.which("sha256sum") is None:
        pytest.skip("no sha256sum")
    command = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    subprocess.run(command, cwd=directory / "step-00000010", check=True, stdout=subprocess.DEVNULL)


def test_there_may_be_none(tmp_path):
    assert find_checkpoint(tmp_path / "nowhere") is None
    (tmp_path / "notes.txt").write_text("step-00000001")
    assert find_checkpoint(tmp_path) is None


@pytest.mark.parametrize("name", FILES)
def test_any_flipped_bit_is_found(directory, name):
    path = directory / "step-00000010" / name
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for position in {0, len(content) - 2, *rng.integers(0, len(content) - 1, 60).tolist()}:
        damaged = bytearray(content)
        damaged[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.warns(UserWarning, match=r"step-00000010: .* does not have the sha256"):
            found, progress = find_checkpoint(directory)
        assert found.name == "step-00000005" and progress.batches == 5


@pytest.mark.parametrize("name", FILES)
def test_any_truncation_is_found(directory, name):
    path = directory / "step-00000010" / name
    content = path.read_bytes()
    for size in {0, 1, len(content) // 2, len(content) - 2}:
        path.write_bytes(content[:size])
        with pytest.warns(UserWarning, match="step-00000010: .* does not have the sha256"):
            assert find_checkpoint(directory)[1].batches == 5
    path.unlink()
    with pytest.warns(UserWarning, match=f"step-00000010: {name} missing.*step-00000005 is used"):
        assert find_checkpoint(directory)[1].batches == 5


def test_none_valid_is_an_error(directory):
    (directory / "step-00000005" / "manifest.json").write_bytes(b"{}")
    shutil.rmtree(directory / "step-00000010")
    (directory / "step-00000010").mkdir()
    with pytest.raises(
        ValueError, match="(?s)No checkpoint.*00010: .*missing.*00005.*sha256.*move"
    ):
        find_checkpoint(directory)


def test_another_format_is_named(directory):
    path = directory / "step-00000010"
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps({**manifest, "format": 99}))
    sums = [
        f"{hashlib.sha256((path / name).read_bytes()).hexdigest()}  {name}\n" for name in FILES[1:]
    ]
    (path / "SHA256SUMS").write_text("".join(sums))
    with pytest.warns(UserWarning, match="format 99, wanted 1"):
        assert find_checkpoint(directory)[1].batches == 5


def test_the_newest_are_kept(directory):
    for batches in (15, 20):
        write_checkpoint(directory, progress_at(batches), arrays_at(batches), keep=2)
    assert sorted(os.listdir(directory)) == ["step-00000015", "step-00000020"]


def test_a_damaged_one_is_replaced_and_does_not_count(directory):
    """The run goes on from 5; 10 is damaged, and so is 30, which it has not yet reached."""
    (directory / "step-00000010" / "manifest.json").write_bytes(b"{}")
    (directory / "step-00000030").mkdir()
    with pytest.warns(UserWarning, match="passed over"):
        assert find_checkpoint(directory)[1].batches == 5
    write_checkpoint(directory, progress_at(10), arrays_at(10), keep=1)
    assert sorted(os.listdir(directory)) == ["step-00000010", "step-00000030"]
    with pytest.warns(UserWarning, match="step-00000030"):
        assert find_checkpoint(directory)[1].batches == 10


def test_leftovers_are_removed(directory):
    (directory / ".step-00000015.0123.tmp").mkdir()
    (directory / ".step-00000015.0123.tmp" / "variables.safetensors").write_bytes(b"half")
    find_checkpoint(directory)
    assert sorted(os.listdir(directory)) == ["step-00000005", "step-00000010"]


def test_a_full_disk_leaves_the_old_ones(directory):
    """No file may grow beyond 20 kB here: to who writes it, the disk is full."""
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limit[1]))
    try:
        with pytest.raises(OSError, match="(?i)too large|could not be written"):
            write_checkpoint(directory, progress_at(15), {"model/x": np.ones(10_000)}, keep=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert {p: p.read_bytes() for p in directory.rglob("*") if p.is_file()} == before
    assert sorted(os.listdir(directory)) == ["step-00000005", "step-00000010"]
