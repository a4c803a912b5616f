"""Packages whose modules are imported before their own code runs."""

import sys

import pytest

from keras_bert_cli import unopened


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """`parcel` and `parcel.room`, left unopened. A list in `builtins` has what has run."""
    (tmp_path / "parcel/room").mkdir(parents=True)
    files = {
        "parcel/__init__.py": "ran.append('parcel')\nfrom parcel.room import table\nchair = 1\n",
        "parcel/room/__init__.py": "ran.append('room')\nfrom .part import leg as table\n",
        "parcel/room/part.py": "ran.append('part')\nleg = 4\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("builtins.ran", [], raising=False)
    monkeypatch.setattr(unopened, "PACKAGES", ("parcel", "parcel.room"))
    unopened.leave_unopened()
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "parcel"]:
        del sys.modules[name]


def test_the_code_of_a_package_runs_once_and_when_it_is_needed(packages):
    from parcel.room import part

    assert part.leg == 4 and ran == ["part"]  # noqa: F821
    import parcel

    with pytest.raises(AttributeError):
        parcel.__all__  # noqa: B018
    assert ran == ["part"]  # noqa: F821
    assert parcel.chair == 1
    assert parcel.room.table == 4 and parcel.room.part is part
    assert ran == ["part", "parcel", "room"]  # noqa: F821
    with pytest.raises(AttributeError, match="sofa"):
        parcel.sofa  # noqa: B018


def test_an_imported_package_stays_as_it_is(packages):
    opened = sys.modules["parcel"]
    assert opened.chair == 1
    unopened.leave_unopened()
    assert sys.modules["parcel"] is opened
