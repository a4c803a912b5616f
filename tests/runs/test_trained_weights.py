"""Layers are frozen and thawed in the middle of a training, and between two."""

import keras
import numpy as np
import pytest
from peer_weights import to_numpy
from small_tasks import make_task
from tables import short_for

from keras_bert_suite import FGM, AdamW, TrainingCheckpoint

#: Which layers are trained in each epoch, by the first part of their path.
HEAD = ("classifier",)
LAYER = (*HEAD, "transformer_layer_0")
PLAN = [HEAD, LAYER, HEAD, (*LAYER, "embeddings", "pooler")]


def thaw(task, names):
    for layer in (task.classifier, *task.backbone.layers):
        if layer.weights:
            layer.trainable = layer.path.split("/")[0] in names


class Unfreezing(keras.callbacks.Callback):
    """Follows `PLAN`, and notes which layers each epoch has changed."""

    def __init__(self, moment):
        super().__init__()
        self.moment = moment
        self.changed = []

    def on_epoch_begin(self, epoch, logs=None):
        if self.moment == "epoch begin":
            thaw(self.model, PLAN[epoch])
        self.before = self.read()

    def on_train_batch_end(self, batch, logs=None):
        if self.moment == "batch end" and batch == 2:
            thaw(self.model, PLAN[min(len(self.changed) + 1, 3)])

    def on_epoch_end(self, epoch, logs=None):
        after = self.read()
        names = {path.split("/")[0] for path in after if (after[path] != self.before[path]).any()}
        self.changed.append(names)
        if self.moment == "epoch end":
            thaw(self.model, PLAN[min(epoch + 1, 3)])

    def read(self):
        return {weight.path: np.array(to_numpy(weight)) for weight in self.model.weights}


def build(technique=None):
    keras.utils.set_random_seed(0)
    task, rows = make_task("texts", "SegmentPacker")
    # The multiplier finds a layer that is frozen at first.
    task.compile(AdamW(1e-2, rate_multipliers={"transformer_layer_0/": 0.5}), technique=technique)
    thaw(task, PLAN[0])
    return task, {"x": rows[0], "y": rows[1], "batch_size": 4, "shuffle": False, "verbose": 0}


@pytest.mark.parametrize(
    "moment",
    short_for(["epoch begin", "batch end", "epoch end"], "epoch begin", "batch end", part="faults"),
)
def test_gradual_unfreezing(moment, tmp_path):
    task, arguments = build()
    callback = Unfreezing(moment)
    rows = arguments["x"], arguments["y"]
    task.fit(**arguments, epochs=4, callbacks=[callback], validation_data=rows)
    assert callback.changed == [set(names) for names in PLAN]
    assert int(to_numpy(task.optimizer.iterations)) == 12
    # A training in four parts is the same training.
    twin, _ = build()
    for names in PLAN:
        thaw(twin, names)
        twin.fit(**arguments)
    for weight, other in zip(task.weights, twin.weights, strict=True):
        got, wanted = to_numpy(weight), to_numpy(other)
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5, err_msg=weight.path)
    # A file has the state of the weights that it says are trained.
    thaw(task, HEAD)
    task.save(tmp_path / "task.keras")
    loaded = keras.saving.load_model(tmp_path / "task.keras")
    assert len(loaded.optimizer.variables) == len(task.optimizer.variables)
    for variable, other in zip(loaded.optimizer.variables, task.optimizer.variables, strict=True):
        np.testing.assert_array_equal(to_numpy(variable), to_numpy(other))


@pytest.mark.parametrize(
    ("moment", "batches"), [("epoch begin", 5), ("batch end", 4), ("epoch end", 7)]
)
def test_gradual_unfreezing_resumes(moment, batches, tmp_path):
    """A checkpoint has the state of the weights that are trained at its place."""

    def stop(batch, logs):
        stop.left -= 1
        if stop.left == 0:
            raise KeyboardInterrupt

    class Kept(Unfreezing):
        def get_state(self):
            return [sorted(names) for names in self.changed]

        def set_state(self, state):
            self.changed = state

    def start(folder, *others):
        task, arguments = build()
        checkpoint = TrainingCheckpoint(tmp_path / folder, every=1 if others else 100)
        callbacks = [Kept(moment), *others, checkpoint]
        task.fit(**arguments, epochs=4, callbacks=callbacks)
        return task

    wanted = start("alone")
    stop.left = batches + 1
    with pytest.raises(KeyboardInterrupt):
        start("killed", keras.callbacks.LambdaCallback(on_train_batch_end=stop))
    found = start("killed")
    for weight, other in zip(found.weights, wanted.weights, strict=True):
        np.testing.assert_array_equal(to_numpy(weight), to_numpy(other), err_msg=weight.path)
    assert [w.trainable for w in found.weights] == [w.trainable for w in wanted.weights]


def test_freezing_with_a_technique():
    task, arguments = build(FGM(0.1))
    task.backbone.trainable = True
    plan = [{*LAYER, "embeddings", "pooler"}, {*HEAD, "embeddings"}]
    callback = Unfreezing("none")
    freeze = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: thaw(task, plan[epoch])
    )
    task.fit(**arguments, epochs=2, callbacks=[freeze, callback])
    assert callback.changed == plan


@pytest.mark.backend("jax")
def test_compiled_functions_find_the_weights_of_layers_that_change_places():
    """The weights of two layers have the same shapes, so JAX would take the one for the other."""
    keras.utils.set_random_seed(0)
    task, (x, y) = make_task("texts", "SegmentPacker", num_layers=2)
    first, second = task.backbone.transformer_layers
    first.trainable = False
    wanted = task.predict(x, verbose=0), task.evaluate(x, y, verbose=0)
    first.trainable, second.trainable = True, False
    np.testing.assert_allclose(task.predict(x, verbose=0), wanted[0], atol=1e-6)
    np.testing.assert_allclose(task.evaluate(x, y, verbose=0), wanted[1], atol=1e-6)
