"""What every layer and every backbone must do, checked in one call each."""

import inspect
import json
import tempfile
from pathlib import Path

import keras
import numpy as np
from peer_weights import randomize, to_numpy

#: Largest relative error (of norms) allowed to a bfloat16 computation.
BFLOAT16_TOLERANCE = 3e-2


def check_layer(layer_cls, init_kwargs, inputs, expected_shape, may_stay=()):
    """Checks shapes, configuration, saving, training and precision of a layer.

    Args:
        layer_cls: class of the layer.
        init_kwargs: dict, its arguments.
        inputs: dict of NumPy arrays, the arguments of `call`, batch first, in order.
        expected_shape: tuple, of the output.
        may_stay: endings of the paths of weights that training need not move.
    """

    def build(dtype=None):
        """A functional model of the layer, its length (second axis) left open."""
        symbols = {
            name: keras.Input((None, *array.shape[2:]), dtype=str(array.dtype), name=name)
            for name, array in inputs.items()
        }
        layer = layer_cls(**init_kwargs, dtype=dtype)
        return keras.Model(symbols, layer(**symbols)), layer

    keras.utils.set_random_seed(0)
    model, layer = build()
    randomize(layer)
    output = layer(**inputs)
    assert tuple(output.shape) == expected_shape
    shapes = [array.shape for array in inputs.values()]
    assert tuple(layer.compute_output_shape(*shapes)) == expected_shape
    assert model.output.shape[-1] == expected_shape[-1]
    check_config(layer, init_kwargs)
    _check_model(model, lambda dtype: build(dtype)[0], inputs, output, may_stay)


def check_backbone(backbone_cls, init_kwargs, inputs, expected_shapes, may_stay=()):
    """Checks shapes, configuration, saving, training and precision of a backbone.

    Args:
        backbone_cls: a `keras_hub.models.Backbone`.
        init_kwargs: dict, its arguments.
        inputs: dict of NumPy arrays (B, L) or (B, L, D).
        expected_shapes: dict, output name -> shape.
        may_stay: endings of the paths of weights that training need not move.
    """
    keras.utils.set_random_seed(0)
    backbone = randomize(backbone_cls(**init_kwargs))
    outputs = backbone(inputs)
    assert {name: tuple(x.shape) for name, x in outputs.items()} == expected_shapes
    shorter = {name: array[:, :2] for name, array in inputs.items()}
    assert evaluate(backbone, shorter).keys() == expected_shapes.keys()
    if backbone.token_embedding is not None:  # Frames have none.
        assert backbone.token_embedding(np.zeros((2, 3), "int32")).shape[:2] == (2, 3)
    check_config(backbone, init_kwargs)
    with tempfile.TemporaryDirectory() as folder:
        backbone.save_to_preset(folder)
        restored = backbone_cls.from_preset(folder)
    assert type(restored) is backbone_cls
    _assert_same_weights(restored, backbone)
    _check_model(
        backbone, lambda dtype: backbone_cls(**init_kwargs, dtype=dtype), inputs, outputs, may_stay
    )


def _check_model(model, build, inputs, outputs, may_stay):
    check_saved_model(model, inputs, outputs)
    check_compiled(model, inputs, outputs)
    for policy in ("bfloat16", "mixed_bfloat16"):
        check_precision(build(policy), policy, model, inputs, outputs)
    check_fit(model, inputs, outputs, may_stay)


def evaluate(model, inputs):
    """Calls a model at inference.

    Under JAX as one compiled function: one operation at a time takes ten times as long.
    """
    if keras.config.backend() != "jax":
        return model(inputs, training=False)
    import jax

    call = jax.jit(lambda *state: model.stateless_call(*state, inputs, training=False)[0])
    return call(
        [v.value for v in model.trainable_variables],
        [v.value for v in model.non_trainable_variables],
    )


def check_config(layer, init_kwargs):
    """The configuration is JSON, names every argument and builds an equal layer."""
    config = layer.get_config()
    parameters = inspect.signature(type(layer).__init__).parameters.values()
    named = {p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD} - {"self"}
    assert named <= config.keys(), named - config.keys()
    for name, value in init_kwargs.items():
        if isinstance(value, int | float):
            assert config[name] == value, name
    restored = type(layer).from_config(json.loads(json.dumps(config)))
    assert type(restored) is type(layer)
    assert restored.get_config() == config


def check_saved_model(model, inputs, outputs):
    """A model read back from its `.keras` file has the same weights and outputs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.keras"
        model.save(path)
        restored = keras.saving.load_model(path)
    assert type(restored) is type(model)
    _assert_same_weights(restored, model)
    _assert_close(evaluate(restored, inputs), outputs)


def check_compiled(model, inputs, outputs):
    """`predict`, compiled with XLA where the backend has it, equals the eager outputs."""
    model.compile(jit_compile=keras.config.backend() != "torch")
    _assert_close(model.predict(inputs, verbose=0), outputs)


def check_precision(low, policy, model, inputs, outputs):
    """Under a bfloat16 policy dtypes are as it says and values near float32's.

    Args:
        low: the model under test, built under `policy`.
        policy: "bfloat16" or "mixed_bfloat16".
        model: the same model in float32, whose weights `low` is given.
        inputs: dict of NumPy arrays.
        outputs: what `model` makes of them.
    """
    for ours, theirs in zip(low.weights, model.weights, strict=True):
        ours.assign(theirs.value)
    variable_dtype = "float32" if policy.startswith("mixed_") else "bfloat16"
    assert {keras.backend.standardize_dtype(v.dtype) for v in low.weights} == {variable_dtype}
    got = keras.tree.flatten(evaluate(low, inputs))
    for a, b in zip(got, keras.tree.flatten(outputs), strict=True):
        assert keras.backend.standardize_dtype(a.dtype) == "bfloat16"
        error = relative_error(to_numpy(a), to_numpy(b))
        assert error < BFLOAT16_TOLERANCE, f"{policy}: relative error {error:.1e}"


def check_fit(model, inputs, outputs, may_stay=()):
    """One training step has a finite loss and moves every weight."""
    rng = np.random.default_rng(0)
    targets = keras.tree.map_structure(
        lambda x: rng.standard_normal(tuple(x.shape)).astype("float32"), outputs
    )
    before = {v.path: to_numpy(v) for v in model.trainable_variables}
    losses = keras.tree.map_structure(lambda _: "mse", outputs)
    model.compile(optimizer=keras.optimizers.Adam(1e-2), loss=losses)
    history = model.fit(inputs, targets, batch_size=len(next(iter(inputs.values()))), verbose=0)
    assert np.isfinite(history.history["loss"][0])
    for variable in model.trainable_variables:
        after = to_numpy(variable)
        assert np.isfinite(after).all(), variable.path
        if not variable.path.endswith(tuple(may_stay)):
            assert (after != before[variable.path]).any(), f"{variable.path} did not move"


def relative_error(got, expected):
    """Norm of the difference over the norm of the expected array."""
    return np.linalg.norm(got - expected) / np.linalg.norm(expected)


def _assert_same_weights(got, expected):
    for a, b in zip(got.weights, expected.weights, strict=True):
        assert a.path == b.path
        np.testing.assert_array_equal(to_numpy(a), to_numpy(b), err_msg=a.path)


def _assert_close(got, expected):
    keras.tree.map_structure(
        lambda a, b: np.testing.assert_allclose(to_numpy(a), to_numpy(b), rtol=0, atol=1e-5),
        got,
        expected,
    )
