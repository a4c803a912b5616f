"""Against the formula of google-research/bert, in NumPy."""

import itertools

import keras
import ml_dtypes  # noqa: F401  NumPy then knows bfloat16.
import numpy as np
import pytest
from heads.cases import TASKS
from keras import ops
from peer_weights import to_numpy
from small_tasks import make_task
from small_texts import ONE_LAYER
from tables import everywhere_for

import keras_bert_suite as kbs
from keras_bert_suite import AdamW, Lamb, LinearWarmupDecay
from keras_bert_suite.training.fused_updates import CLIP_BY_GLOBAL_NORM

STEPS, PEAK, DECAY = 6, 1e-2, 0.1


@pytest.fixture
def model():
    inputs = keras.Input((6,), dtype="int32")
    x = keras.layers.Embedding(20, 8, name="embedding")(inputs)
    x = keras.layers.LayerNormalization(name="layer_norm")(keras.layers.Flatten()(x))
    model = keras.Model(inputs, keras.layers.Dense(3, name="dense")(x))
    rng = np.random.default_rng(0)
    for weight in model.weights:
        weight.assign(rng.normal(size=weight.shape))
    return model


def numpy_step(weights, gradients, m, v, step, decays, clip, bias_correction, momentum_dtype):
    """One update, in place."""
    norm = np.sqrt(sum((g**2).sum() for g in gradients))
    rate = PEAK * (step / 2 if step < 2 else 1 - step / 20)
    for i, (w, g) in enumerate(zip(weights, gradients, strict=True)):
        g = g * min(1.0, clip / norm)
        m[i] = 0.9 * m[i] + 0.1 * g
        v[i] = 0.999 * v[i] + 0.001 * g**2
        first, second = m[i], v[i]
        if bias_correction:
            first, second = first / (1 - 0.9 ** (step + 1)), second / (1 - 0.999 ** (step + 1))
        w -= rate * (first / (np.sqrt(second) + 1e-6) + decays[i] * w)
        m[i] = m[i].astype(momentum_dtype).astype("float64")


@pytest.mark.parametrize(
    ("clip", "bias_correction", "momentum_dtype"),
    everywhere_for(
        itertools.product([1.0, 1e9], [False, True], [None, "bfloat16"]),
        *((1.0, False, None), (1e9, True, None), (1.0, True, "bfloat16")),
    ),
)
def test_steps_equal_the_formula(model, clip, bias_correction, momentum_dtype):
    optimizer = AdamW(
        LinearWarmupDecay(PEAK, total_steps=20, warmup_steps=2),
        weight_decay=DECAY,
        global_clipnorm=clip,
        bias_correction=bias_correction,
        momentum_dtype=momentum_dtype,
    )
    variables = model.trainable_variables
    assert [v.path for v in variables] == [
        "embedding/embeddings", "layer_norm/gamma", "layer_norm/beta", "dense/kernel", "dense/bias",
    ]  # fmt: skip
    weights = [ops.convert_to_numpy(v).astype("float64") for v in variables]
    m, v = [np.zeros_like(w) for w in weights], [np.zeros_like(w) for w in weights]
    rng = np.random.default_rng(1)
    for step in range(STEPS):
        gradients = [rng.normal(size=w.shape).astype("float32") for w in weights]
        optimizer.apply([ops.convert_to_tensor(g) for g in gradients], variables)
        decays = [DECAY, 0, 0, DECAY, 0]
        numpy_step(
            weights,
            gradients,
            m,
            v,
            step,
            decays,
            clip,
            bias_correction,
            momentum_dtype or "float32",
        )
    for variable, wanted in zip(variables, weights, strict=True):
        np.testing.assert_allclose(ops.convert_to_numpy(variable), wanted, atol=3e-6)


