"""The weights of a model have the order of its graph on every backend, as their moments in files.

The oracle is Keras' list of the layers of a graph.
"""

import keras
import pytest
from heads.cases import CASES
from models.test_saved_arguments import CHANGED
from small_tasks import make_task
from tables import everywhere_for

import keras_bert_suite as kbs

#: Models whose layers become attributes in another order than they are called.
OTHERWISE = ("relations", "replaced tokens", "neighbors", kbs.BartBackbone, kbs.XLNetBackbone)


def check_order(model):
    found = [weight for layer in model.layers for weight in layer.weights]
    # A weight that several layers share counts where it is met first.
    wanted = {id(weight): weight.path for weight in found}
    # A model without its pooler in the graph has the pooler's weights.
    have = {id(weight): weight.path for weight in model.weights if id(weight) in wanted}
    assert [*have.items()] == [*wanted.items()]
    for layer in model.layers:
        if isinstance(layer, keras.Model):
            check_order(layer)


@pytest.mark.parametrize("made", everywhere_for([*CASES, *CHANGED], *OTHERWISE))
def test_weights_have_the_order_of_the_graph(made):
    model = make_task(made)[0] if made in CASES else made(**CHANGED[made])
    assert len(model.weights) > 10
    check_order(model)
