"""The matrices of each head begin as wide as in the code of its source."""

import pytest
from heads.cases import CASES
from peer_weights import name_initializers
from small_tasks import make_task


@pytest.mark.parametrize("name", CASES)
def test_heads_begin_as_those_of_the_source(name):
    task, _ = make_task(name, initializer_range=0.5)
    of_encoder = {id(layer) for layer in task.backbone._flatten_layers()}
    head = [layer for layer in task._flatten_layers() if id(layer) not in of_encoder]
    assert name_initializers(head) == CASES[name].initializers


def test_the_layer_of_columns_adds_nothing_at_first():
    case = CASES["texts"]
    backbone = make_task("texts")[0].backbone
    task = case.cls(backbone, **case.arguments, features={"price": "number"})
    assert name_initializers([task.feature_layer]) == {"Zeros"}
