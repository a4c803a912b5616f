"""`repr` of an object of the package."""

import pytest

import keras_bert_suite as kbs
from keras_bert_suite.heads.tags.entities import Entity

#: Objects whose `repr` is a call that makes them. No argument has its default.
CALLS = [
    kbs.TextNoise(["swap", "ocr"], rate=0.25),
    Entity("PER", "Ada", 3, 6, 0.5),
    kbs.LoRA(3, alpha=5.0, targets=".*query", dropout=0.2),
    kbs.HoulsbyAdapters(3),
    kbs.PfeifferAdapters(4),
    kbs.BitFit(),
    kbs.PrefixTuning(3, bottleneck_dim=5),
    kbs.PromptTuning(3),
]


def read_settings(thing):
    config = getattr(thing, "get_config", None)
    return config() if config else vars(thing)


@pytest.mark.parametrize("thing", CALLS, ids=lambda thing: type(thing).__name__)
def test_a_call_makes_the_same_object(thing):
    again = eval(repr(thing), {**vars(kbs), "Entity": Entity})
    assert type(again) is type(thing) and read_settings(again) == read_settings(thing)
