"""Files and folders appear whole or not at all."""

import os
import tempfile
from pathlib import Path

import pytest
from cli.small_files import list_files

from keras_bert_cli.outputs import check_output, write_output


@pytest.fixture(autouse=True)
def elsewhere(tmp_path_factory, monkeypatch):
    """An empty folder that is the current one and that for temporary files."""
    folder = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def write_file(path):
    path.write_text("new")


def write_preset(path):
    path.mkdir()
    (path / "config.json").write_text("new")


@pytest.mark.parametrize(
    ("write", "kind", "file"),
    [(write_file, None, "x/y.keras"), (write_preset, "preset", "x/y.keras/config.json")],
)
def test_writes_and_replaces(tmp_path, write, kind, file):
    path = tmp_path / "x/y.keras"
    assert write_output(path, write, kind=kind) == path
    assert (tmp_path / file).read_text() == "new"
    with pytest.raises(FileExistsError, match="pass --overwrite"):
        check_output(path, kind=kind)
    (tmp_path / file).write_text("old")
    check_output(path, overwrite=True, kind=kind)
    assert (tmp_path / file).read_text() == "old"
    write_output(path, write, overwrite=True, kind=kind)
    assert (tmp_path / file).read_text() == "new"
    assert set(list_files(tmp_path)) == {"x", "x/y.keras", file}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["notes.txt"], "did not write: notes.txt. --overwrite would delete it"),
        (["config.json", "results/notes.txt"], "did not write: results/notes.txt"),
        (["config.json", ".git/config"], "did not write: .git/config"),
        (["a", "b", "c", "d", "e"], "a, b, c and 2 more"),
        (["model.safetensors", "config.json"], "did not write: model.safetensors"),
    ],
)
def test_a_folder_with_other_files_is_not_replaced(tmp_path, files, message):
    for file in files:
        (tmp_path / "x" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "x" / file).write_text("the user's")
    before = list_files(tmp_path)
    with pytest.raises(FileExistsError, match=message):
        check_output(tmp_path / "x", overwrite=True, kind="preset")
    with pytest.raises(OSError, match=message):
        write_output(tmp_path / "x", write_preset, overwrite=True, kind="preset")
    assert set(before) <= set(list_files(tmp_path))
    assert all((tmp_path / "x" / file).read_text() == "the user's" for file in files)


def test_a_file_and_a_folder_do_not_replace_each_other(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileExistsError, match="file is a file, and --overwrite does not put a fol"):
        check_output(tmp_path / "file", overwrite=True, kind="preset")
    with pytest.raises(FileExistsError, match="folder is a folder, and --overwrite does not put a"):
        check_output(tmp_path / "folder", overwrite=True)
    assert list_files(tmp_path) == ["file", "folder"]


def test_what_was_there_survives_an_error(tmp_path, elsewhere):
    (tmp_path / "x").write_text("old")

    def fail(path):
        write_file(path)
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_output(tmp_path / "x", fail, overwrite=True)
    assert list_files(tmp_path) == ["x"]
    assert list_files(elsewhere) == []


def test_what_has_no_place_is_written_elsewhere(tmp_path, elsewhere):
    def write(path):
        if path.is_relative_to(tmp_path):
            raise OSError(28, "No space left on device")
        write_file(path)

    with pytest.raises(OSError, match="No space left on device") as raised:
        write_output(tmp_path / "x.keras", write)
    (folder,) = elsewhere.iterdir()
    assert f"the result is in {folder / 'x.keras'} instead" in str(raised.value)
    assert (folder / "x.keras").read_text() == "new"
    assert list_files(tmp_path) == []


def write_anew(path, write, content):
    """Puts a file, or a folder with one, at a path. Returns the file."""
    write(path)
    file = path / "config.json" if path.is_dir() else path
    file.write_text(content)
    return file


def before_rename(monkeypatch, act):
    """Has `act(source, target)` called before each rename."""
    rename = Path.rename

    def act_and_rename(source, target):
        act(source, Path(target))
        return rename(source, target)

    monkeypatch.setattr(Path, "rename", act_and_rename)


KINDS = [(write_file, None), (write_preset, "preset")]


@pytest.mark.parametrize(("write", "kind"), KINDS)
def test_another_may_come_first(tmp_path, write, kind):
    path = tmp_path / "x"

    def write_beside_another(aside):
        write(aside)
        if not path.exists():
            write_anew(path, write, "the other's")

    with pytest.raises(OSError, match="x exists already") as raised:
        write_output(path, write_beside_another, kind=kind)
    (folder,) = tmp_path.glob("keras-bert-*")
    assert str(folder / "x") in str(raised.value)
    assert [read_text(path), read_text(folder / "x")] == ["the other's", "new"]
    assert not list(tmp_path.glob(".*"))


def read_text(path):
    return (path / "config.json" if path.is_dir() else path).read_text()


@pytest.mark.parametrize(("write", "kind"), KINDS)
@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), KeyboardInterrupt()])
@pytest.mark.parametrize("failing", ["x", ".old"])
def test_what_was_there_survives_a_rename_that_fails(
    tmp_path, monkeypatch, write, kind, error, failing
):
    """Before the swap, when the former file leaves its place, and in it."""
    write_anew(tmp_path / "x", write, "old")
    errors = [error]

    def fail(source, target):
        if target.name.endswith(failing) and errors:
            raise errors.pop()

    before_rename(monkeypatch, fail)
    with pytest.raises(type(error)):
        write_output(tmp_path / "x", write, overwrite=True, kind=kind)
    assert read_text(tmp_path / "x") == "old"
    saved = [read_text(folder / "x") for folder in tmp_path.glob("keras-bert-*")]
    assert saved == (["new"] if isinstance(error, OSError) else [])
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(("write", "kind"), KINDS)
def test_another_may_come_between_the_renames(tmp_path, monkeypatch, write, kind):
    """Neither what it wrote nor what was there before is lost."""
    path = tmp_path / "x"
    write_anew(path, write, "old")

    rename, former = Path.rename, []

    def come_after(source, target):
        renamed = rename(source, target)
        if target.name.endswith(".old"):
            write_anew(path, write, "the other's")
            former.append(target)
        return renamed

    monkeypatch.setattr(Path, "rename", come_after)
    with pytest.raises(OSError, match="the result is in") as raised:
        write_output(path, write, overwrite=True, kind=kind)
    assert str(former[0]) in str(raised.value)
    assert [read_text(path), read_text(former[0])] == ["the other's", "old"]


def test_places_that_cannot_be_written_to(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="file is not a folder"):
        check_output(tmp_path / "file/x")
    with pytest.raises(OSError, match="/proc takes no files"):  # not even from root
        check_output("/proc/a/b")
    with pytest.raises(OSError, match="takes no files. File name too long"):
        check_output(tmp_path / ("x" * 240))  # there would be no room for the name aside
    if os.geteuid():
        (tmp_path / "closed").mkdir(mode=0o500)
        with pytest.raises(PermissionError, match="closed takes no files"):
            check_output(tmp_path / "closed/x")
        (tmp_path / "closed").rmdir()
    assert list_files(tmp_path) == ["file"]
