"""Files and folders appear whole or not at all."""

import pytest
from cli.small_files import list_files

from keras_bert_cli.outputs import check_output, write_output

pytestmark = pytest.mark.backend_free


def write_file(path):
    path.write_text("new")


def write_folder(path):
    path.mkdir()
    (path / "a").write_text("new")


@pytest.mark.parametrize(
    ("write", "file"), [(write_file, "x/y.keras"), (write_folder, "x/y.keras/a")]
)
def test_writes_and_replaces(tmp_path, write, file):
    path = tmp_path / "x/y.keras"
    assert write_output(path, write) == path
    assert (tmp_path / file).read_text() == "new"
    with pytest.raises(FileExistsError, match="pass --overwrite"):
        write_output(path, write)
    (tmp_path / file).write_text("old")
    write_output(path, write, overwrite=True)
    assert (tmp_path / file).read_text() == "new"
    assert set(list_files(tmp_path)) == {"x", "x/y.keras", file}


def test_a_folder_takes_the_place_of_a_file(tmp_path):
    (tmp_path / "x").write_text("old")
    write_output(tmp_path / "x", write_folder, overwrite=True)
    assert list_files(tmp_path) == ["x", "x/a"]


def test_what_was_there_survives_an_error(tmp_path):
    (tmp_path / "x").write_text("old")

    def fail(path):
        write_file(path)
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_output(tmp_path / "x", fail, overwrite=True)
    with pytest.raises(OSError, match="No space"):
        write_output(tmp_path / "a/b/c", fail)
    assert list_files(tmp_path) == ["x"]


def test_another_may_come_first(tmp_path):
    def write(path):
        write_file(path)
        (tmp_path / "x").write_text("the other's")

    with pytest.raises(FileExistsError):
        write_output(tmp_path / "x", write)
    assert list_files(tmp_path) == ["x"]
    assert (tmp_path / "x").read_text() == "the other's"


def test_places_that_cannot_be_written_to(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="file is not a folder"):
        check_output(tmp_path / "file/x")
    monkeypatch.setattr("os.access", lambda *args: False)  # root may write anywhere
    with pytest.raises(PermissionError, match="no permission"):
        check_output(tmp_path / "a/b")
    assert list_files(tmp_path) == ["file"]
