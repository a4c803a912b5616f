"""A program that trains many tasks, one after the other, keeps the memory of none of them."""

import gc
import weakref

import numpy as np
import pytest
from heads.cases import BATCH_SIZE, STEPS
from input_kinds import DATASETS
from small_tasks import compile_model, make_task

from keras_bert_suite.data.tensorflow_input import to_tensorflow_dataset

KINDS = {"list": None, **DATASETS}


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("list", marks=pytest.mark.every_backend),
        "generator",
        *(
            pytest.param(kind, marks=pytest.mark.long("combinations"))
            for kind in DATASETS
            if kind != "generator"
        ),
    ],
)
def test_a_task_and_its_rows_are_released(kind):
    def train():
        task, columns = make_task("texts", "SegmentPacker")
        compile_model(task)
        arguments = {"steps_per_epoch": STEPS, "verbose": 0}
        if kind == "list":
            task.fit(*columns, batch_size=BATCH_SIZE, validation_split=0.5, **arguments)
            task.predict(columns[0], verbose=0)
        else:
            task.fit(KINDS[kind](columns, BATCH_SIZE), **arguments)
        return weakref.ref(task), weakref.ref(task.preprocessor)

    released = train()
    gc.collect()
    assert [reference() for reference in released] == [None, None]


@pytest.mark.backend("tensorflow")
def test_batches_are_kept_as_long_as_they_are_read():
    columns = ({"token_ids": np.arange(8).reshape(4, 2)}, np.arange(4))
    batches = iter(to_tensorflow_dataset(DATASETS["grain.MapDataset"](columns, 2)).prefetch(1))
    gc.collect()
    assert [labels.numpy().tolist() for _, labels in batches] == [[0, 1], [2, 3]]
