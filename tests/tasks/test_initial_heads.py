"""The matrices of each head begin as wide as in the code of its source."""

import pytest
from heads.cases import CASES
from peer_weights import name_initializers
from small_tasks import make_task

#: Google's run_classifier.py and run_squad.py name 0.02, whatever the configuration says.
NAMED = {"TruncatedNormal 0.02"}
#: Heads of pretraining begin as the encoder. ELECTRA's generator is an encoder.
AS_THE_ENCODER = {"TruncatedNormal 0.5"}
OTHERS = {
    # bert4keras' GlobalPointer.
    "spans": {"LecunNormal"},
    **dict.fromkeys(
        ["masks", "pretraining", "replaced tokens", "targets", "hidden frames"], AS_THE_ENCODER
    ),
    **dict.fromkeys(["corrupted texts", "continuations", "patterns"], AS_THE_ENCODER),
    "towers": {"GlorotUniform"},  # Its vectors are not those of a BERT's pooler.
    "neighbors": {"RandomNormal 0.5"},  # The softmax of bilm-tf.
    "vectors": set(),  # Its pooling has no weights.
}


@pytest.mark.parametrize("name", CASES)
def test_heads_begin_as_those_of_the_source(name):
    task, _ = make_task(name, initializer_range=0.5)
    of_encoder = {id(layer) for layer in task.backbone._flatten_layers()}
    head = [layer for layer in task._flatten_layers() if id(layer) not in of_encoder]
    assert name_initializers(head) == OTHERS.get(name, NAMED)


def test_the_layer_of_columns_adds_nothing_at_first():
    case = CASES["texts"]
    backbone = make_task("texts")[0].backbone
    task = case.cls(backbone, **case.arguments, features={"price": "number"})
    assert name_initializers([task.feature_layer]) == {"Zeros"}
