"""Every task: a fit in bfloat16, the same fit after a kill, and a round trip of its `.keras` file.

tests/test_combinations.py has the inputs, presets and exports of every task.
"""

import copy
import dataclasses
import functools
import operator
import re
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest
from heads.cases import BATCH_SIZE, CASES, NUM_ROWS, STEPS, TASKS
from input_kinds import Batches
from peer_weights import to_numpy
from small_pretraining import all_arrays, assert_same
from small_tasks import assert_close, compile_model, make_task, predict, predicted_columns
from tables import everywhere_for, left_out, short_for

from keras_bert_suite import (
    AnswerF1,
    AttentionPooling,
    DocumentClassifier,
    EntityF1,
    ScalarMix,
    TrainingCheckpoint,
)
from keras_bert_suite.runs.model_variables import named_variables

EPOCHS = 2
#: The middle of the second epoch.
KILLED_AFTER = STEPS + 1


def make_sampled_documents(**backbone_arguments):
    """Samples of windows, and two unnamed layers of one class."""
    task, columns = make_task("documents", "SegmentPacker", **backbone_arguments)
    classifier = DocumentClassifier(
        task.backbone,
        label_names=task.label_names,
        preprocessor=task.preprocessor,
        pooling=ScalarMix(pooling=AttentionPooling()),
        window_pooling=AttentionPooling(),
        max_windows=2,
        training_windows=1,
    )
    return classifier, columns


MAKERS = {
    **{name: functools.partial(make_task, name, "SegmentPacker") for name in CASES},
    "sampled documents": make_sampled_documents,
}
#: The tasks that have states, outputs or columns of a kind of their own.
SOME = ("spans", "replaced tokens")
#: Their states are of the kinds of the other tasks, and test_combinations.py trains them.
ALIKE = (
    *("pairs", "label sets", "numbers", "attributes", "relations", "questions", "choices"),
    *("rankings", "towers", "documents", "masks", "corrupted texts", "hidden frames"),
    *("words", "exits", "entailments", "patterns", "continuations", "neighbors"),
)


def make_parameters(*everywhere):
    """The tasks as parameters, of which `make test-long` alone runs those that are alike."""
    others = [task for task in MAKERS if task not in ALIKE]
    return [
        *everywhere_for(others, *everywhere),
        *(pytest.param(task, marks=left_out("combinations")) for task in ALIKE),
    ]


def build(task):
    """(a compiled task in bfloat16 with dropout, its columns)."""
    model, columns = MAKERS[task](dtype="mixed_bfloat16", dropout=0.1)
    compile_model(model)
    model.optimizer.build(model.trainable_variables)
    return model, columns


@dataclasses.dataclass
class Run:
    """A training with checkpoints."""

    model: keras.Model
    columns: tuple
    folder: Path

    def fit(self):
        x, y, *weights = self.columns
        return self.model.fit(
            x,
            y,
            BATCH_SIZE,
            EPOCHS,
            sample_weight=weights[0] if weights else None,
            callbacks=[TrainingCheckpoint(self.folder, every=KILLED_AFTER)],
            verbose=0,
        ).history


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """function(task) to (`Run`, the weights before, the history); each is made once."""

    @functools.cache
    def train(task):
        run = Run(*build(task), tmp_path_factory.mktemp("run"))
        before = run.model.get_weights()
        return run, before, run.fit()

    return train


@pytest.mark.parametrize("task", make_parameters(*SOME))
def test_a_fit_in_bfloat16(runs, task):
    run, before, history = runs(task)
    assert run.model.backbone.compute_dtype == "bfloat16"
    assert len(history["loss"]) == EPOCHS and np.isfinite(history["loss"]).all()
    weights = run.model.get_weights()
    assert all(np.isfinite(array).all() for array in weights)
    assert not all(map(np.array_equal, weights, before))


@pytest.mark.parametrize("task", make_parameters("spans"))
def test_a_killed_fit_goes_on(runs, task, tmp_path):
    """It ends with the weights, random states and moments of a fit that was left alone."""
    run, _, history = runs(task)
    wanted = all_arrays(run.model)
    # A kill leaves the checkpoints that were written before it.
    folder = shutil.copytree(run.folder, tmp_path / "killed")
    names = sorted(path.name for path in folder.iterdir())
    assert names == [f"step-{n:08d}" for n in (KILLED_AFTER, EPOCHS * STEPS)]
    shutil.rmtree(folder / names[-1])
    # The task begins as another one that was just built. To fit that one would compile it again.
    keras.utils.set_random_seed(1)
    new, old = named_variables(build(task)[0]), named_variables(run.model)
    # The metrics of labels are made by the first batch.
    assert all(name.startswith("metrics/") for name in new.keys() ^ old.keys())
    for name, variable in new.items():
        old[name].assign(variable)
    resumed = Run(run.model, run.columns, folder).fit()
    assert resumed["loss"] == history["loss"][1:]
    assert_same(run.model, wanted)


