"""A directory is there whole or not at all."""

import os
import stat

import pytest

from keras_bert_suite.files.atomic_directory import atomic_directory


def test_appears_when_the_block_ends(tmp_path):
    target = tmp_path / "target"
    with atomic_directory(str(target)) as directory:
        assert directory.parent == tmp_path
        (directory / "inner").mkdir()
        (directory / "inner" / "file").write_text("content")
        assert not target.exists()
    assert (target / "inner" / "file").read_text() == "content"
    assert os.listdir(tmp_path) == ["target"]


def test_has_the_permissions_of_any_new_directory(tmp_path):
    (tmp_path / "ordinary").mkdir()
    with atomic_directory(tmp_path / "target"):
        pass
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("ordinary", "target")}
    assert len(modes) == 1


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_leaves_nothing_on_failure(tmp_path, error):
    (tmp_path / "kept").mkdir()
    with pytest.raises(type(error)):
        with atomic_directory(tmp_path / "kept" / "new" / "newer" / "target") as directory:
            (directory / "file").write_text("half")
            raise error
    assert os.listdir(tmp_path) == ["kept"]
    assert os.listdir(tmp_path / "kept") == []


def test_makes_parents(tmp_path):
    with atomic_directory(tmp_path / "a" / "b"):
        pass
    assert (tmp_path / "a" / "b").is_dir()


@pytest.mark.parametrize("kind", ["directory", "empty directory", "file", "dangling link"])
def test_existing_target_stays(tmp_path, kind):
    target = tmp_path / "target"
    if kind == "file":
        target.write_text("old")
    elif kind == "dangling link":
        target.symlink_to(tmp_path / "nowhere")
    else:
        target.mkdir()
    if kind == "directory":
        (target / "file").write_text("old")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(FileExistsError, match="exists already.*Remove it, or choose another"):
        with atomic_directory(target):
            raise AssertionError("not reached")
    assert sorted(tmp_path.rglob("*")) == before


def test_target_that_appears_meanwhile_stays(tmp_path):
    target = tmp_path / "target"
    with pytest.raises(FileExistsError):
        with atomic_directory(target) as directory:
            (directory / "file").write_text("mine")
            target.mkdir()
            (target / "file").write_text("theirs")
    assert (target / "file").read_text() == "theirs"
    assert os.listdir(tmp_path) == ["target"]
