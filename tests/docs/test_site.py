"""The code of the documentation site: links, what a page shows of a class, search in Chinese."""

import importlib
import json
import re
import sys
from pathlib import Path

import pytest

import keras_bert_suite as kbs

pytest.importorskip("sphinx")

SITE = Path(__file__).resolve().parents[2] / "docs/site"
TENSORFLOW = "https://www.tensorflow.org/api_docs/python/tf"
KERAS_HUB = "https://keras.io/keras_hub/api"
TRANSFORMERS = "https://huggingface.co/docs/transformers"


@pytest.fixture
def load(monkeypatch):
    """A function that imports a module of the site."""
    monkeypatch.setattr(sys, "path", [str(SITE), *sys.path])
    return importlib.import_module


@pytest.mark.parametrize(
    "name, address",
    [
        ("keras.Model", f"{TENSORFLOW}/keras/Model"),
        ("keras.Model.fit", f"{TENSORFLOW}/keras/Model#fit"),
        ("keras.distribution", f"{TENSORFLOW}/keras/distribution"),
        ("keras.src.layers.layer.Layer", f"{TENSORFLOW}/keras/layers/Layer"),
        (
            "keras.src.dtype_policies.dtype_policy.DTypePolicy",
            f"{TENSORFLOW}/keras/dtype_policies/DTypePolicy",
        ),
        (
            "keras.src.optimizers.schedules.learning_rate_schedule.LearningRateSchedule",
            f"{TENSORFLOW}/keras/optimizers/schedules/LearningRateSchedule",
        ),
        (
            "keras.src.trainers.data_adapters.py_dataset_adapter.PyDataset",
            f"{TENSORFLOW}/keras/utils/PyDataset",
        ),
        ("tf.data.Dataset", f"{TENSORFLOW}/data/Dataset"),
        ("keras_hub.models.Backbone", f"{KERAS_HUB}/base_classes/backbone/"),
        ("keras_hub.src.models.backbone.Backbone", f"{KERAS_HUB}/base_classes/backbone/"),
        ("keras_hub.samplers.Sampler", f"{KERAS_HUB}/samplers/samplers/"),
        ("keras_hub.layers.TransformerEncoder", f"{KERAS_HUB}/"),
        ("transformers.BertConfig", f"{TRANSFORMERS}/model_doc/bert#transformers.BertConfig"),
        (
            "transformers.XLMRobertaForMaskedLM",
            f"{TRANSFORMERS}/model_doc/xlm-roberta#transformers.XLMRobertaForMaskedLM",
        ),
        ("transformers.BertGenerationConfig", TRANSFORMERS),
        ("numpy.ndarray", None),
    ],
)
def test_address_of_a_name(load, name, address):
    assert load("links").find_address(name) == address


@pytest.mark.parametrize(
    "code, name",
    [
        ("TextClassifier", "keras_bert_suite.TextClassifier"),
        ("kbs.TextClassifier.fit", "keras_bert_suite.TextClassifier.fit"),
        ("kbs.AdamW(kbs.LinearWarmupDecay(2e-5))", "keras_bert_suite.AdamW"),
        ("prepare_corpus", "keras_bert_suite.corpus.prepare_corpus"),
        (
            "keras_bert_suite.checkpoints.save_hugging_face",
            "keras_bert_suite.checkpoints.save_hugging_face",
        ),
        ("keras.Model.fit", "keras.Model.fit"),
        ("objectives", None),
        ("TextClassifier or another", None),
        ("classifier.fit", None),
    ],
)
def test_names_in_inline_code_are_links(load, code, name):
    assert load("inline_code").find_target(code) == name


@pytest.mark.parametrize(
    "cells, is_number",
    [
        (["1.5", "-0.2", ""], True),
        (["1,024", "5.2 ms", "93%"], True),
        (["1.18x", "about 2"], False),
        (["16 or 32"], False),
        ([""], False),
    ],
)
def test_columns_of_numbers(load, cells, is_number):
    assert load("number_columns").is_number_column(cells) is is_number


def test_pages_in_chinese_say_so(load):
    find = load("languages").find_language
    pages = ["README.zh", "docs/zh/ner", "README", "docs/settings"]
    assert [find(page) for page in pages] == ["zh-CN", "zh-CN", "en", "en"]


def test_each_task_has_a_page_with_the_methods_of_users_first(load):
    rooms, members = load("rooms"), load("members")
    classes = {name: getattr(kbs, name) for name in kbs.__all__ if name[0].isupper()}
    tasks = {name for name, cls in classes.items() if issubclass(cls, members.Task)}
    assert {*rooms.TASK_PAGES} == tasks
    for name in tasks:
        shown = [member for member, _ in members.list_members(classes[name])]
        shown = [member for member in shown if member != "from_classifier"]
        assert shown[:3] == ["from_preset", "compile", "fit"], name


def test_a_recipe_has_its_script_and_its_notebook_below_its_title(load):
    notebook = json.dumps({"cells": [{"source": ["# A"]}, {"source": ["1"]}]})
    cells = json.loads(load("appendices").link_script(notebook, "a"))["cells"]
    assert [cell["source"][0] for cell in cells] == [
        "# A",
        "{download}`a.py` · {download}`a.ipynb`",
        "1",
    ]


def test_internal_methods_are_there(load):
    members = load("members")
    classes = [getattr(kbs, name) for name in kbs.__all__ if name[0].isupper()]
    for room, names in members.INTERNAL.items():
        known = {n for cls in classes if members.find_room(cls) == room for n in dir(cls)}
        assert sorted({*names.split()} - known) == [], room


def test_constructors_have_their_arguments(load):
    find, shown = load("docstrings").find_signature, {}
    for name in kbs.__all__:
        if name[0].isupper():
            signature = find(None, "class", name, getattr(kbs, name), None, None, None)
            shown[name] = signature and signature[0]
    assert [name for name, signature in shown.items() if signature == "(*args, **kwargs)"] == []


def test_tables_of_flags_have_two_cells_a_row(load):
    text = load("flags").list_commands()
    rows = re.findall(r"^\|.*$", text, re.M)
    assert len(rows) > 200
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {3}
    assert "| `--epochs N` |" in text


def test_two_chinese_characters_are_a_word(load):
    split = load("bigrams").SearchEnglishAndChinese({}).split
    assert split("用BERT微调, 第1章 CoSENT的分词器") == [
        *("BERT", "微调", "1", "CoSENT", "的分", "分词", "词器")
    ]
