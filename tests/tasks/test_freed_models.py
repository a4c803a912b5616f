"""A trained model is freed with its last reference: folds and searches keep one in memory."""

import gc
import weakref

import pytest
from heads.cases import BATCH_SIZE, CASES
from small_tasks import compile_model, make_task, predict, predicted_columns
from tables import short_for

from keras_bert_suite import FGM, RDrop


def use(name, **compiled):
    """Weak references to the encoder and the weights of a model that was trained, and predicted."""
    task, columns = make_task(name)
    compile_model(task, **compiled)
    x, y, *weights = columns
    task.fit(x, y, BATCH_SIZE, sample_weight=weights[0] if weights else None, verbose=0)
    predict(task, x=predicted_columns(task, x))
    return [weakref.ref(task.backbone), *map(weakref.ref, task.backbone.weights)]


def list_kept(name, **compiled):
    references = use(name, **compiled)
    gc.collect()
    return [reference() for reference in references if reference() is not None]


# Under TensorFlow or JAX, test_released_tasks.py looks for the whole task.
@pytest.mark.parametrize(
    "name",
    short_for(
        CASES,
        *("texts", "exits", "chains", "spans", "documents", "vectors", "pretraining"),
        *("replaced tokens", "targets"),
        part="combinations",
    ),
)
def test_a_task(name):
    assert not list_kept(name)


@pytest.mark.parametrize("technique", [FGM(), RDrop()])
def test_a_technique(technique):
    assert not list_kept("texts", technique=technique)
