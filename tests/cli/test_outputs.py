"""Files and folders appear whole or not at all."""

import os

import pytest
from cli.small_files import list_files

from keras_bert_cli.outputs import check_output, write_output


def write_file(path):
    path.write_text("new")


def write_preset(path):
    path.mkdir()
    (path / "config.json").write_text("new")


@pytest.mark.parametrize(
    ("write", "folder", "file"),
    [(write_file, False, "x/y.keras"), (write_preset, True, "x/y.keras/config.json")],
)
def test_writes_and_replaces(tmp_path, write, folder, file):
    path = tmp_path / "x/y.keras"
    assert write_output(path, write, folder=folder) == path
    assert (tmp_path / file).read_text() == "new"
    with pytest.raises(FileExistsError, match="pass --overwrite"):
        check_output(path, folder=folder)
    (tmp_path / file).write_text("old")
    check_output(path, overwrite=True, folder=folder)
    assert (tmp_path / file).read_text() == "old"
    write_output(path, write, overwrite=True, folder=folder)
    assert (tmp_path / file).read_text() == "new"
    assert set(list_files(tmp_path)) == {"x", "x/y.keras", file}


@pytest.mark.parametrize("file", ["notes.txt", "results/config.json"])
def test_a_folder_without_a_model_is_not_replaced(tmp_path, file):
    path = tmp_path / "x"
    (path / file).parent.mkdir(parents=True)
    (path / file).write_text("the user's")
    with pytest.raises(FileExistsError, match="x holds files, but no model"):
        check_output(path, overwrite=True, folder=True)
    with pytest.raises(FileExistsError, match="x holds files, but no model"):
        write_output(path, write_preset, overwrite=True, folder=True)
    assert (path / file).read_text() == "the user's"
    for name in ("config.json", "model.onnx", "model.xml", "model.tflite", "saved_model.pb"):
        (path / name).touch()
        check_output(path, overwrite=True, folder=True)
        (path / name).unlink()
    (tmp_path / "empty").mkdir()
    write_output(tmp_path / "empty", write_preset, overwrite=True, folder=True)
    assert (tmp_path / "empty/config.json").read_text() == "new"


def test_a_file_and_a_folder_do_not_replace_each_other(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileExistsError, match="file is a file, and --overwrite does not put a fol"):
        check_output(tmp_path / "file", overwrite=True, folder=True)
    with pytest.raises(FileExistsError, match="folder is a folder, and --overwrite does not put a"):
        check_output(tmp_path / "folder", overwrite=True)
    assert list_files(tmp_path) == ["file", "folder"]


def test_what_was_there_survives_an_error(tmp_path):
    (tmp_path / "x").write_text("old")

    def fail(path):
        write_file(path)
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_output(tmp_path / "x", fail, overwrite=True)
    assert list_files(tmp_path) == ["x"]


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