@pytest.mark.parametrize("optimizer_cls", [AdamW, Lamb])
def test_a_rate_multiplier_is_another_learning_rate(model, optimizer_cls):
    """The decay is part of the step, so it is multiplied as well."""
    table = [("dense/bias", 3.0), ("dense", 10.0)]  # The first that is found holds.
    multiplied = optimizer_cls(1e-3, DECAY, rate_multipliers=table, global_clipnorm=None)
    multiplied = keras.optimizers.deserialize(keras.optimizers.serialize(multiplied))
    plain = {f: optimizer_cls(1e-3 * f, DECAY, global_clipnorm=None) for f in (1, 3, 10)}
    rng = np.random.default_rng(1)
    variables = model.trainable_variables
    twins = {
        f: [keras.Variable(ops.convert_to_numpy(v), name=v.name) for v in variables] for f in plain
    }
    for optimizer in plain.values():
        optimizer.no_decay = ("gamma", "beta", "bias")
    for _ in range(3):
        gradients = [rng.normal(size=v.shape).astype("float32") for v in variables]
        multiplied.apply([ops.convert_to_tensor(g) for g in gradients], variables)
        for factor, optimizer in plain.items():
            optimizer.apply([ops.convert_to_tensor(g) for g in gradients], twins[factor])
    for place, (variable, factor) in enumerate(zip(variables, (1, 1, 1, 10, 3), strict=True)):
        wanted = ops.convert_to_numpy(twins[factor][place])
        np.testing.assert_allclose(ops.convert_to_numpy(variable), wanted, atol=1e-6)


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("layer_1", {1}),
        ("layer_1/", {1}),
        ("layer_11", {11}),
        (r"layer_\d+", {1, 2, 10, 11}),
        (r"layer_\d", {1, 2}),
        (r"layer_1\d", {10, 11}),
        ("layer_(1|2)", {1, 2}),
        ("layer_(1|10)", {1, 10}),
        ("_1", {1}),
        ("kernel", {1, 2, 10, 11}),
    ],
)
def test_numbers_are_found_whole(pattern, wanted):
    variables = {}
    for number in (1, 2, 10, 11):
        layer = keras.layers.Dense(2, use_bias=False, name=f"layer_{number}")
        layer.build((None, 2))
        variables[number] = layer.kernel
    optimizer = AdamW(1e-3, rate_multipliers={pattern: 3.0})
    optimizer = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    optimizer.build([*variables.values()])
    rates = {number: optimizer.rate_multiplier_of(v) for number, v in variables.items()}
    assert rates == {number: 3.0 if number in wanted else 1.0 for number in variables}


@pytest.mark.parametrize("optimizer_cls", [AdamW, Lamb])
def test_none_for_no_patterns(model, optimizer_cls):
    nones = dict.fromkeys(["no_decay", "no_decay_names", "rate_multipliers"])
    optimizer = optimizer_cls(1e-3, DECAY, **nones)
    optimizer = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    optimizer.build(model.trainable_variables)
    for variable in model.trainable_variables:
        assert optimizer.decay_of(variable) == DECAY
        assert optimizer.rate_multiplier_of(variable) == 1.0


def test_wrong_rate_multipliers(model):
    with pytest.raises(ValueError, match="rate_multipliers='crf/' finds none of the 5 variables"):
        AdamW(rate_multipliers=[("crf/", 10.0)]).build(model.trainable_variables)
    for wrong, error in (
        ("a", "must be a list of pairs .*, got 'a'. Put a single one into a list"),
        (3, "must be a list of pairs .*, got 3"),
        (["crf/", "b"], "must be pairs of a regular expression and a factor, .* got 'crf/'"),
        ([("crf/",)], r"must be pairs of a regular expression and a factor, .* got \('crf/',\)"),
    ):
        with pytest.raises(ValueError, match=f"rate_multipliers {error}"):
            AdamW(rate_multipliers=wrong)


@pytest.mark.every_backend
def test_a_token_that_occurs_twice_is_clipped_as_one(model):
    """TensorFlow hands an embedding's gradient over in slices, one for each occurrence."""
    x, y = np.full((2, 6), 7), np.array([0, 1])
    before = ops.convert_to_numpy(model.weights[0]).copy()
    model.compile(AdamW(1e-3, weight_decay=0.0), keras.losses.SparseCategoricalCrossentropy(True))
    model.train_on_batch(x, y)
    moved = np.abs(ops.convert_to_numpy(model.weights[0]) - before)
    # The first step without bias correction is 0.1 / sqrt(0.001) times the rate.
    np.testing.assert_allclose(moved[7], 1e-3 * 0.1 / np.sqrt(0.001), rtol=0.05)
    assert not np.delete(moved, 7, axis=0).any()


def test_a_pattern_that_finds_nothing_is_an_error(model):
    with pytest.raises(ValueError, match="'LayerNorm' finds none of the 5 variables"):
        AdamW(no_decay=["bias", "LayerNorm"]).build(model.trainable_variables)


