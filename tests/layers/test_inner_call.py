"""Layers within a layer or a model give the same under PyTorch without the whole call of Keras.

The oracle is `Layer.__call__` of Keras and its run of a graph, for every kind of block.
"""

import contextlib

import keras
import numpy as np
import pytest
from peer_weights import randomize, to_numpy

from keras_bert_suite import BertBackbone, ModernBertBackbone, RoFormerBackbone, TextClassifier
from keras_bert_suite.layers import TransformerBlock, eager_pass, graph_calls, inner_call
from keras_bert_suite.layers.attention import sequence_layout
from keras_bert_suite.runs import trained_model

pytestmark = pytest.mark.backend("torch")

SIZES = {
    "vocabulary_size": 40,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 16,
    "intermediate_dim": 24,
}


@pytest.fixture
def call_whole(monkeypatch):
    """A function after which Keras calls every layer and runs every graph."""

    def patch():
        monkeypatch.setattr(inner_call, "choose_call", lambda layer, *inputs: layer)
        monkeypatch.setattr(sequence_layout, "find_plain_inputs", lambda *arguments: None)

    return patch


@pytest.fixture
def counts(monkeypatch):
    """How many layers, within layers and in graphs, were called without the whole call."""
    counts = {"inner": 0, "graph": 0}

    def count(place, choose):
        def counted(layer, *inputs):
            call = choose(layer, *inputs)
            counts[place] += call is not layer
            return call

        return counted

    choose_call, find_call = inner_call.choose_call, inner_call.find_call
    monkeypatch.setattr(inner_call, "choose_call", count("inner", choose_call))
    monkeypatch.setattr(graph_calls, "choose_call", count("graph", choose_call))
    monkeypatch.setattr(graph_calls, "find_call", count("graph", find_call))
    return counts


def quantize(backbone):
    backbone.quantize("int8")


def add_lora(backbone):
    rng = np.random.default_rng(1)
    for block in backbone.transformer_layers:
        for dense in (block.self_attention.output_projection, block.feedforward_output):
            dense.enable_lora(2)
            dense.lora_kernel_b.assign(rng.normal(size=tuple(dense.lora_kernel_b.shape)))


def widen_norms(backbone):
    for block in backbone.transformer_layers:
        block.feedforward_norm.dtype_policy = "float32"


CASES = {
    "float32": ("float32", None),
    "mixed": ("mixed_bfloat16", None),
    "bfloat16": ("bfloat16", None),
    "int8": ("float32", quantize),
    "int8 of mixed": ("mixed_bfloat16", quantize),
    "LoRA": ("float32", add_lora),
    "norms in float32": ("mixed_bfloat16", widen_norms),
}
KINDS = {"bert": BertBackbone, "rotary": RoFormerBackbone, "modern": ModernBertBackbone}


def make_arrays(backbone):
    arrays = {
        name: np.ones((2, 7), "int32") if name == "padding_mask" else np.arange(14).reshape(2, 7)
        for name in backbone.input
    }
    if "segment_ids" in arrays:
        arrays["segment_ids"] = arrays["segment_ids"] % 2
    return arrays


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_setting_has_its_effect(kind, case, training, counts, call_whole):
    dtype, change = CASES[case]
    backbone = KINDS[kind](**SIZES, dtype=dtype)
    randomize(backbone)
    if change is not None:
        change(backbone)
    arrays = make_arrays(backbone)
    counts.update(inner=0, graph=0)
    keras.utils.set_random_seed(0)
    found = to_numpy(backbone(arrays, training=training)["sequence_output"])
    assert counts["inner"] > 4 and counts["graph"] > 1, "the short way is not taken"
    call_whole()
    keras.utils.set_random_seed(0)
    expected = to_numpy(backbone(arrays, training=training)["sequence_output"])
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "bfloat16"])
def test_gradients_are_the_same(dtype, counts, call_whole):
    # Keras sums the gradients of a table in float32 under each policy of mixed dtypes.
    task = TextClassifier(BertBackbone(**SIZES, dtype=dtype), num_classes=2)
    arrays = make_arrays(task.backbone)

    def find_gradients():
        keras.utils.set_random_seed(0)
        for variable in task.trainable_variables:
            variable.value.grad = None
        keras.ops.sum(task(arrays, training=True) ** 2).backward()
        return {v.path: to_numpy(v.value.grad) for v in task.trainable_variables}

    counts.update(inner=0, graph=0)
    found = find_gradients()
    assert counts["inner"] > 4 and counts["graph"] > (8 if dtype == "float32" else 2)
    call_whole()
    expected = find_gradients()
    for path, gradient in expected.items():
        np.testing.assert_array_equal(found[path], gradient, err_msg=path)


