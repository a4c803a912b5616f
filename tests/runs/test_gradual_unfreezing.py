"""`GradualUnfreezing`: which layers each epoch trains, on which encoders, and after a kill."""

import keras
import numpy as np
import pytest
from kerashub_models import MODELS
from peer_weights import to_numpy
from small_tasks import make_task

import keras_bert_suite as kbs
from keras_bert_suite import AdamW, GradualUnfreezing, Lamb, PiecewiseLinear, TrainingCheckpoint

HEAD = {"classifier", "pooler"}
LAYERS = [f"transformer_layer_{i}" for i in range(3)]


class Changes(keras.callbacks.Callback):
    """Notes which parts of a model each epoch changes, by the first part of their path."""

    def __init__(self):
        super().__init__()
        self.changed = []

    def on_epoch_begin(self, epoch, logs=None):
        self.before = self.read()

    def on_epoch_end(self, epoch, logs=None):
        after = self.read()
        names = {path.split("/")[0] for path in after if (after[path] != self.before[path]).any()}
        self.changed.append(names)

    def read(self):
        if keras.config.backend() == "jax":
            self.model.jax_state_sync()
        return {weight.path: np.array(to_numpy(weight)) for weight in self.model.weights}


def build(optimizer=None, num_layers=3):
    keras.utils.set_random_seed(0)
    task, (x, y) = make_task("texts", num_layers=num_layers)
    task.compile(optimizer or AdamW(1e-2))
    return task, {"x": x, "y": y, "batch_size": 4, "shuffle": False, "verbose": 0}


@pytest.mark.parametrize(
    ("layers", "wanted"),
    [
        (
            None,
            [HEAD, {*HEAD, *LAYERS[2:]}, {*HEAD, *LAYERS[1:]}, {*HEAD, *LAYERS}]
            + 2 * [{*HEAD, *LAYERS, "embeddings"}],
        ),
        ([1, "all"], [{*HEAD, *LAYERS[2:]}, {*HEAD, *LAYERS, "embeddings"}]),
        ([2], 2 * [{*HEAD, *LAYERS[1:]}]),
        (["all", 3, 0], [{*HEAD, *LAYERS, "embeddings"}, {*HEAD, *LAYERS}, HEAD, HEAD]),
    ],
)
def test_the_layers_of_each_epoch(layers, wanted):
    task, arguments = build()
    changes = Changes()
    callbacks = [GradualUnfreezing(layers), changes]
    task.fit(**arguments, epochs=len(wanted), callbacks=callbacks)
    assert changes.changed == wanted


@pytest.mark.every_backend
def test_a_compiled_step_trains_the_layers_of_its_epoch():
    task, arguments = build(num_layers=1)
    changes = Changes()
    task.fit(**arguments, epochs=2, callbacks=[GradualUnfreezing([0, "all"]), changes])
    assert changes.changed == [HEAD, {*HEAD, *LAYERS[:1], "embeddings"}]


def test_a_later_fit_goes_on(tmp_path):
    """By the number of the epoch, as an uninterrupted one; also from a file."""
    wanted, arguments = build()
    wanted.fit(**arguments, epochs=3, callbacks=[GradualUnfreezing()])
    found, _ = build()
    found.fit(**arguments, epochs=1, callbacks=[GradualUnfreezing()])
    found.save(tmp_path / "found.keras")
    for task in (found, keras.saving.load_model(tmp_path / "found.keras")):
        task.fit(**arguments, initial_epoch=1, epochs=3, callbacks=[GradualUnfreezing()])
        for weight, other in zip(task.weights, wanted.weights, strict=True):
            np.testing.assert_allclose(to_numpy(weight), to_numpy(other), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("cls", "batches"), [(AdamW, 2), (Lamb, 4)])
def test_a_killed_training_with_all_of_it_goes_on(cls, batches, tmp_path):
    """Layer-wise rates, Lookahead, a piecewise rate and unfreezing: the same weights at the end."""

    def stop(batch, logs):
        stop.left -= 1
        if stop.left == 0:
            raise KeyboardInterrupt

    def start(folder, *others):
        rates = PiecewiseLinear(1e-2, {2: 1.0, 6: 0.5})
        optimizer = cls(rates, layer_decay=0.7, lookahead_steps=3)
        task, arguments = build(optimizer, num_layers=1)
        checkpoint = TrainingCheckpoint(tmp_path / folder, every=1 if others else 100)
        callbacks = [GradualUnfreezing([0, "all"]), *others, checkpoint]
        task.fit(**arguments, epochs=2, callbacks=callbacks)
        return task

    wanted = start("alone")
    stop.left = batches + 1
    with pytest.raises(KeyboardInterrupt):
        start("killed", keras.callbacks.LambdaCallback(on_train_batch_end=stop))
    found = start("killed")
    for kind in ("weights", "variables"):
        owners = (wanted, found) if kind == "weights" else (wanted.optimizer, found.optimizer)
        for weight, other in zip(*(getattr(owner, kind) for owner in owners), strict=True):
            np.testing.assert_array_equal(to_numpy(weight), to_numpy(other), err_msg=weight.path)


def test_an_encoder_of_keras_hub():
    backbone, preprocessor = MODELS["BERT"]()
    task = kbs.TextClassifier(backbone, 2, preprocessor=preprocessor)
    task.compile(AdamW(1e-2))
    changes = Changes()
    callbacks = [GradualUnfreezing([0, "all"]), changes]
    task.fit(["good film", "bad"], [0, 1], epochs=2, verbose=0, callbacks=callbacks)
    assert changes.changed[0] == {"classifier", "pooled_dense"}
    assert changes.changed[1] > {"transformer_layer_0", "token_embedding"}


@pytest.mark.parametrize("layers", [[], "all", 3, ["none"], [-1], [1.5]])
def test_wrong_plans(layers):
    with pytest.raises(ValueError, match="[Ll]ayers.* got"):
        GradualUnfreezing(layers)


def test_models_that_cannot():
    task, arguments = build()
    with pytest.raises(ValueError, match="is to train 4 layers, and the BertBackbone has 3. Pass"):
        task.fit(**arguments, callbacks=[GradualUnfreezing([1, 4])])
    task.backbone.transformer_layers[0].intermediate.enable_lora(2)
    with pytest.raises(ValueError, match="1 layers, such as .*intermediate, have LoRA"):
        task.fit(**arguments, callbacks=[GradualUnfreezing()])
    task, arguments = build()
    task.adapt(kbs.PfeifferAdapters(4), "few", verbose=False)
    task.compile()
    with pytest.raises(ValueError, match="encoder has the adapters few, beside which"):
        task.fit(**arguments, callbacks=[GradualUnfreezing()])
    elmo = kbs.ElmoBackbone(vocabulary_size=30, num_layers=1, units=6, projection_dim=4)
    task = kbs.TextClassifier(elmo, 2, pooling=kbs.MeanPooling())
    batch = {name: np.ones((2, 4), "int32") for name in ("token_ids", "padding_mask")}
    with pytest.raises(ValueError, match="GradualUnfreezing .* an ElmoBackbone names none"):
        task.fit(batch, np.array([0, 1]), callbacks=[GradualUnfreezing()], verbose=0)
    plain = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    plain.compile("sgd", "mse")
    with pytest.raises(ValueError, match="GradualUnfreezing .* a Sequential has no backbone"):
        plain.fit(np.ones((2, 2)), np.ones(2), callbacks=[GradualUnfreezing()], verbose=0)
