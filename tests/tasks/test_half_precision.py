"""A model in bfloat16 on a processor that has no instructions for it."""

import warnings

import keras
import numpy as np
import pytest

import keras_bert_suite as kbs
from keras_bert_suite.tasks import half_precision

ROWS = {name: np.ones((2, 4), "int32") for name in ("token_ids", "segment_ids", "padding_mask")}


@pytest.fixture(autouse=True)
def forget():
    half_precision._is_emulated.cache_clear()
    yield
    half_precision._is_emulated.cache_clear()


def make_task(dtype):
    backbone = kbs.BertBackbone(
        vocabulary_size=5, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4, dtype=dtype
    )
    return kbs.TextClassifier(backbone, num_classes=2)


def count_warnings(task):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        task.fit(ROWS, np.array([0, 1]), verbose=0)
        task.predict(ROWS, verbose=0)
    found = [w for w in caught if "emulates" in str(w.message)]
    assert all(w.filename == __file__ for w in found)
    return len(found)


@pytest.mark.parametrize("instructions", [["avx2", "avx512f"], ["avx2", "avx512_bf16"]])
def test_bfloat16_on_a_cpu(instructions, monkeypatch):
    monkeypatch.setattr(half_precision, "_is_on_cpu", lambda backend: True)
    monkeypatch.setattr(half_precision, "_read_instructions", lambda: instructions)
    emulated = keras.config.backend() == "jax" or "avx512_bf16" not in instructions
    assert count_warnings(make_task("mixed_bfloat16")) == 2 * emulated
    assert count_warnings(make_task("float32")) == 0


def test_bfloat16_on_an_accelerator(monkeypatch):
    monkeypatch.setattr(half_precision, "_is_on_cpu", lambda backend: False)
    monkeypatch.setattr(half_precision, "_read_instructions", lambda: ["avx2"])
    assert count_warnings(make_task("mixed_bfloat16")) == 0


def test_this_machine():
    assert half_precision._is_on_cpu(keras.config.backend()) in (True, False)
    assert half_precision._read_instructions()