def make_task(kind, case, **arguments):
    """A classifier, and 8 rows for it, of two lengths."""
    dtype, change = CASES[case]
    task = TextClassifier(KINDS[kind](**SIZES, dtype=dtype), num_classes=2, **arguments)
    randomize(task)
    if change is not None:
        change(task.backbone)
    arrays = {name: np.tile(x, (4, 1)) for name, x in make_arrays(task.backbone).items()}
    arrays["token_ids"] = np.random.default_rng(0).integers(0, 40, (8, 7)).astype("int32")
    arrays["padding_mask"][::2, 5:] = 0
    return task, arrays


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_predict_of_many_batches(kind, case, counts, call_whole):
    """How a layer computes is asked at the first batch. Keras asks at each."""
    task, arrays = make_task(kind, case)
    counts.update(inner=0)
    found = task.predict(arrays, batch_size=2, verbose=0)
    asked = counts["inner"]
    task.predict({name: x[:2] for name, x in arrays.items()}, batch_size=2, verbose=0)
    assert 4 < asked <= counts["inner"] - asked
    call_whole()
    expected = keras.Model.predict(task, arrays, batch_size=2, verbose=0)
    np.testing.assert_array_equal(found, expected)


@pytest.fixture
def ask_keras(monkeypatch, call_whole):
    """A function after which Keras makes its lists anew, and calls every layer."""

    def patch():
        call_whole()
        monkeypatch.setattr(trained_model, "use_step_lists", contextlib.nullcontext)

    return patch


class Meddler(keras.callbacks.Callback):
    """Changes a block in the midst of a training."""

    def __init__(self, change):
        super().__init__()
        self.change = change

    def on_train_batch_end(self, batch, logs=None):
        if batch == 1:
            self.change(self.model.backbone.transformer_layers[0])


def freeze(block):
    block.trainable = False


def hook(block):
    """Halves the output of a dense layer. PyTorch alone knows of it."""
    block.intermediate.register_forward_hook(lambda layer, inputs, outputs: outputs / 2)


def activate(block):
    block.feedforward_output.activation = keras.activations.relu


@keras.saving.register_keras_serializable(package="guests")
class Penalty(keras.layers.Layer):
    """Takes the first token, and adds to the loss, as a layer of a guest may."""

    def call(self, x, padding_mask):
        self.add_loss(keras.ops.mean(x[:, 0] ** 2))
        return x[:, 0]


@pytest.mark.parametrize("pooling", [None, Penalty])
@pytest.mark.parametrize("change", [None, freeze, hook, activate])
@pytest.mark.parametrize("case", ["float32", "mixed", "bfloat16", "LoRA"])
def test_fit_of_many_steps(case, change, pooling, ask_keras):
    """What a step asks is asked at the first step, unless a callback may have changed it."""

    def train():
        keras.utils.set_random_seed(0)
        task, arrays = make_task("bert", case, pooling=pooling and pooling())
        task.compile("adam", metrics=["accuracy"], jit_compile=False)
        callbacks = [] if change is None else [Meddler(change)]
        history = task.fit(
            arrays, np.arange(8) % 2, batch_size=2, epochs=2, verbose=0, callbacks=callbacks
        )
        return history.history["loss"], {v.path: to_numpy(v.value) for v in task.weights}

    found, weights = train()
    ask_keras()
    wanted, wanted_weights = train()
    assert found == pytest.approx(wanted, rel=1e-5)
    for path, weight in wanted_weights.items():
        np.testing.assert_allclose(weights[path], weight, rtol=1e-4, atol=1e-5, err_msg=path)


class CalledTwice(TextClassifier):
    """Looks at its outputs before they are computed for gradients."""

    def call(self, inputs, training=None, mask=None):
        import torch

        with torch.no_grad():
            super().call(inputs, training=training, mask=mask)
        return super().call(inputs, training=training, mask=mask)


class WithTeacher(TextClassifier):
    """Adds to its loss what a teacher says that changes with each step."""

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        import torch

        with torch.no_grad():
            said = keras.ops.cast(self.teacher(x, training=False), "float32")
        self.said.append(to_numpy(said))
        kernel = self.teacher.backbone.transformer_layers[0].intermediate.kernel
        kernel.assign(kernel.value * 2)
        loss = super().compute_loss(x, y, y_pred, sample_weight, training)
        return loss + keras.ops.mean(said)


