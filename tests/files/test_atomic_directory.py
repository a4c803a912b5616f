"""A directory is there whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from keras_bert_suite.files.atomic_directory import atomic_directory, put_in_place


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
        with atomic_directory(tmp_path / "kept" / "target") as directory:
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


@pytest.mark.parametrize("content", [{}, {"file": "theirs"}])
def test_a_target_that_appears_meanwhile_stays(tmp_path, content):
    """Empty or full. A rename would replace an empty one."""
    target = tmp_path / "target"
    with pytest.raises(FileExistsError, match="target exists already"):
        with atomic_directory(target) as directory:
            (directory / "file").write_text("mine")
            write(target, content)
    assert read(tmp_path) == {"target": content}


def write(path, content):
    """Writes a file, or a directory of files."""
    if isinstance(content, str):
        path.write_text(content)
        return
    path.mkdir()
    for name, text in content.items():
        (path / name).write_text(text)


def read(path):
    """What `write` has written."""
    if path.is_dir():
        return {file.name: read(file) for file in path.iterdir()}
    return path.read_text()


@pytest.fixture(params=["file", "directory"])
def make(request):
    """Function from a text to the content of a file, or of a directory."""
    return (lambda text: text) if request.param == "file" else (lambda text: {"weights": text})


def test_puts_in_place(tmp_path, make):
    target = tmp_path / "target"
    write(tmp_path / "made", make("first"))
    put_in_place(tmp_path / "made", target)
    write(tmp_path / "made", make("second"))
    with pytest.raises(FileExistsError, match="target exists already"):
        put_in_place(tmp_path / "made", target)
    assert read(tmp_path) == {"made": make("second"), "target": make("first")}
    put_in_place(tmp_path / "made", target, replace=True)
    assert read(tmp_path) == {"target": make("second")}


@pytest.mark.parametrize("failing", [0, 1])
def test_what_was_there_survives_a_failed_rename(tmp_path, make, monkeypatch, failing):
    """The first rename sets the old content aside, the second one puts the new in its place."""
    target, made = tmp_path / "target", tmp_path / "made"
    write(target, make("old"))
    write(made, make("new"))
    fail_at(monkeypatch, failing)
    with pytest.raises(OSError, match="no room"):
        put_in_place(made, target, replace=True)
    assert read(tmp_path) == {"made": make("new"), "target": make("old")}


def test_what_another_process_writes_meanwhile_stays(tmp_path, make, monkeypatch):
    target, made, rename = tmp_path / "target", tmp_path / "made", Path.rename
    write(target, make("old"))
    write(made, make("new"))

    def rename_late(path, to):
        rename(path, to)
        write(target, make("theirs"))

    monkeypatch.setattr(Path, "rename", rename_late)
    with pytest.raises(FileExistsError, match="Another process has written .*target mean") as error:
        put_in_place(made, target, replace=True)
    assert read(target) == make("theirs") and read(made) == make("new")
    assert read(Path(str(error.value).rpartition(" is in ")[2].removesuffix("."))) == make("old")


def test_a_link_is_replaced_and_its_target_stays(tmp_path):
    write(tmp_path / "elsewhere", {"weights": "old"})
    (tmp_path / "target").symlink_to(tmp_path / "elsewhere")
    write(tmp_path / "made", "new")
    put_in_place(tmp_path / "made", tmp_path / "target", replace=True)
    assert read(tmp_path) == {"elsewhere": {"weights": "old"}, "target": "new"}


def fail_at(monkeypatch, failing):
    """Lets the rename of this number fail."""
    rename, calls = Path.rename, []

    def fail(path, target):
        calls.append(path)
        if len(calls) == failing + 1:
            raise OSError(28, "no room")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail)
