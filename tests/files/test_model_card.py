"""The file of a model card: what a person has written in it stays."""

import importlib.metadata

import pytest

from keras_bert_suite.files.model_card import (
    CARD,
    find_licence,
    name_package,
    read_card,
    write_card,
)

FACTS = {"task": "TextClassifier", "labels": "a|b, c\nd"}


def test_a_table_of_the_facts(tmp_path):
    write_card(tmp_path, FACTS)
    lines = (tmp_path / CARD).read_text().splitlines()
    table = ["| task | TextClassifier |", "| --- | --- |", "| labels | a\\|b, c d |"]
    assert lines[2:-2] == table
    assert read_card(tmp_path) == (tmp_path / CARD).read_text()


def test_text_around_the_table_stays(tmp_path):
    write_card(tmp_path, FACTS)
    path = tmp_path / CARD
    path.write_text("# Ours\n\n" + path.read_text() + "\nFor the support team.\n")
    before = path.read_text()
    write_card(tmp_path, {**FACTS, "labels": "new"})
    assert path.read_text() == before.replace("a\\|b, c d", "new")
    write_card(tmp_path, FACTS)
    assert path.read_text() == before


def test_a_card_of_the_user_is_not_replaced(tmp_path):
    (tmp_path / CARD).write_text("# My model\n")
    with pytest.warns(UserWarning, match="a card of your own, and stays as it is"):
        write_card(tmp_path, FACTS)
    assert (tmp_path / CARD).read_text() == "# My model\n"


def test_a_card_of_a_saved_model(tmp_path):
    assert read_card(tmp_path) is None
    (tmp_path / "assets.extra").mkdir()
    write_card(tmp_path / "assets.extra", FACTS)
    assert "TextClassifier" in read_card(tmp_path)


@pytest.mark.parametrize(
    ("readme", "licence"),
    [
        ("---\nlanguage: zh\nlicense: apache-2.0 \ntags: [a]\n---\n# BERT\n", "apache-2.0"),
        ("---\nlanguage: zh\n---\nlicense: mit\n", None),
        ("# BERT\nlicense: mit\n", None),
    ],
)
def test_the_licence_in_the_header_of_the_hub(tmp_path, readme, licence):
    assert find_licence(tmp_path) is None
    (tmp_path / "README.md").write_text(readme)
    assert find_licence(tmp_path) == licence


def test_the_package_has_a_version_only_if_it_is_installed(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", {"keras-bert-suite": "1.2"}.__getitem__)
    assert name_package() == "keras_bert_suite 1.2"

    def find_none(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", find_none)
    assert name_package() == "keras_bert_suite"