def test_layers_first_called_without_gradients_get_them():
    _, arrays = make_task("bert", "float32")
    task = CalledTwice(BertBackbone(**SIZES), num_classes=2)
    before = [to_numpy(v.value) for v in task.trainable_variables]
    task.compile(keras.optimizers.Adam(0.1), jit_compile=False)
    task.fit(arrays, np.arange(8) % 2, batch_size=2, verbose=0)
    for old, variable in zip(before, task.trainable_variables, strict=True):
        # The bias of the keys changes no probability.
        assert "key/bias" in variable.path or np.abs(to_numpy(variable.value) - old).max() > 0


@pytest.mark.parametrize("case", ["float32", "mixed"])
def test_layers_of_another_model_are_read_anew_in_each_step(case):
    teacher, arrays = make_task("bert", case)
    same = {name: np.repeat(x[:1], 8, axis=0) for name, x in arrays.items()}
    task = WithTeacher(BertBackbone(**SIZES), num_classes=2)
    vars(task).update(teacher=teacher, said=[])
    task.compile("adam", jit_compile=False)
    task.fit(same, np.arange(8) % 2, batch_size=4, verbose=0)
    assert np.abs(task.said[0] - task.said[1]).max() > 0


class Trainer(keras.callbacks.Callback):
    """Trains the model for a batch whenever an epoch ends."""

    def __init__(self, arrays):
        super().__init__()
        self.arrays = arrays

    def on_epoch_end(self, epoch, logs=None):
        self.model.fit(self.arrays, np.arange(8) % 2, batch_size=8, verbose=0)


def test_a_training_within_a_training():
    task, arrays = make_task("bert", "float32")
    task.compile("sgd", jit_compile=False)
    task.fit(
        arrays, np.arange(8) % 2, batch_size=4, epochs=2, verbose=0, callbacks=[Trainer(arrays)]
    )
    assert int(task.optimizer.iterations) == 2 * (2 + 1)


class Doubler(keras.callbacks.Callback):
    """Doubles a weight after the first batch of a prediction."""

    def on_predict_batch_end(self, batch, logs=None):
        if batch == 0:
            kernel = self.model.backbone.transformer_layers[0].intermediate.kernel
            kernel.assign(kernel.value * 2)


@pytest.mark.parametrize("case", ["float32", "mixed"])
def test_a_callback_of_a_prediction_changes_weights(case):
    task, arrays = make_task("bert", case)
    found = task.predict(arrays, batch_size=4, callbacks=[Doubler()], verbose=0)
    after = task.predict(arrays, batch_size=4, verbose=0)
    assert (np.abs(found - after).max(axis=1) > 0).sum() == 4


@pytest.mark.parametrize("batch_size", [2, 8])
def test_calls_of_subclasses(batch_size):
    class WithoutTraining(TextClassifier):
        def call(self, inputs):
            return super().call(inputs, training=False) + 1

    class Counted(TextClassifier):
        calls = 0

        def __call__(self, *args, **kwargs):
            type(self).calls += 1
            return super().__call__(*args, **kwargs)

    task, arrays = make_task("bert", "float32")
    plain = task.predict(arrays, batch_size=batch_size, verbose=0)
    other = WithoutTraining(task.backbone, num_classes=2)
    counted = Counted(task.backbone, num_classes=2)
    for each in (other, counted):
        each.set_weights(task.get_weights())
    np.testing.assert_allclose(
        other.predict(arrays, batch_size=batch_size, verbose=0), plain + 1, rtol=1e-6
    )
    Counted.calls = 0
    counted.predict(arrays, batch_size=batch_size, verbose=0)
    assert Counted.calls == 8 // batch_size