@pytest.mark.parametrize("optimizer_cls", everywhere_for([AdamW, Lamb], AdamW))
def test_accumulated_batches_are_one_step(model, optimizer_cls):
    """Equal batches, three to a step: bias correction and the schedule count the steps."""
    variables = model.trainable_variables
    twins = [keras.Variable(ops.convert_to_numpy(v).copy()) for v in variables]
    rng = np.random.default_rng(1)
    arguments = {"bias_correction": True, "no_decay": ()}
    schedule = LinearWarmupDecay(1e-2, total_steps=4, warmup_steps=2)
    three = optimizer_cls(schedule, gradient_accumulation_steps=3, **arguments)
    one = optimizer_cls(schedule, **arguments)
    for _ in range(4):
        assert float(three.learning_rate) == float(one.learning_rate)
        gradients = [rng.normal(size=v.shape).astype("float32") for v in variables]
        for _ in range(3):
            three.apply([ops.convert_to_tensor(g) for g in gradients], variables)
        one.apply([ops.convert_to_tensor(g) for g in gradients], twins)
    for variable, twin in zip(variables, twins, strict=True):
        found, wanted = ops.convert_to_numpy(variable), ops.convert_to_numpy(twin)
        np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_excluded_variables_are_not_decayed(model):
    embeddings, gamma, beta, kernel, bias = variables = model.trainable_variables
    optimizer = AdamW(weight_decay=DECAY)
    optimizer.exclude_from_weight_decay(var_list=[kernel], var_names=["embed"])
    twin = AdamW.from_config(optimizer.get_config())
    for built in (optimizer, twin):
        built.build(variables)
        assert [built.decay_of(v) for v in variables] == [0.0] * 5
    optimizer = AdamW(weight_decay=DECAY)
    optimizer.exclude_from_weight_decay(var_names=["^kernel"])
    for built in (optimizer, AdamW.from_config(optimizer.get_config())):
        built.build(variables)
        assert [built.decay_of(v) for v in variables] == [DECAY, 0, 0, 0, 0]
    optimizer = AdamW(weight_decay=DECAY)
    optimizer.exclude_from_weight_decay(var_list=[embeddings])
    optimizer.build(variables)
    assert [optimizer.decay_of(v) for v in variables] == [0, 0, 0, DECAY, 0]
    with pytest.raises(ValueError, match="comes too late, the optimizer is built"):
        optimizer.exclude_from_weight_decay(var_names=["kernel"])


@pytest.mark.parametrize("name", ["dense", "dense.*kernel", "/"])
def test_names_are_not_paths(model, name):
    """The name of `dense/kernel` is `kernel`."""
    optimizer = AdamW()
    optimizer.exclude_from_weight_decay(var_names=[name])
    with pytest.raises(ValueError, match=r"finds none of the 5 .* names such as 'embeddings'"):
        optimizer.build(model.trainable_variables)


@pytest.mark.parametrize("optimizer_cls", [AdamW, Lamb])
def test_keras_is_not_told_of_the_decay(optimizer_cls):
    """It would decay a second time."""
    optimizer = optimizer_cls(weight_decay=DECAY)
    assert optimizer.weight_decay is None and optimizer.decay == DECAY
    assert optimizer.get_config()["weight_decay"] == DECAY
    with pytest.raises(AttributeError, match="cannot be set to 0.3 .* Set `decay`"):
        optimizer.weight_decay = 0.3


@pytest.mark.parametrize("kind", everywhere_for([AdamW, Lamb], AdamW))
def test_weights_in_bfloat16(kind):
    """In bfloat16 0.999 is 1, so that the kernel of TensorFlow would divide by epsilon alone."""
    optimizer = kind(1e-2, weight_decay=0.0)
    variable = keras.Variable(np.ones(4), dtype="bfloat16", name="kernel")
    optimizer.build([variable])
    momentum = velocity = 0.0
    weight = np.ones(4)
    for step in range(1, 5):
        optimizer.apply([ops.full((4,), 0.25, dtype="bfloat16")], [variable])
        momentum, velocity = 0.9 * momentum + 0.1 * 0.25, 0.999 * velocity + 0.001 * 0.25**2
        first, second = momentum, velocity
        if optimizer.bias_correction:
            first, second = first / (1 - 0.9**step), second / (1 - 0.999**step)
        update = np.full(4, first / (np.sqrt(second) + 1e-6))
        ratio = np.linalg.norm(weight) / np.linalg.norm(update) if kind is Lamb else 1.0
        weight = weight - 1e-2 * ratio * update
    np.testing.assert_allclose(
        ops.convert_to_numpy(ops.cast(variable, "float32")), weight, atol=0.02
    )