@pytest.mark.parametrize("task", make_parameters())
def test_a_keras_file(runs, task, tmp_path):
    run, *_ = runs(task)
    run.model.save(tmp_path / "task.keras")
    twin = keras.saving.load_model(tmp_path / "task.keras")
    assert type(twin) is type(run.model)
    # The states of random generators are in no file of Keras.
    for name in ("weights", "optimizer.variables"):
        ours, theirs = map(operator.attrgetter(name), (twin, run.model))
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(to_numpy(a), to_numpy(b), err_msg=b.path)
    x = predicted_columns(run.model, run.columns[0])
    assert_close(predict(twin, x=x), predict(run.model, x=x))


@pytest.mark.parametrize("task", ["texts", "documents", "vectors", "masks", "targets"])
def test_the_copies_that_clone_model_names(task):
    model, columns = MAKERS[task]()
    with pytest.raises(ValueError, match=f"layers of a {type(model).__name__}, but not what"):
        keras.models.clone_model(model)
    x = predicted_columns(model, columns[0])
    copied = copy.deepcopy(model)
    assert_close(predict(copied, x=x), predict(model, x=x))
    new = type(model).from_config(model.get_config())
    new.preprocessor = model.preprocessor
    assert len(predict(new, x=x)) == len(predict(model, x=x))
    old, fresh = (part.backbone.token_embedding.get_weights()[0] for part in (model, new))
    assert old.shape == fresh.shape and (old != fresh).any()


@pytest.mark.parametrize("task", ["texts", "words", "spans", "questions", "vectors"])
def test_a_dataset_has_no_score(task):
    model, columns = MAKERS[task]()
    for dataset in (Batches(columns, BATCH_SIZE), iter([columns])):
        with pytest.raises(ValueError, match="Wanted rows in memory, got a .*call `evaluate`"):
            model.score(dataset, None)
    callback = {"words": EntityF1, "questions": AnswerF1}.get(task)
    if callback is not None:
        with pytest.raises(ValueError, match="Wanted rows in memory"):
            model.fit(*columns, callbacks=[callback(iter([columns]), columns[1])], verbose=0)
        with pytest.raises(ValueError, match="by their labels, got a list alone. Pass both: "):
            callback(["a"])


@pytest.mark.parametrize("task", ["texts", "masks"])
def test_a_loop_of_ones_own_packs_batches(task):
    """The loss of such a batch is that of its rows. Without labels, it is for predictions."""
    model, columns = MAKERS[task]()
    compile_model(model)
    if columns[1] is not None:
        columns = (*columns, np.linspace(0, 2, NUM_ROWS))
    batch = model.preprocess_samples(*columns, labelled=True)
    wanted = model.test_on_batch(*columns, return_dict=True)
    model.reset_metrics()
    found = keras.Model.test_on_batch(model, *batch, return_dict=True)
    assert found == pytest.approx(wanted, rel=1e-5)
    inputs = model.preprocess_samples(predicted_columns(model, columns[0]))
    assert isinstance(inputs, dict) and set(inputs) <= {*model.input}


@pytest.mark.parametrize("task", [task for task in CASES if task != "hidden frames"])
def test_packed_arrays_with_other_axes_are_refused(task):
    data = MAKERS[task]()[0].data
    for num_axes in (1, 2, 3, 4):
        shape = (2,) * num_axes
        packed = {name: np.ones(shape, "int32") for name in data.encoder.names}
        for read in (data.read, data.read_batch):
            if num_axes in CASES[task].num_axes:
                assert read(packed).inputs["token_ids"].shape == shape
                continue
            with pytest.raises(ValueError, match=re.escape(f"token_ids of the shape {shape}")):
                read(packed)


def test_a_backbone_of_a_guest_may_read_arrays_with_other_axes():
    """Such as the place of each token on a page."""
    data = MAKERS["words"]()[0].data
    data.encoder = dataclasses.replace(data.encoder, names=(*data.encoder.names, "boxes"))
    packed = {name: np.ones((2, 3), "int32") for name in data.encoder.names}
    packed["boxes"] = np.ones((2, 3, 4), "float32")
    assert data.read(packed).inputs["boxes"].shape == (2, 3, 4)


@pytest.mark.parametrize(
    "name",
    short_for(
        TASKS,
        *("spans", "questions", "towers", "masks", "targets", "continuations", "pretraining"),
        *("relations", "entailments"),
        part="combinations",
    ),
)
def test_a_dataset_of_packed_arrays_is_answered_as_arrays_in_memory(name):
    task, (x, *_) = make_task(name)
    asked = CASES[name].asked(task, x)
    packed = asked
    if CASES[name].pack is None:
        windows = task.data.window(task.data.read(asked))
        packed, *_ = task.data.pack(windows.take(slice(None), 0))
    number = len(next(iter(packed.values())))
    wanted = task.predict(packed, verbose=0)
    batches = (
        {name: array[first : first + 4] for name, array in packed.items()}
        for first in range(0, number, 4)
    )
    assert_close(task.predict(batches, verbose=0), wanted)
    assert all(len(part) == number for part in keras.tree.flatten(wanted))