@keras.saving.register_keras_serializable(package="guests")
class NoisyPooling(keras.layers.Layer):
    """Takes the first token, and drops some of it by a layer that Keras must tell of training."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.drop = keras.layers.Dropout(0.5)
        self.calls = []

    def __call__(self, *args, **kwargs):
        self.calls.append("whole")
        return super().__call__(*args, **kwargs)

    def call(self, x, padding_mask):
        return self.drop(x[:, 0])


def test_a_layer_of_a_guest_is_called_whole():
    pooling = NoisyPooling()
    task = TextClassifier(BertBackbone(**SIZES, dropout=0.0), num_classes=2, pooling=pooling)
    arrays = make_arrays(task.backbone)
    pooling.calls.clear()
    plain, other = (to_numpy(task(arrays, training=False)) for _ in range(2))
    np.testing.assert_array_equal(plain, other)
    assert np.abs(to_numpy(task(arrays, training=True)) - plain).max() > 0
    assert len(pooling.calls) == 3


@pytest.mark.parametrize("container", [list, tuple])
def test_a_single_output_comes_without_its_container(container, counts, call_whole):
    backbone = BertBackbone(**SIZES)
    outputs = container([backbone(backbone.input)["pooled_output"]])
    model = _PackedModel(backbone.input, outputs)
    counts.update(graph=0)
    found = to_numpy(model(make_arrays(backbone), training=False))
    assert counts["graph"] > 1
    call_whole()
    expected = to_numpy(model(make_arrays(backbone), training=False))
    np.testing.assert_array_equal(found, expected)


class _PackedModel(sequence_layout.PackedSequences, keras.Model):
    """A model of a guest whose rows may come packed."""


def test_a_model_without_names_of_inputs_within_a_graph():
    x = keras.Input((3,))
    inner = keras.Model(x, keras.layers.Dense(2)(x))
    outer = keras.Model({"x": x}, inner(x))
    inputs = {"x": np.arange(6, dtype="float32").reshape(2, 3)}
    plain = graph_calls.find_plain_inputs(outer, inputs, training=False)
    got = graph_calls.run_graph(outer, plain, training=False)
    np.testing.assert_array_equal(to_numpy(got), to_numpy(outer(inputs)))


def test_hooks_of_pytorch_are_called():
    backbone = BertBackbone(**SIZES)
    called = []
    first, second = backbone.transformer_layers
    first.intermediate.register_forward_hook(lambda *arguments: called.append("after"))
    second.self_attention.query.register_forward_pre_hook(lambda *arguments: called.append("inner"))
    second.register_forward_pre_hook(lambda *arguments: called.append("before"))
    backbone({name: np.ones((1, 3), "int32") for name in backbone.input}, training=False)
    assert called == ["after", "before", "inner"]


def test_a_regularizer_of_outputs_is_added():
    backbone = BertBackbone(**SIZES)
    first, second = backbone.transformer_layers
    first.intermediate.activity_regularizer = keras.regularizers.L2(0.5)
    second.activity_regularizer = keras.regularizers.L2(0.5)
    backbone({name: np.ones((1, 3), "int32") for name in backbone.input}, training=False)
    assert len(backbone.losses) == 2 and all(float(loss.detach()) > 0 for loss in backbone.losses)


def test_a_layer_that_keras_recomputes_is_called_whole(counts):
    x = keras.Input((3, 16))
    with keras.RematScope("full"):
        block = TransformerBlock(num_heads=2, intermediate_dim=24)
    model = _PackedModel({"x": x}, block(x))
    inputs = {"x": np.ones((2, 3, 16), "float32")}
    for mode, called_directly in ((block._remat_mode, 0), (None, 1)):
        block._remat_mode = mode
        counts.update(graph=0)
        model(inputs, training=False)
        assert counts["graph"] == called_directly


def test_keras_refuses_wrong_inputs():
    backbone = BertBackbone(**SIZES)
    arrays = make_arrays(backbone)
    wrong = {**arrays, "token_ids": arrays["token_ids"][0]}
    with pytest.raises(ValueError, match="token_ids"):
        backbone(wrong, training=False)
    with pytest.raises(ValueError, match="Missing data|expects 3"):
        backbone({"token_ids": arrays["token_ids"]}, training=False)


def test_a_graph_with_lists_shared_layers_and_unread_outputs():
    a, b = keras.Input((3,), name="a"), keras.Input((3,), name="b")
    dense = keras.layers.Dense(3)
    first, second = keras.ops.split(keras.layers.Concatenate()([dense(a), dense(b)]), 2, axis=-1)
    outputs = {"sum": first + dense(first), "second": [second, keras.ops.max(b, axis=-1)]}
    model = keras.Model({"a": a, "b": b}, outputs)
    rng = np.random.default_rng(0)
    inputs = {name: rng.normal(size=(2, 3)).astype("float32") for name in "ab"}
    for _ in range(2):
        plain = graph_calls.find_plain_inputs(model, inputs, training=False)
        got, wanted = graph_calls.run_graph(model, plain, training=False), model(inputs)
        keras.tree.assert_same_structure(got, wanted)
        for x, y in zip(keras.tree.flatten(got), keras.tree.flatten(wanted), strict=True):
            np.testing.assert_array_equal(to_numpy(x), to_numpy(y))


def test_what_is_computed_once_is_forgotten_after_the_pass():
    model, calls = BertBackbone(**SIZES), []

    def double(x):
        calls.append(x)
        return x * 2

    x = keras.ops.ones(3)
    for _ in range(2):
        with eager_pass.eager_pass(model, training=False):
            assert eager_pass.once(double, x) is eager_pass.once(double, x)
            assert eager_pass.once(double, x + 1)[0] == 4
    assert len(calls) == 4
    assert eager_pass.once(double, x) is not eager_pass.once(double, x)
