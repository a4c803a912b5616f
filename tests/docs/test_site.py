"""The code of the documentation site: links to other libraries, and search in Chinese."""

import importlib
import sys
from pathlib import Path

import pytest

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
    "line, expected",
    [
        ("`TextClassifier`s", r":py:obj:`~keras_bert_suite.TextClassifier`\ s"),
        ("as `keras.Model.fit` does", "as :py:obj:`keras.Model.fit` does"),
        ("`x` and `keras.Model()`", "`x` and `keras.Model()`"),
    ],
)
def test_names_in_docstrings_are_links(load, line, expected):
    assert load("docstrings").escape(line) == expected


def test_two_chinese_characters_are_a_word(load):
    split = load("bigrams").SearchEnglishAndChinese({}).split
    assert split("用BERT微调, 第1章 CoSENT的分词器") == [
        *("BERT", "微调", "1", "CoSENT", "的分", "分词", "词器")
    ]