@pytest.mark.parametrize("kind", [AdamW, Lamb])
def test_a_momentum_in_bfloat16_is_saved_and_loaded(model, kind, tmp_path):
    """The loaded optimizer goes on as the saved one does, bit for bit."""
    model.compile(kind(1e-2, momentum_dtype="bfloat16"), "mse")
    x, y = np.arange(12).reshape(2, 6), np.ones((2, 3))
    model.train_on_batch(x, y)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    for _ in range(2):
        for found, wanted in zip(
            loaded.optimizer.variables, model.optimizer.variables, strict=True
        ):
            assert found.dtype == wanted.dtype
            assert (found.dtype == "bfloat16") == wanted.path.endswith("_momentum")
            found, wanted = (ops.convert_to_numpy(ops.cast(v, "float32")) for v in (found, wanted))
            np.testing.assert_array_equal(found, wanted)
        for trained in (model, loaded):
            trained.train_on_batch(x, y)
            if keras.config.backend() == "jax":
                trained.jax_state_sync()


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ({"beta_1": (0.9, 0.999)}, r"beta_1 must be a number of at least 0 .* got \(0.9, 0.999\)"),
        ({"beta_2": 1.0}, "beta_2 must be a number of at least 0 and below 1, got 1.0"),
        ({"epsilon": -1e-6}, "epsilon must be a number of at least 0, got -1e-06"),
        (
            {"weight_decay": "0.01"},
            "weight_decay must be a number of at least 0, got '0.01'",
        ),
    ],
)
@pytest.mark.parametrize("optimizer_cls", [AdamW, Lamb])
def test_numbers_out_of_range_are_refused(optimizer_cls, argument, message):
    with pytest.raises(ValueError, match=message):
        optimizer_cls(**argument)


def test_a_momentum_has_no_other_dtype():
    with pytest.raises(ValueError, match="momentum_dtype must be 'bfloat16', or None .* 'float16'"):
        AdamW(momentum_dtype="float16")


def make_backbone(cls, **sizes):
    kinds = {"layer_types": ["full_attention"]} if cls is kbs.ModernBertBackbone else {}
    return cls(**{**ONE_LAYER, **kinds, **sizes})


DECAYED_MODELS = {
    **{task: lambda task=task: make_task(task, "SegmentPacker")[0] for task in TASKS},
    **{
        pooling: lambda pooling=pooling: kbs.TextClassifier(
            kbs.BertBackbone(**ONE_LAYER), 2, pooling=getattr(kbs, pooling)()
        )
        for pooling in ("AttentionPooling", "BiLSTMPooling", "ConvolutionPooling", "ScalarMix")
    },
    **{
        backbone: lambda backbone=backbone: make_backbone(getattr(kbs, backbone))
        for backbone in ("NezhaBackbone", "RoFormerBackbone", "ModernBertBackbone")
    },
}


@pytest.mark.parametrize("name", DECAYED_MODELS)
def test_the_decayed_weights_of_every_model(name):
    """All but biases and norms, as `Trainer.get_decay_parameter_names` of transformers says."""
    model = DECAYED_MODELS[name]()
    layers = [x for x in model._flatten_layers() if isinstance(x, keras.layers.LayerNormalization)]
    norms = {id(variable) for layer in layers for variable in layer.variables}
    optimizer = AdamW()
    optimizer.build(model.trainable_variables)
    for variable in model.trainable_variables:
        is_left_out = id(variable) in norms or variable.name == "bias"
        assert optimizer.is_excluded(variable) == is_left_out, variable.path


def test_the_vectors_of_a_head_are_not_decayed():
    variables = [keras.Variable(np.ones(shape), name="first") for shape in ((), (3,), (3, 3))]
    optimizer, decays_all = AdamW(), AdamW(no_decay=())
    optimizer.build(variables)
    decays_all.build(variables)
    assert [optimizer.is_excluded(v) for v in variables] == [True, True, False]
    assert not any(decays_all.is_excluded(v) for v in variables)


@pytest.mark.every_backend
@pytest.mark.parametrize("bound", [None, 1.0])
def test_gradients_of_two_precisions_have_one_norm(bound):
    """As those of float32 adapters and of a 16-bit head."""
    given = {"bfloat16": [3.0, 0.0], "float32": [0.0, 4.0]}
    gradients = [ops.convert_to_tensor(value, dtype) for dtype, value in given.items()]
    clipped, finite = CLIP_BY_GLOBAL_NORM[keras.config.backend()](gradients, bound)
    assert bool(finite)
    for gradient, (dtype, value) in zip(clipped, given.items(), strict=True):
        assert keras.backend.standardize_dtype(gradient.dtype) == dtype
        wanted = np.array(value) / (5 if bound else 1)
        tolerance = 2**-8 if dtype == "bfloat16" else 1e-6
        np.testing.assert_allclose(to_numpy(ops.cast(gradient, "float32")), wanted, rtol=tolerance)
